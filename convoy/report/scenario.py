# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page of a run: findings in words, figures beside the papers' numbers, tables, environment.

All of it is made of what is in the runs' folders; convoy/report/export.py says the same in other
formats.
"""

from typing import Any

from convoy.report import applications, paflow_figures
from convoy.report import scenario_figures as figures
from convoy.report.findings import findings, of_scenario, size_name
from convoy.report.paflow import memory_table
from convoy.report.paflow_summary import summary
from convoy.report.page import Cell, Column, Page, Value
from convoy.report.papers import beside
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.documents import Host

CLAIMS = (
    "The paper's machine and switch are others: only ratios and differences compare. Rates and "
    "latencies with convoys are compared round by round with those without, of the same device and "
    "functions; brackets have the rounds' extremes."
)
GOALS = ("pdr", "ndr", "rfc2544", "tst009")
NOT_HERE = (
    "Xen, netmap/VALE and thus ClickOS proper cannot run on Linux without their kernels: FastClick "
    "stands in for ClickOS."
)

READ = (
    "How to read it: a rate is the highest at which {lost}, as median [least .. most] of the "
    "rounds. What may be noise, or chance, is called no sure difference."
)


def _read(run: Run) -> str:
    """Return what stands below the findings, where there are rates."""
    goals = _goals(run)
    if not goals:
        return ""
    lost = "at most 0.5 % of the packets were lost (PDR)"
    return "\n\n" + READ.format(lost=lost if "pdr" in goals else f"{goals[0].upper()} was met")


def _goals(run: Run) -> list[str]:
    return [goal for goal in GOALS if any(goal in row.goals for row in run.rows)]


def _rate_cell(row: Row, goal: str) -> Value:
    rates = list(row.goals.get(goal, {}).values())
    middle = row.goal_pps(goal)
    if middle is None:
        return None
    spread = f"[{min(rates) / 1e6:.2f} .. {max(rates) / 1e6:.2f}]" if len(rates) > 1 else ""
    least = "≥ " if row.at_least and rates == list(row.rates_pps) else ""
    return Cell(middle, f"{least}{middle / 1e6:.2f} {spread}", "; ".join(row.irregular))


def _share(value: float | None) -> Value:
    return None if value is None else Cell(value, f"{value:.0%}")


def _us(value: float | None) -> Value:
    return None if value is None else Cell(value / 1e3, f"{value / 1e3:.1f}")


def rate_columns(run: Run) -> list[Column | str]:
    """Return the heading of the rates' table."""
    return [
        "setup",
        "device",
        Column("frame", "bytes", "with FCS; a mix by its mean"),
        *(
            Column(goal.upper(), "Mpps", "conditional throughput (RFC 9971): median [all repeats]")
            for goal in _goals(run)
        ),
        Column("max rx", "Mpps", "maximum receive rate: what came through under overload"),
        Column("", "Gb/s", "of frames with FCS, at the first rate"),
        Column(
            "cycles", "per packet", "busy TSC ticks by the device's own counters: who, on hover"
        ),
        Column("functions", "cyc/packet", "of these, in its functions (convoy counts them)"),
        Column("CPU", "of a core", "CPU time of the device's processes (/proc)"),
        Column("core", "busy", "of the device's core, whoever used it (/proc/stat)"),
        Column("trials", "(excluded)", "excluded: they say nothing about the device"),
    ]


def rate_values(run: Run, row: Row) -> list[Value]:
    """Return a row of it."""
    size = Cell(int(row.size)) if row.size.isdigit() else Cell(row.frame_bytes, row.size)
    cycles, overload = row.node_cycles_per_packet, row.overload_pps
    speed = f", {row.cpu_speed:.0%} of the core" if row.cpu_speed != 1 else ""
    return [
        row.setup + speed,
        Cell(row.name, row.name, "; ".join(row.notes)),
        size,
        *(_rate_cell(row, goal) for goal in _goals(run)),
        None if overload is None else Cell(overload, f"{overload / 1e6:.2f}"),
        None if row.gbps is None else Cell(row.gbps, f"{row.gbps:.2f}"),
        None if cycles is None else Cell(cycles, f"{cycles:.0f}", row.cycles_source),
        row.function_cycles_per_packet or None,
        _share(row.cpu_share),
        _share(row.core_share),
        Cell(row.trials, f"{row.trials} ({row.spoilt})" if row.spoilt else f"{row.trials}"),
    ]  # fmt: skip


