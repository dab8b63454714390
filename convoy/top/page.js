// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Draws what a node counts, once a second. All that the node says is put in as text, never as HTML.
"use strict";

const EVERY_MS = 1000;
const KEPT = 120; // snapshots, for the small curves
const PACKETS_SHOWN = 200;
const token = location.hash.slice(1);
const snapshots = [];
let packetsAfter = 0;

const at = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

// 999, 12.3 k, 4.56 M
function si(value) {
  for (const [limit, divisor, unit] of [[1e4, 1, ""], [1e7, 1e3, " k"], [1e10, 1e6, " M"]])
    if (Math.abs(value) < limit)
      return divisor === 1 ? value.toFixed(0) + unit : (value / divisor).toPrecision(4) + unit;
  return (value / 1e9).toPrecision(4) + " G";
}

async function ask(path, options = {}) {
  const answer = await fetch(path, {
    ...options, headers: { "X-Convoy-Token": token }, cache: "no-store", credentials: "omit",
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error || answer.statusText);
  return said;
}

// Two snapshots of one node, and what went by between them.
class Change {
  constructor(now, before) {
    this.now = now;
    this.before = before && before.pid === now.pid ? before : null;
    this.seconds = this.before ? (now.at_ms - before.at_ms) / 1000 : 0;
  }

  // By a function from a snapshot to a total; null as long as there is one snapshot only.
  delta(total) {
    if (!this.before || this.seconds <= 0) return null;
    const before = total(this.before);
    return before === undefined ? null : Math.max(0, total(this.now) - before);
  }

  rate(total) {
    const delta = this.delta(total);
    return delta === null ? null : delta / this.seconds;
  }
}

// 12.3 kbit/s, 999 bit/s, 12.3 k/s
function shown(rate, unit) {
  if (rate === null) return "–";
  const number = si(rate);
  return number + (/\d$/.test(number) && /^[a-z]/.test(unit) ? " " : "") + unit;
}

function arrow(rate) {
  return make("div", { class: rate ? "arrow" : "arrow idle" }, make("span", {}, shown(rate, "")), make("i"));
}

function portBox(change, name, way) {
  const port = change.now.ports[name];
  const bits = port && change.rate((s) => (s.ports[name] ? 8 * s.ports[name][way + "_bytes"] : undefined));
  return make("div", { class: "box port" }, make("b", {}, name),
    make("span", {}, port ? port.kind : ""), make("span", {}, port ? shown(bits, "bit/s") : ""));
}

const sum = (numbers) => Object.values(numbers || {}).reduce((all, one) => all + one, 0);

function functionBox(change, name, leads) {
  const one = change.now.functions[name];
  const of = (key) => (s) => (s.functions[name] ? key(s.functions[name]) : undefined);
  const drops = change.rate(of((f) => sum(f.drops)));
  const packets = change.delta(of((f) => f.packets));
  const cycles = change.delta(of((f) => f.busy_cycles));
  const box = make("div", { class: drops ? "box dropping" : "box" },
    make("b", {}, name), make("span", {}, one ? one.type : "gone"),
    make("span", {}, (packets ? (cycles / packets).toFixed(1) : "–") + " cycles/packet"));
  const chains = chainsWith(change.now, name);
  if (chains > 1) box.append(make("span", {}, `${shown(change.rate(of((f) => f.packets)), "/s")} in ${chains} chains`));
  if (drops) box.append(make("span", { class: "drops" }, si(drops) + " drops/s"));
  for (const [output, chain] of Object.entries(leads || {})) {
    const rate = change.rate(of((f) => f.outputs[output] || 0));
    box.append(make("span", {}, `${output} → ${chain}: ${shown(rate, "/s")}`));
  }
  return box;
}

// Chains that a function is in: its counters are of all of them together.
const chainsWith = (snapshot, name) => snapshot.chains.filter((chain) => chain.path.includes(name)).length;

function rateInto(change, chain, i) {
  const name = chain.path[i];
  const alone = change.now.chains.filter((other) => other.in === chain.in).length === 1;
  if (i === 0 && chain.in && alone)
    return change.rate((s) => (s.ports[chain.in] ? s.ports[chain.in].rx_packets : undefined));
  if (chainsWith(change.now, name) > 1) return null;
  return change.rate((s) => (s.functions[name] ? s.functions[name].packets : undefined));
}

function rateOut(change, chain) {
  const last = chain.path.at(-1);
  if (last) return chainsWith(change.now, last) > 1 ? null : change.rate((s) => passed(s, last));
  return change.rate((s) => sum(leadsTo(s, chain.name).map(([name, output]) => s.functions[name].outputs[output] || 0)));
}

// The functions whose outputs lead to a chain.
function leadsTo(snapshot, chain) {
  const found = new Map();
  for (const one of snapshot.chains)
    for (const [name, outputs] of Object.entries(one.outputs))
      for (const [output, to] of Object.entries(outputs))
        if (to === chain && snapshot.functions[name]) found.set(`${name} ${output}`, [name, output]);
  return [...found.values()];
}

function drawChains(change) {
  const rows = change.now.chains.map((chain) => {
    const row = make("div", { class: "way" });
    if (chain.in) row.append(portBox(change, chain.in, "rx"));
    else
      for (const [name, output] of leadsTo(change.now, chain.name))
        row.append(make("div", { class: "box port" }, make("b", {}, name), make("span", {}, `output ${output}`)));
    chain.path.forEach((name, i) =>
      row.append(arrow(rateInto(change, chain, i)), functionBox(change, name, chain.outputs[name])));
    if (chain.out) row.append(arrow(rateOut(change, chain)), portBox(change, chain.out, "tx"));
    return make("div", { class: "chain", "data-chain": chain.name }, make("h3", {}, chain.name), row);
  });
  at("chains").replaceChildren(...rows);
}

// What a function passed on to the next one.
function passed(snapshot, name) {
  const one = snapshot.functions[name];
  if (!one) return undefined;
  return one.packets + one.originated - sum(one.drops) - sum(one.outputs) - one.absorbed - one.held;
}

function table(id, columns, rows, none) {
  if (!rows.length) {
    at(id).replaceChildren(make("p", { class: "quiet" }, none));
    return;
  }
  const head = make("tr", {}, ...columns.map(([name, kind]) => make("th", { class: kind || "", scope: "col" }, name)));
  const body = rows.map(({ cells, now }) => make("tr", now ? { class: "now" } : {},
    ...cells.map((cell, i) => make("td", { class: columns[i][1] || "" }, cell))));
  at(id).replaceChildren(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))));
}

