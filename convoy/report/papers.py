# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The papers' numbers beside ours. Their machines are others: cycles per packet and ratios are
compared, never rates."""

from convoy import reference
from convoy.report import paflow
from convoy.report.beside import Beside, source
from convoy.report.compared import table as compared_table
from convoy.report.page import Cell, Column, Value
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.trials import display_name

FUNCTION = {"L3FWD": "router", "Firewall": "firewall"}  # Niu's names, and our setups'


def _clean(rows: tuple[Row, ...]) -> list[Row]:
    return [r for r in rows if r.contends and r.rate_pps]


def _table1(run: Run, scenario: str) -> Beside:
    """Niu Table 1: 64 B, one core, by clock. Cycles per packet = clock / rate."""
    out = Beside(
        "Cycles per packet, 64 B: clock / rate. The papers: one vCPU, and the switch's own cores "
        "beside it; here: one core",
        ["who", "function", Column("clock", "GHz"), Column("rate", "Mpps"),
         Column("cycles", "per packet"), "source"],
    )  # fmt: skip
    for cell in reference.table("niu-table1-throughput-64B"):
        ghz, rate = float(cell["cpu_ghz"]), float(cell["mpps"])
        if ghz in (1.2, 2.6):
            out.rows.append(
                [cell["dataplane"], FUNCTION[cell["network_function"]], ghz, rate,
                 Cell(ghz * 1e3 / rate, f"{ghz * 1e3 / rate:.0f}"), source(cell)]
            )  # fmt: skip
    mine = [row for row in _clean(run.of(scenario)) if row.size == "64"]
    for row in mine:
        if row.device == "dummy" or run.tsc_hz is None:
            continue
        rate = (row.rate_pps or 0) / 1e6
        cycles = run.tsc_hz / 1e6 / rate
        out.rows.append(
            [row.name, row.setup, Cell(run.tsc_hz / 1e9, f"{run.tsc_hz / 1e9:.2f}"),
             Cell(rate, f"{rate:.2f}"), Cell(cycles, f"{cycles:.0f}"), "this run (TSC)"]
        )  # fmt: skip
    pairs = []
    for name in run.names(scenario):
        rates = {row.setup: row.rate_pps for row in mine if row.name == name}
        if rates.get("router") and rates.get("firewall"):
            pairs.append(f"{name} {(rates['firewall'] or 0) / (rates['router'] or 1):.2f}")
    if pairs:
        out.says.append(
            "Firewall over router, by rate: the paper's BESS 1.03 and ClickOS 0.94 at 2.6 GHz; "
            f"here {', '.join(pairs)}."
        )
    return out


def _latency(run: Run, scenario: str) -> Beside:
    """Niu Fig. 5 and section 5.2."""
    out = Beside(
        "Latency",
        ["who", "what", Column("frame", "bytes"), "rate", Column("latency", "us"), "source"],
    )
    for row in reference.table("niu-latency"):
        out.rows.append(
            [row["dataplane"], row["scenario"], int(row["packet_bytes"]), row["rate"],
             float(row["latency_us"]), source(row)]
        )  # fmt: skip
    for mine in run.of(scenario):
        if mine.role == "control":
            continue
        for delay in mine.delays:
            p50 = delay.quantile(0.5)
            if p50 is not None:
                size = int(mine.size) if mine.size.isdigit() else mine.size
                out.rows.append(
                    [mine.name, mine.setup, size, delay.load,
                     Cell(p50 / 1e3, f"{p50 / 1e3:.1f}", "median"), "this run"]
                )  # fmt: skip
    return out


def _dataplane_vs_vnf(run: Run, scenario: str) -> Beside:
    """Data plane versus VNF, Table II: a function as switch rules over the same in a VM."""
    out = Beside(
        "Switch rules over other deployments: ratio of rates at the same frame size",
        ["function", Column("frame", "bytes"), Column("paper", "rules / VM")],
    )
    mine = _clean(run.of(scenario))
    # Rates are divided within one run only.
    others = list(dict.fromkeys(
        (row.run, row.device) for row in mine if row.device not in ("ovs-dpdk", "dummy")
    ))  # fmt: skip
    rates = {(row.setup, row.run, row.device, row.size): row.rate_pps or 0.0 for row in mine}
    out.columns += [
        Column(display_name(device, run=name), "ovs-dpdk / it") for name, device in others
    ]
    for row in reference.table("dataplane-vs-vnf-table2-mbps"):
        size = row["packet_bytes"]
        for name in ("firewall", "router"):
            paper = float(row[f"dataplane_{name}"]) / float(row[f"vm_{name}"])
            line: list[Value] = [name, int(size), Cell(paper, f"{paper:.2f}", source(row))]
            for where, device in others:
                rules = rates.get((name, where, "ovs-dpdk", size))
                other = rates.get((name, where, device, size))
                ratio = rules / other if rules and other else None
                line.append(Cell(ratio, f"{ratio:.2f}") if ratio else None)
            out.rows.append(line)
    return out


def _applications(run: Run, scenario: str) -> Beside:
    """Data plane versus VNF, Table II, as the paper measured it: iperf3 through the function."""
    out = Beside(
        "iperf3 through the function, by frame size (the paper: len), Mbit/s",
        ["function", Column("frame", "bytes"), Column("paper", "rules"), Column("paper", "VM"),
         Column("paper", "rules / VM")],
    )  # fmt: skip
    mine = [row for row in run.served(scenario) if row.application == "iperf3-udp"]
    who = list(dict.fromkeys((row.run, row.device) for row in mine))
    speeds = {
        (row.setup, row.run, row.device, str(row.frame_bytes)): row.median("mbps") for row in mine
    }
    out.columns += [Column(display_name(device, run=where), "here") for where, device in who]
    both = [where for where, device in who if device == "vm" and (where, "ovs-dpdk") in who]
    out.columns += [Column(display_name("here", run=where), "rules / VM") for where in both]
    for row in reference.table("dataplane-vs-vnf-table2-mbps"):
        size = row["packet_bytes"]
        for name in ("firewall", "router"):
            here = [speeds.get((name, *one, size)) for one in who]
            if not any(here):
                continue
            rules, machine = float(row[f"dataplane_{name}"]), float(row[f"vm_{name}"])
            ratio = Cell(rules / machine, f"{rules / machine:.2f}", source(row))
            line: list[Value] = [name, int(size), rules, machine, ratio]
            line += [None if v is None else Cell(v, f"{v:.1f}") for v in here]
            for where in both:
                ours, vm = (speeds.get((name, where, d, size)) for d in ("ovs-dpdk", "vm"))
                line.append(Cell(ours / vm, f"{ours / vm:.2f}") if ours and vm else None)
            out.rows.append(line)
    out.says.append(
        "The paper's virtual interfaces were limited to 1 Gbit/s, client and server had cores of "
        "their own, and its VM ran under KVM."
    )
    return out


def _clickos_cpu(run: Run, scenario: str) -> Beside:
    """Niu, Benchmarking, Table 2: ClickOS's CPU use by frame size."""
    out = Beside(
        "CPU use by frame size, per cent of a core",
        ["who", Column("frame", "bytes"), Column("CPU", "%"), "source"],
    )
    for row in reference.table("niu-table2-clickos-cpu"):
        used = float(row["cpu_utilisation_percent"])
        out.rows.append(["ClickOS", int(row["packet_bytes"]), used, source(row)])
    for mine in _clean(run.of(scenario)):
        if mine.cpu_share is not None and mine.size.isdigit():
            out.rows.append(
                [f"{mine.name}, {mine.setup}", int(mine.size),
                 Cell(100 * mine.cpu_share, f"{100 * mine.cpu_share:.0f}"), "this run (/proc)"]
            )  # fmt: skip
    return out