LATENCY_COLUMNS: list[Column | str] = [
    "setup", "device", Column("frame", "bytes"), "load", Column("rate", "Mpps"),
    Column("p50", "us", "from the time at which a packet was due"), Column("p90", "us"),
    Column("p99", "us"), Column("p99.9", "us"), Column("most", "us"),
    Column("lost", "", "of all packets of these trials"),
    Column("a frame", "packets", "that came back together, on the mean; singly: 1"),
    Column("packets", "", "in the histogram"),
]  # fmt: skip


def delay_values(row: Row) -> list[list[Value]]:
    """Return a row's lines of the latency table."""
    out: list[list[Value]] = []
    for delay in row.delays:
        size = int(row.size) if row.size.isdigit() else row.size
        out.append(
            [
                row.setup, row.name, size, delay.load, Cell(delay.rate_pps, _rate(delay.rate_pps)),
                *(_us(delay.quantile(share)) for share in (0.5, 0.9, 0.99, 0.999, 1.0)),
                None if delay.lost_ratio is None else
                Cell(delay.lost_ratio, f"{delay.lost_ratio:.2%}" if delay.lost_ratio else "0"),
                Cell(delay.frames.per_frame, f"{delay.frames.per_frame:.2f}")
                if delay.frames else None,
                delay.count,
            ]
        )  # fmt: skip
    return out


def _rate(pps: float) -> str:
    return f"{pps / 1e6:.2f}" if pps >= 1e5 else f"{pps / 1e6:.4f}"


def _scenario(page: Page, run: Run, name: str) -> None:
    scenario, mine = run.scenarios[name], run.of(name)
    page.text(f"# {scenario.title} ({name})\n\n{scenario.asks} After {scenario.source}.")
    used = run.served(name)
    if not mine and not used and not scenario.in_memory:
        return
    lines = of_scenario(run, name)
    if lines and len(run.scenarios) > 1:
        page.text("\n".join(f"- {line}" for line in lines))
    setups = list(dict.fromkeys(row.setup for row in mine))
    by_setup = scenario.figure.x == "setup"
    sizes = list(dict.fromkeys(row.size for row in mine))
    drawn: list[tuple[Any, str]] = []
    for size in sizes[:2] if by_setup else ():
        caption = f"Rate by setup, {size_name(size)}: median, least and most."
        drawn.append((figures.by_setup(run, name, size), caption))
    for setup in setups if not by_setup else ():
        caption = f"{setup}: rate by frame size; median, least and most."
        drawn.append((figures.by_size(run, name, setup), caption))
        drawn.append((figures.by_size(run, name, setup, gbps=True), f"{setup}: the same in Gb/s."))
    for setup in setups if sizes else ():
        caption = f"{setup}, {size_name(sizes[0])}: rate by emulated CPU speed."
        drawn.append((figures.by_speed(run, name, setup, sizes[0]), caption))
    drawn.append((figures.latency_by_rate(run, name), "Median latency by rate."))
    caption = "Latency by percentile: all repeats' histograms added up."
    drawn.append((figures.percentiles(run, name), caption))
    drawn += paflow_figures.figures(run, name)
    for setup in dict.fromkeys(row.setup for row in used):
        caption = f"{setup}: iperf3 by UDP, by frame size; median, least and most."
        drawn.append((figures.served_by_size(run, name, setup), caption))
    page.figures(drawn)
    in_memory = memory_table(run, name)
    if in_memory is not None:
        page.table(in_memory.columns, in_memory.rows, caption=in_memory.title)
    for table in beside(run, name):
        page.text(f"## Beside the paper\n\n{' '.join(table.says)}" if table.says else
                  "## Beside the paper")  # fmt: skip
        page.table(table.columns, table.rows, caption=table.title)
    if any(row.rates_pps for row in mine):
        page.text("## Rates\n\nClick on a heading to sort.")
        page.table(rate_columns(run), [rate_values(run, row) for row in mine])
    delays = [line for row in mine for line in delay_values(row)]
    if delays:
        page.text("## Latency")
        page.table(LATENCY_COLUMNS, delays)
    if used:
        page.text(
            "## Applications\n\nReal servers and clients on two hosts (network namespaces), the "
            "function between them. Client and server share the tester's core; payload, not frames."
        )
        page.table(applications.COLUMNS, [applications.values(row) for row in used])
    lost: list[list[Value]] = [
        [row.setup, row.name, row.size, where, Cell(share, f"{share:.2%}")]
        for row in mine
        for where, share in row.lost
    ]
    if lost:
        page.text(
            "## Where packets were lost\n\nIn trials of the search that failed: a little above "
            "each device's rate."
        )
        page.table(["setup", "device", "frame", "where", Column("share", "of offered")], lost)
    odd = [
        [row.setup, row.name, row.size, text]
        for row in mine
        for text in (*row.irregular, *row.failed)
    ]
    if odd:
        page.text("## Irregular and failed")
        page.table(["setup", "device", "frame", "what the search said"], odd)