function drawDrops(change) {
  const rows = [];
  const add = (place, key, reasonsOf) => {
    for (const [why, total] of Object.entries(reasonsOf(change.now)))
      rows.push({ place, why, total, rate: change.rate((s) => (reasonsOf(s) || {})[why] || 0) });
  };
  for (const name of Object.keys(change.now.functions))
    add(name, name, (s) => (s.functions[name] ? s.functions[name].drops : {}));
  for (const name of Object.keys(change.now.flows))
    add(`flows of ${name}`, name, (s) => (s.flows[name] ? s.flows[name].drops : {}));
  for (const name of Object.keys(change.now.ports))
    add(`port ${name}`, name, (s) => (s.ports[name] ? s.ports[name].drops : {}));
  rows.sort((a, b) => (b.rate || 0) - (a.rate || 0) || b.total - a.total);
  table("drops", [["where"], ["reason"], ["packets/s", "number"], ["in all", "number"]],
    rows.map((row) => ({ now: row.rate > 0, cells: [row.place, row.why, shown(row.rate, ""), si(row.total)] })),
    "Nothing has been dropped.");
}

function bar(share) {
  const fill = make("i");
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  return make("div", { class: "bar" }, fill);
}

function drawWorkers(change) {
  table("workers", [["worker"], ["core", "number"], ["busy"], ["", "number"], ["longest iteration", "number"]],
    change.now.workers.map((worker, i) => {
      const busy = change.delta((s) => (s.workers[i] ? s.workers[i].busy_cycles : undefined));
      const total = change.delta((s) => (s.workers[i] ? s.workers[i].total_cycles : undefined));
      const share = total ? busy / total : null;
      return { cells: [String(i), String(worker.core), bar(share || 0),
        share === null ? "–" : `${(100 * share).toFixed(0)} %`,
        `${(worker.longest_iteration_ns / 1000).toFixed(1)} µs`] };
    }), "");
}

