# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The papers' tables beside ours. Their machines are others: cycles per packet and ratios are
compared, never rates."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from convoy import reference
from convoy.report.applications import Served
from convoy.report.document import Cell, Column, Table, Value, spread
from convoy.report.gains import bound, compared, pairs, saturation_gain
from convoy.report.row import Row, median
from convoy.report.run_data import Run
from convoy.results.trials import display_name

PAPERS = {  # the files that the tables' sources name
    "000": "Niu et al., Unveiling",
    "001": "Niu et al., Benchmarking",
    "002": "Niu et al., Unveiling",
    "003": "data plane versus VNF",
    "004": "PA-Flow",
}
FUNCTION = {"L3FWD": "router", "Firewall": "firewall"}  # Niu's names, and our setups'
RATIO = "paflow-table2-aggregation-ratio"
DROPS = "paflow-table3-drops"
FAR = 1.5  # times the paper's ratio, or one part in so many of it: it is not reproduced
FRAME = Column("frame", "bytes")
AnyRow = TypeVar("AnyRow", Row, Served)


def source(row: Mapping[str, str]) -> str:
    """Return where a number of a paper stands."""
    paper, _, place = row["source"].partition(" ")
    return f"{PAPERS.get(paper, paper)}, {place}"


def _clean(rows: tuple[Row, ...]) -> list[Row]:
    return [r for r in rows if r.contends and r.rate_pps]


def _number(value: float | None, form: str = ".2f", note: str = "") -> Value:
    return None if value is None else Cell(value, f"{value:{form}}", note)


def _size(text: str) -> Value:
    return int(text) if text.isdigit() else text


def _table1(run: Run, scenario: str) -> Table:
    """Niu Table 1: 64 B, one core, by clock. Cycles per packet = clock / rate."""
    out = Table(
        ["who", "function", Column("clock", "GHz"), Column("rate", "Mpps"),
         Column("cycles", "per packet"), "source"],
        title="Cycles per packet, 64 B: clock / rate. The papers: one vCPU, and the switch's own "
        "cores beside it; here: one core",
        page_only=True,
    )  # fmt: skip
    for cell in reference.table("niu-table1-throughput-64B"):
        ghz, rate = float(cell["cpu_ghz"]), float(cell["mpps"])
        if ghz in (1.2, 2.6):
            out.add(cell["dataplane"], FUNCTION[cell["network_function"]], ghz, rate,
                    _number(ghz * 1e3 / rate, ".0f"), source(cell))  # fmt: skip
    mine = [row for row in _clean(run.of(scenario)) if row.size == "64"]
    for row in mine:
        if row.device != "dummy" and row.tsc_hz is not None:
            rate = (row.rate_pps or 0) / 1e6
            out.add(row.name, row.setup, _number(row.tsc_hz / 1e9), _number(rate),
                    _number(row.tsc_hz / 1e6 / rate, ".0f"), "this run (TSC)")  # fmt: skip
    both = []
    for name in run.names(scenario):
        known = {row.setup: row for row in mine if row.name == name}
        firewall, router = known.get("firewall"), known.get("router")
        if not (firewall and firewall.rate_pps and router and router.rate_pps):
            continue
        if not (firewall.lower_bound and router.lower_bound):
            ratio = firewall.rate_pps / router.rate_pps
            both.append(f"{name} {bound(firewall, router)}{ratio:.2f}")
    if both:
        out.notes.append(
            "Firewall over router, by rate: the paper's BESS 1.03 and ClickOS 0.94 at 2.6 GHz; "
            f"here {', '.join(both)}."
        )
    return out


def _latency(run: Run, scenario: str) -> Table:
    """Niu Fig. 5 and section 5.2."""
    out = Table(
        ["who", "what", FRAME, "rate", Column("latency", "us"), "source"],
        title="Latency",
        page_only=True,
    )
    for row in reference.table("niu-latency"):
        out.add(row["dataplane"], row["scenario"], int(row["packet_bytes"]), row["rate"],
                float(row["latency_us"]), source(row))  # fmt: skip
    for mine in (row for row in run.of(scenario) if row.role == "device"):
        for delay in mine.delays:
            p50 = delay.quantile(0.5)
            if p50 is not None:
                out.add(mine.name, mine.setup, _size(mine.size), delay.load,
                        _number(p50 / 1e3, ".1f", "median"), "this run")  # fmt: skip
    return out


def _rules_and_vm() -> Iterator[tuple[str, str, float, float, str]]:
    """Yield function, frame size, Mbit/s as switch rules, in a VM, and the source: Table II."""
    for row in reference.table("dataplane-vs-vnf-table2-mbps"):
        for name in ("firewall", "router"):
            rules, machine = float(row[f"dataplane_{name}"]), float(row[f"vm_{name}"])
            yield name, row["packet_bytes"], rules, machine, source(row)


