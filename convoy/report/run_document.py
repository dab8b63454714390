# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The document of a run: findings, figures and tables beside the papers', environment.

All of it is made of what is in the runs' folders.
"""

from convoy.report import applications, changes, targets
from convoy.report.claims import summary
from convoy.report.document import Cell, Code, Column, Document, Table, Value, spread
from convoy.report.figures import figures
from convoy.report.findings import findings, of_scenario
from convoy.report.ledger.page import Claims, section
from convoy.report.papers import beside, in_memory, simulated
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
    "stands in for ClickOS. No network card, no second NUMA node and no KVM unless the environment "
    "below says so."
)
READ = (
    "How to read it: a rate is the highest at which {lost}, as median [least .. most] of the "
    "rounds. A difference within the noise floor, or of chance, is not significant."
)
METHOD = (
    "The tester runs on one core, the device on another. Device runs alternate, round after round; "
    "each starts the device anew. Rates by MLRsearch (RFC 9971); PDR: at most 0.5 % lost, "
    "NDR: nothing. Trials that did not reach the offered load, or whose losses are explained by "
    "preemption, are discarded, counted and repeated. Latency counts from the time at which a "
    "packet was due. Cycles per packet are each device's own count; rates of devices are compared "
    "round by round."
)
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


def _goals(run: Run) -> list[str]:
    return [goal for goal in GOALS if any(goal in row.goals for row in run.rows)]


def _read(run: Run) -> str:
    """Return what stands below the findings, where there are rates."""
    goals = _goals(run)
    if not goals:
        return ""
    lost = "at most 0.5 % of the packets were lost (PDR)"
    return "\n\n" + READ.format(lost=lost if "pdr" in goals else f"{goals[0].upper()} was met")


def _shown(value: float | None, form: str, unit: float = 1.0, note: str = "") -> Value:
    return None if value is None else Cell(value, f"{value / unit:{form}}", note)


def _size(row: Row) -> Value:
    return Cell(int(row.size) if row.size.isdigit() else row.frame_bytes, row.size)


def _rate(row: Row, goal: str) -> Value:
    rates = list(row.goals.get(goal, {}).values())
    rate = spread(rates, 1e6, note="; ".join(row.irregular))
    if row.lower_bound and isinstance(rate, Cell) and rates == list(row.rates_pps):
        return Cell(rate.value, f"≥ {rate.text}", rate.note)
    return rate


def rates(run: Run, rows: list[Row]) -> Table:
    """Return the rates, costs and counts of trials."""
    goals = _goals(run)
    rate_help = "conditional throughput (RFC 9971): median [all rounds]"
    out = Table([
        "setup",
        "device",
        Column("frame", "bytes", "with FCS; a mix by its mean"),
        *(Column(goal.upper(), "Mpps", rate_help) for goal in goals),
        Column("MRR", "Mpps", "maximum receive rate: received at all that the tester can send",
               page_only=True),
        Column("", "Gb/s", "of frames with FCS, at the first rate", page_only=True),
        Column("cycles", "/packet",
               "busy TSC ticks by the device's own counters: who, on hover"),
        Column("functions", "/packet", "of these, in its functions (convoy counts them)"),
        Column("p50", "us", "latency at half of PDR, from the time at which a packet was due"),
        Column("CPU", "of a core", "CPU time of the device's processes (/proc)", page_only=True),
        Column("core", "busy", "of the device's core, whoever used it (/proc/stat)",
               page_only=True),
        Column("trials", "(invalid)", "invalid: they show nothing about the device",
               page_only=True),
    ])  # fmt: skip
    for row in (row for row in rows if row.rates_pps):
        speed = f", {row.cpu_speed:.0%} of the core" if row.cpu_speed != 1 else ""
        out.add(
            row.setup + speed,
            Cell(row.name, row.name, "; ".join(row.notes)),
            _size(row),
            *(_rate(row, goal) for goal in goals),
            _shown(row.mrr_pps, ".2f", 1e6),
            _shown(row.gbps, ".2f"),
            _shown(row.node_cycles_per_packet, ".0f", note=row.cycles_source),
            _shown(row.function_cycles_per_packet or None, ".0f"),
            _shown(row.p50_ns, ".1f", 1e3),
            _shown(row.cpu_share, ".0%"),
            _shown(row.core_share, ".0%"),
            Cell(row.trials, f"{row.trials} ({row.invalid})" if row.invalid else f"{row.trials}"),
        )
    return out


def latencies(rows: list[Row]) -> Table:
    """Return the latency of each row at each load."""
    out = Table([
        "setup", "device", Column("frame", "bytes"), "load", Column("rate", "Mpps"),
        Column("p50", "us", "from the time at which a packet was due"), Column("p90", "us"),
        Column("p99", "us"), Column("p99.9", "us"), Column("most", "us"),
        Column("lost", "", "of all packets of these trials"),
        Column("reordered", "", "of those that came back: after a later one of their flow"),
        Column("a frame", "packets", "that came back together, on the mean; singly: 1"),
        Column("CPU", "us/packet", "CPU time of the device's processes (/proc)"),
        Column("cycles", "/packet", "busy TSC ticks by the device's own counters"),
        Column("packets", "", "in the histogram"),
    ], page_only=True)  # fmt: skip
    for row in rows:
        for delay in row.delays:
            out.add(
                row.setup, row.name, _size(row), delay.load,
                _shown(delay.rate_pps, ".2f" if delay.rate_pps >= 1e5 else ".4f", 1e6),
                *(_shown(delay.quantile(share), ".1f", 1e3) for share in QUANTILES),
                _shown(delay.lost_ratio, ".2%" if delay.lost_ratio else ".0f"),
                _shown(delay.reordered_ratio, ".2%" if delay.reordered_ratio else ".0f"),
                _shown(delay.frames.per_frame if delay.frames else None, ".2f"),
                _shown(delay.cpu_us_per_packet, ".3f"),
                _shown(delay.cycles_per_packet, ".0f"),
                delay.count,
            )  # fmt: skip
    return out


def _add_scenario(out: Document, run: Run, name: str) -> None:
    scenario, mine = run.scenarios[name], list(run.of(name))
    out.text(f"## {scenario.title} ({name})\n\n{scenario.asks} Source: {scenario.source}.")
    used = run.served(name)
    if not mine and not used and not scenario.in_memory and not scenario.simulated:
        return
    if len(run.scenarios) > 1:
        out.text("\n".join(f"- {line}" for line in of_scenario(run, name)), page_only=True)
    out.add(*figures(run, name))
    out.add(in_memory(run, name), simulated(run, name))
    papers = beside(run, name)
    if papers:
        out.text("### Beside the papers", page_only=all(table.page_only for table in papers))
        out.add(*papers)
    sections = (
        ("### Targets", TARGETS, targets.table(run, name)),
        ("### Captures", CAPTURES, _captures(run, name)),
        ("### Rates", "Bars and brackets: the rounds' extremes.", rates(run, mine)),
        ("### Latency", "", latencies(mine)),
        ("### Changes while packets flow", changes.HOW, changes.table(run, name)),
        ("### Applications", applications.HOW, applications.table(used)),
        ("### Where packets were lost", LOST, _lost(mine)),
        ("### Irregular and failed", "", _irregular(mine)),
    )
    for head, text, table in sections:
        if table.rows:
            out.text(f"{head}\n\n{text}", page_only=table.page_only)
            out.add(table)


TARGETS = "Rates of packets or, of setups with connections, of new connections."
CAPTURES = (
    "Replayed with the addresses and ports of benchmark traffic; sizes, order, flows and payloads "
    "are the file's."
)
LOST = "In trials of the search that failed: a little above each device's rate."


def _lost(rows: list[Row]) -> Table:
    return Table(
        ["setup", "device", "frame", "where", Column("share", "of offered")],
        [
            [row.setup, row.name, row.size, where, Cell(share, f"{share:.2%}")]
            for row in rows
            for where, share in row.lost
        ],
        page_only=True,
    )


def _captures(run: Run, name: str) -> Table:
    """Return what the captures are that stand for frame sizes, in whichever of the runs."""
    scenarios = (plan.scenarios.get(name) for plan in run.plans)
    out = Table([
        "capture",
        "packets",
        "flows",
        Column("frame", "bytes", "mean, with FCS and with what the tester needs behind short ones"),
        Column("sha256", "", "of the file, its beginning: the whole on hover"),
        Column("filled up", "packets", "a part was captured, the rest is zeros", page_only=True),
        Column("not sent", page_only=True),
    ])  # fmt: skip
    captures = (c for scenario in scenarios if scenario is not None for c in scenario.captures)
    for one in dict.fromkeys(captures):
        if one.contents is not None:
            its, digest = one.contents, Cell(one.sha256, one.sha256[:12], one.sha256)
            out.add(str(one), its.packets, its.flows, its.mean_bytes, digest, its.filled,
                    its.left_out)  # fmt: skip
    return out


def _irregular(rows: list[Row]) -> Table:
    return Table(
        ["setup", "device", "frame", "remark of the search"],
        [
            [row.setup, row.name, row.size, text]
            for row in rows
            for text in (*row.irregular, *row.failed)
        ],
        page_only=True,
    )


def environment(host: Host) -> Table:
    """Return what machine it was."""
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
    shown |= {f"tester's interface {name}": text for name, text in host.nics.items()}
    if host.device_host is not None:
        there = host.device_host
        shown |= {
            "device's machine: processor": there.cpu,
            "device's machine: cores that may be used": ", ".join(map(str, there.cores_allowed)),
            "device's machine: frequency governor": there.governor or "none to be seen",
            "device's machine: kernel": there.kernel,
            "device's machine: convoy": f"{there.convoy}, commit {there.commit or 'unknown'}",
            **{f"device's interface {name}": text for name, text in there.nics.items()},
            **{
                f"device's machine: mitigation: {name}": text
                for name, text in there.mitigations.items()
                if text != "Not affected"
            },
        }
    if host.baseline_pps:
        shown["tester baseline rate"] = f"{host.baseline_pps / 1e6:.1f} Mpps (64 B, against itself)"
    rows = [[name, str(text)] for name, text in shown.items()]
    return Table(["what", "here"], rows, sortable=False, page_only=True)


def _cannot(run: Run) -> Table:
    return Table(
        ["scenario", "setup", "device", "why"],
        [
            [one.scenario, one.setup or "all", one.device or "all", one.why]
            for one in dict.fromkeys(run.cannot)
        ],
        page_only=True,
    )


TITLE_MAX = 4  # scenarios that a title names


def _when(started: str | None) -> str:
    return f"{started[:16].replace('T', ' ')} UTC" if started else "start not recorded"


def document(run: Run, ledger: Claims | None = None) -> Document:
    """Return the document of a run. ledger: what it says of the papers' claims."""
    host, plan = run.hosts[0], run.plans[0]
    runs = f"{len(run.folders)} runs, the first: " if len(run.folders) > 1 else ""
    quick = "quick: wider intervals, " if plan.quick else ""
    names = ", ".join(run.scenarios)
    many = len(run.scenarios) > TITLE_MAX
    out = Document(
        f"{len(run.scenarios)} scenarios" if many else names,
        f"{f'{names}; ' if many else ''}{runs}{quick}{plan.repeats} rounds, search: {plan.profile} "
        f"({', '.join(plan.goals)}); {host.cpu}, {len(host.cores)} cores, "
        f"{_when(host.started)}",
    )
    lines = "\n".join(f"- {line}" for line in findings(run))
    out.text(f"## What was found\n\n{lines}{_read(run)}")
    claims = summary(run)
    if claims is not None:
        out.text(f"## Aggregation, beside the paper\n\n{CLAIMS}")
        out.add(claims)
    if ledger is not None and (tested := section(ledger)).rows:
        out.text(f"## Claims of the papers\n\n{ledger.sentence}.")
        out.add(tested)
    for name in run.scenarios:
        _add_scenario(out, run, name)
    out.text(f"## What could not run here\n\n{NOT_HERE}", page_only=True)
    out.add(_cannot(run))
    out.text(f"## How it was measured\n\n{METHOD}\n\n## Environment", page_only=True)
    out.add(*map(environment, run.hosts))
    out.text("## Commands", page_only=True)
    out.add(Code("\n".join(run.commands)))
    return out