function spark(values) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  const most = Math.max(...values, 1);
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", `0 0 ${KEPT} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", values.map((value, i) =>
    `${i ? "L" : "M"}${KEPT - values.length + i} ${19 - (18 * value) / most}`).join(""));
  svg.append(path);
  return svg;
}

function history(total) {
  return snapshots.slice(1).map((now, i) => new Change(now, snapshots[i]).rate(total) || 0);
}

function drawPorts(change) {
  table("ports", [["port"], ["kind"], ["link"], ["received/s", "number"], ["bit/s", "number"],
    ["sent/s", "number"], ["bit/s", "number"], ["received, two minutes"]],
  Object.entries(change.now.ports).map(([name, port]) => {
    const rate = (key, times = 1) => change.rate((s) => (s.ports[name] ? times * s.ports[name][key] : undefined));
    return { cells: [name, port.kind, port.link || "–", shown(rate("rx_packets"), ""), shown(rate("rx_bytes", 8), ""),
      shown(rate("tx_packets"), ""), shown(rate("tx_bytes", 8), ""),
      spark(history((s) => (s.ports[name] ? s.ports[name].rx_packets : undefined)))] };
  }), "");
}

function drawHops(change) {
  const hops = Object.entries(change.now.next_hops);
  at("hops-section").hidden = !hops.length;
  table("hops", [["next hop"], ["port"], ["packets/s", "number"], ["frames/s", "number"], ["packets in a frame", "number"]],
    hops.map(([name, hop]) => {
      const of = (key) => (s) => (s.next_hops[name] ? s.next_hops[name][key] : undefined);
      const packets = change.delta(of("packets")), frames = change.delta(of("frames"));
      return { cells: [name, hop.port, shown(change.rate(of("packets")), ""), shown(change.rate(of("frames")), ""),
        frames ? (packets / frames).toFixed(1) : "–"] };
    }), "");
}

function drawFlows(change) {
  const flows = Object.entries(change.now.flows);
  at("flows-section").hidden = !flows.length;
  table("flows", [["functions"], ["IPv4", "number"], ["of", "number"], [""], ["IPv6", "number"], ["of", "number"],
    [""], ["new/s", "number"]],
  flows.map(([name, one]) => {
    const fresh = change.rate((s) => (s.flows[name] ? s.flows[name].created : undefined));
    const family = (now, most) => [si(now), si(most), bar(most ? now / most : 0)];
    return { cells: [name, ...family(one.flows_ipv4, one.max), ...family(one.flows_ipv6, one.max_ipv6), shown(fresh, "")] };
  }), "");
}

// Places where packets are timed, in the order of their way.
function timedPlaces(snapshot) {
  const places = [];
  const add = (part, key, words) => {
    for (const [name, one] of Object.entries(snapshot[part]))
      if (one[key])
        places.push({ where: words ? `${name}: ${words}` : name, of: (s) => (s[part][name] || {})[key] });
  };
  add("ports", "rx_wait", "waited at most");
  add("ports", "rx_latency", "received");
  add("functions", "ring_latency", "in the ring before");
  add("functions", "latency", "");
  add("ports", "tx_latency", "sent");
  return places;
}

const micros = (ns) => `${(ns / 1000).toPrecision(3)} µs`;

// Of few packets that are timed, since the oldest snapshot that is kept.
function drawLatency(change) {
  const rows = [];
  for (const { where, of } of timedPlaces(change.now)) {
    const now = of(change.now), before = of(change.before || {ports: {}, functions: {}}) || { packets: 0, ns: 0, up_to_ns: {} };
    const packets = now.packets - before.packets;
    if (packets <= 0) continue;
    let seen = 0, bound = 0;
    for (const [upTo, count] of Object.entries(now.up_to_ns)) {
      if (100 * seen >= 99 * packets) break;
      seen += count - (before.up_to_ns[upTo] || 0);
      bound = Number(upTo);
    }
    rows.push({ cells: [where, micros((now.ns - before.ns) / packets), micros(bound), si(packets)] });
  }
  table("latency", [["where"], ["mean", "number"], ["99 % up to", "number"], ["packets timed", "number"]],
    rows, "No packet has been timed.");
}