# The run, the device, and what a setup's name says beside the function: "in a VM".
Deployment = tuple[str, str, str]
RULES = "ovs-dpdk"


def _deployment(row: Row | Served, function: str) -> Deployment:
    return row.run, row.device, row.setup.removeprefix(function).strip()


def _deployments(rows: Iterable[tuple[Row | Served, str]]) -> list[Deployment]:
    return list(dict.fromkeys(_deployment(*row) for row in rows))


def _called(deployment: Deployment) -> str:
    run, device, where = deployment
    return display_name(f"{device} {where}".strip(), run=run)


def _of_one(run: Run, scenario: str, rows: Iterable[AnyRow]) -> list[tuple[AnyRow, str]]:
    """Return the rows of setups of one function, and which it is."""
    setups = run.scenarios[scenario].setups
    each = ((row, setups[row.setup].functions) for row in rows if row.setup in setups)
    return [(row, functions[0]) for row, functions in each if len(functions) == 1]


def _dataplane_vs_vnf(run: Run, scenario: str) -> Table:
    """Data plane versus VNF, Table II: a function as switch rules over the same in a VM."""
    mine = _of_one(run, scenario, _clean(run.of(scenario)))
    others = [one for one in _deployments(mine) if one[1] not in (RULES, "dummy")]
    rates = {(*_deployment(row, name), name, row.size): row.rate_pps for row, name in mine}
    out = Table(
        ["function", FRAME, Column("paper", "rules / VM"),
         *(Column(_called(one), f"{RULES} / it") for one in others)],
        title="Switch rules over other deployments: ratio of rates at the same frame size",
    )  # fmt: skip
    for name, size, rules, machine, where in _rules_and_vm():
        line: list[Value] = [name, int(size), _number(rules / machine, note=where)]
        for one in others:  # rates are divided within one run only
            ours, other = (rates.get((*who, name, size)) for who in ((one[0], RULES, ""), one))
            line.append(_number(ours / other if ours and other else None))
        out.add(*line)
    return out


def _applications(run: Run, scenario: str) -> Table:
    """Data plane versus VNF, Table II, as the paper measured it: applications, by payload."""
    mine = _of_one(run, scenario, run.served(scenario))
    who = _deployments(mine)
    speeds = {
        (*_deployment(row, name), name, row.application, row.frame_bytes): row.median("mbps")
        for row, name in mine
    }
    behind = [one for one in who if one[1] == f"{RULES}+vnf" and (one[0], RULES, "") in who]
    out = Table(
        ["application", "function", FRAME, Column("paper", "rules"), Column("paper", "VM"),
         Column("paper", "rules / VM"),
         *(Column(_called(one), "here") for one in who),
         *(Column(_called(one), "rules / it") for one in behind)],
        title="Applications through the function, Mbit/s of payload; iperf3-udp by frame size (the "
        "paper: len)",
    )  # fmt: skip
    paper = {(one[0], int(one[1])): one[2:] for one in _rules_and_vm()}
    for name, app, size in dict.fromkeys(
        (name, row.application, row.frame_bytes) for row, name in mine
    ):
        here = [speeds.get((*one, name, app, size)) for one in who]
        line: list[Value] = [app, name, size, None, None, None]
        if size is not None and (name, size) in paper:
            rules, machine, where = paper[name, size]
            line[3:] = [rules, machine, _number(rules / machine, note=where)]
        line += [_number(value, ".1f") for value in here]
        for one in behind:
            ours = speeds.get((one[0], RULES, "", name, app, size))
            other = speeds.get((*one, name, app, size))
            line.append(_number(ours / other if ours and other else None))
        out.add(*line)
    out.notes.append(
        "The paper's virtual interfaces were limited to 1 Gbit/s, client and server had cores of "
        "their own, and its VM ran under KVM. It has no numbers of HTTP and FTP but in figures."
    )
    return out


def _clickos_cpu(run: Run, scenario: str) -> Table:
    """Niu, Benchmarking, Table 2: ClickOS's CPU use by frame size."""
    loads = [f"{load:.0%} of PDR" for load in run.scenarios[scenario].latency if load != "idle"]
    out = Table(
        ["who", FRAME, Column("CPU", "%", "time of its processes (/proc)"),
         Column("core", "%", "busy, whoever used it (/proc/stat)"),
         Column("busy cycles", "%", "ticks spent on packets, by the device's own counters"),
         *(Column("busy cycles", f"% at {load}") for load in loads), "source"],
        title="CPU use by frame size, per cent of a core, at the highest rate without loss. A poll "
        "loop takes its core at any load; its busy cycles are what packets take of it",
    )  # fmt: skip
    for row in reference.table("niu-table2-clickos-cpu"):
        used = float(row["cpu_utilisation_percent"])
        out.add("ClickOS", int(row["packet_bytes"]), used, *[None] * (2 + len(loads)), source(row))
    for mine in _clean(run.of(scenario)):
        if mine.size.isdigit():
            delays = [mine.delay(load) for load in loads]
            shares = [mine.cpu_share, mine.core_share, median(mine.busy_shares)]
            shares += [median(delay.busy_shares) if delay else None for delay in delays]
            out.add(
                f"{mine.name}, {mine.setup}", int(mine.size),
                *(_number(None if one is None else 100 * one, ".0f") for one in shares),
                "this run",
            )  # fmt: skip
    return out