def _plain(name: str) -> Beside:
    """A table that we have nothing to put beside yet, as it is."""
    rows = reference.table(name)
    out = Beside(f"The paper's {name}", list(rows[0]))
    out.rows = [[*list(row.values())[:-1], source(row)] for row in rows]
    return out


TABLES = {
    "niu-table1-throughput-64B": _table1,
    "niu-latency": _latency,
    "niu-table2-clickos-cpu": _clickos_cpu,
    "dataplane-vs-vnf-table2-mbps": _dataplane_vs_vnf,
    paflow.RATIO: paflow.ratios,
    paflow.DROPS: paflow.drops,
}


def beside(run: Run, scenario: str) -> list[Beside]:
    """Return the papers' tables that a scenario names, with our numbers beside theirs."""
    names = run.scenarios[scenario].references
    sent = any(row.rates_pps for row in run.of(scenario))
    found = [
        TABLES[n](run, scenario) if n in TABLES else _plain(n)
        for n in names
        if sent or n != "dataplane-vs-vnf-table2-mbps"
    ]
    if run.scenarios[scenario].full_speed:
        found.append(paflow.full_speed(run, scenario))
    if run.scenarios[scenario].compare:
        found.append(compared_table(run, scenario))
    if "dataplane-vs-vnf-table2-mbps" in names and run.served(scenario):
        applied = _applications(run, scenario)
        found += [applied] if applied.rows else []
    return found