def environment(host: Host) -> list[list[Value]]:
    """Return what machine it was, as rows of a table."""
    shown = {
        "processor": host.cpu,
        "cores that may be used": ", ".join(map(str, host.cores_allowed)),
        "tester / device on core": f"{host.tester_core} / {host.device_core}",
        "frequency governor": host.governor or "none to be seen",
        "kernel": host.kernel,
        "hugepages": "used" if host.hugepages else "not used",
        "as root": "yes" if host.root else "no",
        "convoy": f"{host.convoy}, commit {host.commit or 'unknown'}",
        **{f"version of {name}": text for name, text in host.devices.items()},
        **{
            f"mitigation: {name}": text
            for name, text in host.mitigations.items()
            if text != "Not affected"
        },
    }
    if host.ceiling_pps:
        shown["tester's ceiling"] = f"{host.ceiling_pps / 1e6:.1f} Mpps (64 B, against itself)"
    return [[name, str(text)] for name, text in shown.items()]


def _when(started: str | None) -> str:
    return f"{started[:16].replace('T', ' ')} UTC" if started else "nobody knows when"


def page(run: Run) -> Page:
    """Return the page of a run."""
    host, plan = run.hosts[0], run.plans[0]
    runs = f"{len(run.folders)} runs, the first: " if len(run.folders) > 1 else ""
    quick = "quick: wider intervals, " if plan.quick else ""
    out = Page(
        ", ".join(run.scenarios),
        f"{runs}{quick}{plan.repeats} rounds, search: {plan.profile} "
        f"({', '.join(plan.goals)}); {host.cpu}, {len(host.cores)} cores, "
        f"{_when(host.started)}",
    )
    said = "\n".join(f"- {line}" for line in findings(run))
    out.text(f"# What was found\n\n{said}{_read(run)}")
    claims = summary(run)
    if claims is not None:
        out.text("# Aggregation, beside the paper\n\n" + CLAIMS)
        out.table(claims.columns, claims.rows, caption=claims.title)
    for name in run.scenarios:
        _scenario(out, run, name)
    cannot = list(dict.fromkeys(run.cannot))
    out.text(f"# What could not run here\n\n{NOT_HERE} No network card, no second NUMA node and no "
             "KVM unless the environment below says so.")  # fmt: skip
    if cannot:
        out.table(
            ["scenario", "setup", "device", "why"],
            [[c.scenario, c.setup or "all", c.device or "all", c.why] for c in cannot],
        )
    out.text(
        "# How it was measured\n\nThe tester on one core, the device on another. Devices took "
        "turns, round after round, and each was started afresh for its turn. Rates by MLRsearch "
        "(RFC 9971); PDR: at most 0.5 % lost, NDR: nothing. Trials whose load was not offered, or "
        "whose losses a pause of the machine explains, are excluded, counted and repeated. Latency "
        "counts from the time at which a packet was due. Cycles per packet are each device's own "
        "count; rates of devices are compared round by round.\n\n# Environment"
    )
    for one in run.hosts:
        out.table(["what", "here"], environment(one), False)
    out.text("# Commands\n\n```\n" + "\n".join(run.commands) + "\n```")
    return out