def ratios(run: Run, scenario: str) -> Table:
    """PA-Flow, Table 2: frames / packets, by rate."""
    mine = [r for r in run.of(scenario) if r.contends and any(d.frames for d in r.delays)]
    out = Table(
        [Column("rate", "Mpps"), Column("paper, even", "%"), Column("paper, bursts of 32", "%"),
         *(Column(f"{row.setup}, {row.name}", "%") for row in mine)],
        title="Aggregation ratio: frames / packets, per cent (the paper: after / before "
        "aggregation)",
    )  # fmt: skip
    paper = {float(row["rx_rate_pps"]): row for row in reference.table(RATIO)}
    for rate in sorted({*paper, *(d.rate_pps for row in mine for d in row.delays)}):
        line: list[Value] = [_number(rate / 1e6, "g")]
        for name in ("non_bursty_percent", "bursty_percent"):
            cells = paper.get(rate)
            line.append(Cell(float(cells[name]), "", source(cells)) if cells else None)
        for row in mine:
            result = next((d.frames for d in row.delays if d.rate_pps == rate), None)
            note = f"{result.per_frame:.2f} packets in a frame" if result else ""
            line.append(_number(result.ratio_percent if result else None, ".1f", note))
        out.add(*line)
    out.notes += _contradicted(mine, paper)
    return out


def _contradicted(rows: Sequence[Row], paper: Mapping[float, Mapping[str, str]]) -> Iterator[str]:
    """Yield where the ratios are far from the paper's: for even traffic, and for its bursts."""
    for row in rows:
        name = "non_bursty_percent" if row.conditions.evenly else "bursty_percent"
        both = [
            (delay.rate_pps, delay.frames.ratio_percent, float(paper[delay.rate_pps][name]))
            for delay in row.delays
            if delay.frames and delay.rate_pps in paper
        ]
        far = [one for one in both if not 1 / FAR <= one[1] / one[2] <= FAR]
        if far:
            each = ", ".join(
                f"{at / 1e6:g} Mpps {here:.1f} % ({there:g} %)" for at, here, there in far
            )
            yield (
                f"{row.setup}, {row.name}: Table 2 is not reproduced at {len(far)} of {len(both)} "
                f"rates, here (in the paper): {each}."
            )


def drops(run: Run, scenario: str) -> Table:
    """PA-Flow, Table 3 and Figure 12: what was lost, and how long the loss periods were."""
    mine = [row for row in run.of(scenario) if row.contends and row.delays]
    out = Table(
        [Column("rate", "Mpps"), Column("paper", "PA-Flow / default")],
        title="Dropped packets: with convoys over without (the paper), and shares of what was "
        "offered",
    )
    for row in mine:
        out.columns.append(Column(row.setup, "lost, per cent"))
        help_text = "half of the lost packets were in loss periods (RFC 3357) of up to so many"
        out.columns.append(Column("loss period", "packets", help_text))
    paper = {
        float(row["rx_rate_pps"]): float(row["drops_paflow"]) / float(row["drops_default"])
        for row in reference.table(DROPS)
    }
    for rate in sorted({*paper, *(d.rate_pps for row in mine for d in row.delays)}):
        line: list[Value] = [_number(rate / 1e6, "g"), _number(paper.get(rate))]
        for row in mine:
            delay = next((d for d in row.delays if d.rate_pps == rate), None)
            lost = delay.lost_ratio if delay else None
            line.append(_number(None if lost is None else 100 * lost, ".3g"))
            line.append(delay.median_loss_period if delay and lost else None)
        out.add(*line)
    return out


