// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
// Asks for the newest snapshot once a second and draws it. Names become text, never markup.
"use strict";

const PERIOD_MS = 1000, HISTORY = 180, LATE_MS = 5000;
const BOX = {width: 170, height: 46, gap: 130, row: 74};
const history = {received: [], sent: [], dropped: []};
const byId = (id) => document.getElementById(id);

function si(value, unit) {
  if (value === null || value === undefined) return "–";
  for (const [size, prefix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (value >= size) return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
  return `${value < 10 && value % 1 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

function make(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function cell(kind, text, className = "") {
  const made = document.createElement(kind);
  made.textContent = text;
  made.className = className;
  return made;
}

// rows: of [text, class]
function table(id, head, rows, none) {
  const place = byId(id);
  place.replaceChildren();
  if (!rows.length) return place.append(cell("caption", none, "none"));
  const top = document.createElement("tr");
  head.forEach((word, i) => top.append(cell("th", word, rows[0][i][1].replace("bad", ""))));
  const made = rows.map((row) => {
    const line = document.createElement("tr");
    line.append(...row.map(([text, className]) => cell("td", text, className)));
    return line;
  });
  place.append(top, ...made);
}

function spark(values) {
  const width = 180, height = 28, most = Math.max(1, ...values);
  const drawn = make("svg", {width, height, "aria-hidden": "true"});
  const points = values.map((value, i) =>
    `${(width * (HISTORY - values.length + i)) / (HISTORY - 1)},${height - 2 - (height - 4) * value / most}`);
  drawn.append(make("polyline", {class: "spark", points: points.join(" ")}));
  return drawn;
}

function totals(state) {
  byId("totals").replaceChildren(...Object.keys(history).map((key) => {
    const value = state.totals[key];
    history[key].push(value ?? 0);
    if (history[key].length > HISTORY) history[key].shift();
    const part = document.createElement("div");
    part.append(cell("span", key), cell("b", si(value, "packet/s"), key === "dropped" && value ? "bad" : ""));
    const count = cell("span", `${state.counts[key].toLocaleString("en")} packets`);
    count.dataset.count = key;
    part.append(count, spark(history[key]));
    return part;
  }));
}

function short(name) {
  return name.length > 21 ? `${name.slice(0, 20)}…` : name;
}

function graph(state) {
  const rows = {}, dropping = {};
  for (const drop of state.drops) {
    if (drop.kind === "flow table") continue;
    const key = `${drop.kind} ${drop.of}`;
    dropping[key] = (dropping[key] ?? 0) + (drop.per_s ?? 0);
  }
  const at = state.places.map((place) => {
    const row = rows[place.column] = (rows[place.column] ?? -1) + 1;
    return {x: 8 + place.column * (BOX.width + BOX.gap), y: 14 + row * BOX.row};
  });
  const width = Math.max(...at.map((one) => one.x), 0) + BOX.width + 16;
  const height = Math.max(...at.map((one) => one.y), 0) + BOX.row;
  const drawn = make("svg", {width, height, role: "img"});
  const labels = [];
  for (const way of state.ways) {
    const one = at[way.from], to = at[way.to];
    const x1 = one.x + BOX.width, y1 = one.y + BOX.height / 2, x2 = to.x - 7, y2 = to.y + BOX.height / 2;
    const bend = Math.max(50, Math.abs(x2 - x1) / 2);
    const rate = way.packets_per_s ?? 0;
    const path = make("path", {
      class: "way", d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`,
      "stroke-width": rate ? Math.min(6, 1 + Math.log10(1 + rate) / 2) : 1,
    });
    path.append(make("title", {}, way.chains.join(", ")));
    drawn.append(path, make("path", {class: "tip", d: `M${to.x},${y2} l-8,-4 v8 z`}));
    const x = x2 - BOX.gap / 2 + 4;
    if (way.packets_per_s !== null) labels.push(make("text",
      {class: "soft rate", x, y: y2 - 5, "text-anchor": "middle"}, si(way.packets_per_s, "packet/s")));
    if (way.bits_per_s !== null) labels.push(make("text",
      {class: "soft rate", x, y: y2 + 14, "text-anchor": "middle"}, si(way.bits_per_s, "bit/s")));
  }
  drawn.append(...labels);
  state.places.forEach((place, i) => {
    const {x, y} = at[i];
    const key = place.kind === "function" ? `function ${place.name}` : place.kind === "rx" ? `port ${place.name}` : "";
    const drops = dropping[key] ?? 0;
    const group = make("g", {class: `${place.kind} ${drops ? "drops" : ""}`});
    group.append(
      make("title", {}, place.name),
      make("rect", {class: "box", x, y, width: BOX.width, height: BOX.height, rx: 6}),
      make("text", {x: x + 10, y: y + 19}, short(place.name)),
      make("text", {class: `soft ${drops ? "bad" : ""}`, x: x + 10, y: y + 36},
        drops ? `drops ${si(drops, "packet/s")}` : place.type));
    drawn.append(group);
  });
  byId("graph").replaceChildren(drawn);
}

function share(value) {
  return value === null ? "–" : `${(100 * value).toFixed(1)} %`;
}

function draw(state) {
  document.body.classList.toggle("gone", !state.up);
  byId("node").textContent = state.up
    ? `node ${state.pid}, version ${state.version}` : `the node is gone: ${state.problem}`;
  document.title = state.up ? `Convoy ${state.pid}` : "Convoy: gone";
  if (!state.up) return;
  totals(state);
  graph(state);
  table("drops", ["at", "reason", "rate", "packets"], state.drops.map((drop) => [
    [`${drop.of} (${drop.kind})`, ""], [drop.reason, drop.per_s ? "bad" : ""],
    [si(drop.per_s, "packet/s"), drop.per_s ? "number bad" : "number"],
    [drop.packets.toLocaleString("en"), "number"]]), "nothing was dropped");
  table("workers", ["worker", "core", "busy", "longest iteration"], state.workers.map((one, i) => [
    [String(i), ""], [String(one.core), "number"], [share(one.busy), "number"],
    [`${(1e6 * one.longest_s).toFixed(1)} µs`, "number"]]), "there are none");
  table("tables", ["table", "of", "used", "room"], state.tables.map((one) => [
    [one.name, ""], [one.what, ""], [one.used.toLocaleString("en"), "number"],
    [one.max ? `${one.max.toLocaleString("en")}, ${share(one.used / one.max)} used` : "–", "number"]]),
    "no function keeps flows");
  table("fill", ["next hop", "packets per frame"], state.fill.map((one) => [
    [one.name, ""], [one.packets_per_frame === null ? "–" : one.packets_per_frame.toFixed(2), "number"]]),
    "no next hops");
}

async function ask() {
  try {
    const answer = await fetch("state.json", {signal: AbortSignal.timeout(LATE_MS)});
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    draw(await answer.json());
    document.documentElement.dataset.drawn = "yes";
  } catch (error) {
    draw({up: false, problem: `convoy top does not answer (${error.message})`});
  }
  setTimeout(ask, PERIOD_MS);
}

ask();