function drawTotals(change) {
  const cells = ["received", "originated", "sent", "dropped"].map((key) => {
    const rate = change.rate((s) => s.accounting[key]);
    const bad = key === "dropped" && rate > 0;
    return make("span", { class: bad ? "some" : "", "data-total": key, "data-count": change.now.accounting[key] },
      make("b", {}, shown(rate, "")), ` ${key}/s`);
  });
  at("totals").replaceChildren(...cells);
}

function draw(change) {
  at("who").textContent = `${change.now.version}, process ${change.now.pid}`;
  document.title = `Convoy ${change.now.pid}`;
  drawTotals(change);
  drawChains(change);
  drawDrops(change);
  drawWorkers(change);
  drawLatency(new Change(change.now, snapshots[0] === change.now ? null : snapshots[0]));
  drawPorts(change);
  drawHops(change);
  drawFlows(change);
  at("why-hint").hidden = change.now.why;
  at("why-form").hidden = !change.now.why;
}

function tell(state, text) {
  at("state").dataset.state = state;
  at("state").textContent = text;
  document.body.classList.toggle("gone", state === "gone");
}

async function look() {
  try {
    const now = await ask("snapshot");
    const before = snapshots.at(-1);
    if (!before || now.at_ms !== before.at_ms) {
      if (before && before.pid !== now.pid) snapshots.length = 0;
      snapshots.push(now);
      if (snapshots.length > KEPT) snapshots.shift();
      draw(new Change(now, snapshots.at(-2)));
    }
    tell("live", "live");
  } catch (error) {
    tell("gone", error instanceof TypeError ? "convoy top --web has ended" : error.message);
  }
  document.body.dataset.looks = String(Number(document.body.dataset.looks || 0) + 1);
}

function tellWhy(text, problem = false) {
  at("why-state").textContent = text;
  at("why-state").classList.toggle("problem", problem);
}

async function startWhy(event) {
  event.preventDefault();
  const body = JSON.stringify({ filter: at("why-filter").value.trim(), drops: at("why-drops").checked });
  try {
    await ask("why", { method: "POST", body });
    packetsAfter = 0;
    at("why-packets").replaceChildren();
    at("why-stop").disabled = false;
    tellWhy("waiting for packets");
  } catch (error) {
    tellWhy(error.message, true);
  }
}

async function stopWhy() {
  at("why-stop").disabled = true;
  try {
    await ask("why", { method: "DELETE" });
    tellWhy(`stopped; ${at("why-packets").children.length} packets`);
  } catch (error) {
    tellWhy(error.message, true);
  }
}

async function lookWhy() {
  if (at("why-stop").disabled) return;
  try {
    const said = await ask(`why?after=${packetsAfter}`);
    for (const packet of said.packets) {
      packetsAfter = packet.number;
      at("why-packets").prepend(make("li", {},
        make("pre", packet.end === "dropped" ? { class: "dropped" } : {}, packet.text.join("\n"))));
    }
    while (at("why-packets").children.length > PACKETS_SHOWN) at("why-packets").lastChild.remove();
    if (said.packets.length || said.lost)
      tellWhy(said.lost ? `${si(said.lost)} more came faster than they were read` : "");
    if (said.problem) tellWhy(said.problem, true);
    if (!said.armed) at("why-stop").disabled = true;
  } catch (error) {
    tellWhy(error.message, true);
  }
}

async function always(what) {
  for (;;) {
    if (!document.hidden) await what();
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}

at("why-form").addEventListener("submit", startWhy);
at("why-stop").addEventListener("click", stopWhy);
addEventListener("hashchange", () => location.reload());
always(look);
always(lookWhy);