def saturation(run: Run, scenario: str) -> Table:
    """Rates at closed-loop saturation, in a second and in a second of CPU time."""
    out = Table(
        ["setup", "device", FRAME, Column("rate", "Mpps"),
         Column("per CPU second", "M packets"),
         Column("cycles", "per packet", "busy TSC ticks by the device's own counters"),
         Column("busy", "%", "of the trial, by the same counters; less: it waited for the tester"),
         "with / without", "with / without, per CPU second"],
        title="Closed-loop saturation: the tester waits for the device; median and range of "
        "all trials",
    )  # fmt: skip
    plains = {id(row): plain for row, plain in pairs(run, scenario)}
    for row in (row for row in run.of(scenario) if row.saturation_pps):
        line: list[Value] = [row.setup, Cell(row.name, row.name, "; ".join(row.notes)), row.size]
        for rounds, unit, digits in (
            (row.saturation_pps, 1e6, 2),
            (row.per_cpu_s, 1e6, 2),
            (row.saturation_cycles, 1, 0),
            (row.saturation_busy, 0.01, 0),
        ):
            line.append(spread([v for values in rounds.values() for v in values], unit, digits))
        plain = plains.get(id(row))
        for name in ("saturation_pps", "per_cpu_s"):
            line.append(spread((plain and saturation_gain(row, plain, name)) or ()))
        out.add(*line)
    return out


def sides(run: Run, scenario: str) -> Table:
    """What a switch and each VNF behind it spend on a packet, by their own counters."""
    out = Table(
        ["setup", "device", FRAME, "part", Column("cycles", "per packet that came through")],
        title="Each side's own cycles: busy TSC ticks, median and range of all trials",
    )
    for row in run.of(scenario):
        for name, cycles in row.part_cycles.items():
            out.add(row.setup, row.name, row.size, name, spread(cycles, 1, 0))
    return out


def setups_compared(run: Run, scenario: str) -> Table:
    """What a scenario's `compare` names, beside target and paper."""
    out = Table(
        ["setup", "over", "device", FRAME, Column("rate", "x"),
         Column("cycles per packet", "x"), Column("target", "x", "ours, for the rate"), "paper",
         Column("waited", "for the tester", "could have taken more: compare cycles, not rates")],
        title="Closed-loop saturation, one setup over another: median and range of the rounds",
    )  # fmt: skip
    for one in compared(run, scenario):
        out.add(one.setup, one.over, one.name, one.size, spread(one.rate),
                spread(one.cycles or ()), _number(one.target, "g"), one.paper or None,
                ", ".join(one.waited) or None)  # fmt: skip
    return out


def in_memory(run: Run, scenario: str) -> Table:
    """Return what was measured in memory for a scenario, cycles per packet."""
    out = Table(
        ["what", "case", Column("cycles", "per packet"), "range"],
        title="In memory: TSC ticks per packet, median and range",
    )
    for one in (one for one in run.memory if one.scenario == scenario):
        for case, name, value in one.figures():
            part = "" if name == "cycles_per_packet" else f", {name.replace('_', ' ')}"
            out.add(one.what, case + part, _number(value["median"], ".1f"),
                    f"[{value['min']:.1f} .. {value['max']:.1f}]")  # fmt: skip
    return out


def simulated(run: Run, scenario: str) -> Table:
    """Return what was simulated for a scenario."""
    out = Table(
        ["topology", "link", Column("mean frame", "bytes"), "range",
         Column("frames", "per packet"), "range"],
        title="Simulated, with aggregation: median and range over seeds",
    )  # fmt: skip
    for one in (one for one in run.simulated if one.scenario == scenario):
        for row in one.rows():
            cells: list[str] = []
            for name, digits in (("mean_bytes", ".1f"), ("frames_per_packet", ".4f")):
                values = row[name]
                cells.append(f"{statistics.median(values):{digits}}")
                cells.append(f"[{min(values):{digits}} .. {max(values):{digits}}]")
            out.add(row["topology"], row["link"], *cells)
    return out


def _plain(name: str) -> Table:
    """Return a table that we have nothing to put beside yet, as it is."""
    rows = reference.table(name)
    values = ([*list(row.values())[:-1], source(row)] for row in rows)
    return Table(list(rows[0]), list(values), title=f"The paper's {name}", page_only=True)


TABLES = {
    "niu-table1-throughput-64B": _table1,
    "niu-latency": _latency,
    "niu-table2-clickos-cpu": _clickos_cpu,
    "dataplane-vs-vnf-table2-mbps": _dataplane_vs_vnf,
    RATIO: ratios,
    DROPS: drops,
}


def beside(run: Run, scenario: str) -> list[Table]:
    """Return the papers' tables that a scenario names, with our numbers beside theirs."""
    names = run.scenarios[scenario].references
    sent = any(row.rates_pps for row in run.of(scenario))
    result = [
        TABLES[n](run, scenario) if n in TABLES else _plain(n)
        for n in names
        if sent or n != "dataplane-vs-vnf-table2-mbps"
    ]
    if run.scenarios[scenario].saturation:
        result.append(saturation(run, scenario))
    if any(row.part_cycles for row in run.of(scenario)):
        result.append(sides(run, scenario))
    if run.scenarios[scenario].compare:
        result.append(setups_compared(run, scenario))
    if "dataplane-vs-vnf-table2-mbps" in names and run.served(scenario):
        result.append(_applications(run, scenario))
    return [table for table in result if table.rows]
