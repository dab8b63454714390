# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The quick benchmark's page: what was found, in words, as a plot, and as a table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from convoy.report.page import Cell, Column, Page, Value
from convoy.report.rates import expected_pps, slow_phase
from convoy.report.row import Row

COLORS = ("#8a94a0", "#0b5cad", "#2a9d8f", "#e08e0b", "#b5446e", "#1c2733", "#6a4c93")
TOGETHER = ", in convoys"  # ends the names of setups whose packets travel together


def series(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of testpmd, and of convoy by its functions, named for people."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        name = "testpmd io" if row.device == "testpmd" else row.path
        if len(row.functions) > 2:
            name = "all three" if len(row.functions) == 3 else f"all {len(row.functions)}"
        if in_convoys(row):  # short: eight columns are to fit a terminal of 80
            name = f"all {len(row.functions)}{TOGETHER}"
        found.setdefault(name, []).append(row)
    return found


def in_convoys(row: Row) -> bool:
    """Return whether packets travelled together."""
    return row.setup.endswith(TOGETHER)


def find(rows: Sequence[Row], device: str, functions: int, size: str) -> Row | None:
    """Return the row of a device with so many functions, if it has a rate."""
    for row in rows:
        key = (row.device, len(row.functions), row.size)
        if key == (device, functions, size) and not in_convoys(row):
            return row if row.rate_pps is not None else None
    return None


def _mpps(row: Row) -> str:
    low, high = min(row.rates_pps) / 1e6, max(row.rates_pps) / 1e6
    least = "at least " if row.at_least else ""
    return f"{least}{(row.rate_pps or 0) / 1e6:.2f} [{low:.2f} .. {high:.2f}]"


def findings(rows: Sequence[Row], host: Mapping[str, Any]) -> list[str]:
    """Return what the numbers say, a sentence each; nothing that they do not."""
    said = []
    longest = max((len(row.functions) for row in rows), default=0)
    chain, bare = find(rows, "convoy", longest, "64"), find(rows, "testpmd", 0, "64")
    ceiling = (host.get("self_test") or {}).get("ceiling_pps")
    if chain is not None:
        said.append(f"64 B frames, {chain.path}: **{_mpps(chain)} Mpps**, one core.")
    together = next((row for row in rows if in_convoys(row) and row.size == "64"), None)
    if chain and chain.rate_pps and together and together.rate_pps:
        said.append(
            f"The same chain where they travel together, up to 22 in a frame: **{_mpps(together)} "
            f"Mpps**, {together.rate_pps / chain.rate_pps:.1f} times as many."
        )
    if bare is not None:
        said.append(f"dpdk-testpmd, forwarding and nothing else: **{_mpps(bare)} Mpps**.")
    if chain and bare and chain.rate_pps and bare.rate_pps and chain.function_cycles_per_packet:
        own = chain.function_cycles_per_packet
        expected = expected_pps(bare.rate_pps, own, host["tsc_hz"])
        said.append(
            f"The functions themselves took {own:.0f} cycles per packet. testpmd with these on "
            f"top would forward {expected / 1e6:.2f} Mpps; convoy reached "
            f"{100 * chain.rate_pps / expected:.0f} % of that."
        )
    if ceiling:
        said.append(f"The tester alone reaches {ceiling / 1e6:.1f} Mpps: its ceiling.")
        near = sorted(
            {
                row.path
                for row in rows
                if (row.rate_pps or 0) > 0.9 * ceiling and not in_convoys(row)
            }
        )
        if near:
            said.append(f"At that ceiling, so at least that fast: {', '.join(near)}.")
    spoilt, trials = sum(row.spoilt for row in rows), sum(row.trials for row in rows)
    said.append(
        f"{spoilt} of {trials} trials were spoilt (the tester did not do what it was told, or the "
        "device was kept off its core) and are no results."
    )
    said += slow_phase(rows)
    if spoilt > trials / 5:
        said.insert(
            0,
            f"**{spoilt} of {trials} trials were spoilt: something else used these cores.** Run "
            "it again on a machine that has nothing else to do before you believe a number.",
        )
    return said


def _values(row: Row) -> list[Value]:
    size = Cell(int(row.size)) if row.size.isdigit() else Cell(row.frame_bytes, row.size)
    return [
        row.device,
        row.path + (TOGETHER if in_convoys(row) else ""),
        size,
        Cell(row.rate_pps, _mpps(row)) if row.rates_pps else None,
        Cell(row.gbps, f"{row.gbps:.2f}") if row.gbps else None,
        row.node_cycles_per_packet or None,
        row.function_cycles_per_packet or None,
        row.p50_ns / 1e3 if row.p50_ns else None,
        row.p99_ns / 1e3 if row.p99_ns else None,
        Cell(row.trials, f"{row.trials} ({row.spoilt})" if row.spoilt else ""),
    ]


def _table(page: Page, rows: Sequence[Row], host: Mapping[str, Any]) -> None:
    loss, load = host["loss_ratio"], host["latency_load"]
    page.table(
        [
            "device",
            "functions",
            Column("frame", "bytes", "with FCS; a mix by its mean"),
            Column("rate", "Mpps", f"highest at which at most {loss:.1%} were lost; median [all]"),
            Column("", "Gb/s", "of frames with FCS"),
            Column("node", "cyc/packet", "busy TSC ticks of the worker, ports included"),
            Column("functions", "cyc/packet", "of these, in the functions"),
            Column("p50", "us", f"latency at {load:.0%} of the rate, from the time it was due"),
            Column("p99", "us"),
            Column("trials", "(spoilt)"),
        ],
        [_values(row) for row in rows],
    )


def _environment(page: Page, host: Mapping[str, Any]) -> None:
    shown = {
        "processor": host["cpu"],
        "clock (TSC)": f"{host['tsc_hz'] / 1e9:.2f} GHz",
        "cores that may be used": ", ".join(map(str, host["cores_allowed"])),
        "frequency governor": host["governor"] or "none to be seen",
        "kernel": host["kernel"],
        "hugepages": "used" if host["hugepages"] else "not used",
        "as root": "yes" if host["root"] else "no",
        "convoy": f"{host['convoy']}, commit {host['commit'] or 'unknown'}",
        **host["devices"],
        **{
            f"mitigation: {name}": text
            for name, text in host["mitigations"].items()
            if text != "Not affected"
        },
    }
    page.table(["what", "here"], [[name, str(text)] for name, text in shown.items()], False)


def _figure(rows: Sequence[Row]) -> go.Figure:
    figure = go.Figure()
    for (name, line), color in zip(series(rows).items(), COLORS, strict=False):
        shown = [row for row in line if row.rates_pps]
        rates = [(row.rate_pps or 0) / 1e6 for row in shown]
        figure.add_scatter(
            x=[str(row.size) for row in shown],
            y=rates,
            name=name,
            line={
                "color": color,
                "dash": "dot" if shown and shown[0].device == "testpmd" else None,
            },
            error_y={
                "array": [max(r.rates_pps) / 1e6 - y for r, y in zip(shown, rates, strict=True)],
                "arrayminus": [
                    y - min(r.rates_pps) / 1e6 for r, y in zip(shown, rates, strict=True)
                ],
                "thickness": 1,
            },
        )
    figure.update_layout(
        template="plotly_white",
        xaxis={
            "title": "frame size, bytes with FCS",
            "type": "category",
            "categoryorder": "array",  # a series may lack a size
            "categoryarray": list(dict.fromkeys(str(row.size) for row in rows)),
        },
        yaxis={"title": "Mpps", "rangemode": "tozero"},
    )
    return figure


def page(rows: Sequence[Row], host: Mapping[str, Any], commands: Sequence[str]) -> Page:
    """Return the page of a run."""
    out = Page(
        "Quick benchmark",
        f"{host['cpu']}, {host['tsc_hz'] / 1e9:.2f} GHz TSC, {len(host['cores'])} cores, "
        f"{host['started'][:16].replace('T', ' ')} UTC",
    )
    out.text("# What was found\n\n" + "\n".join(f"- {line}" for line in findings(rows, host)))
    out.figure(_figure(rows), "Rate by frame size: median, least and most of the repeats.")
    out.text("# All of it\n\nClick on a heading to sort.")
    _table(out, rows, host)
    out.text(
        "# How it was measured\n\n"
        f"The tester on core {host['tester_core']}, the device on core {host['device_core']}, "
        f"joined by two vhost-user sockets; {'with' if host['hugepages'] else 'without'} "
        "hugepages. Devices took turns, and each was started afresh for its turn. A rate is the "
        f"highest paced one at which at most {host['loss_ratio']:.1%} were lost; above it a rate "
        "failed twice. Latency counts from the time at which a packet was due. Differences "
        "smaller than the spread of the repeats are no differences.\n\n"
        "Not shown by this machine: network cards, NUMA, virtual machines.\n\n# Environment\n"
    )
    _environment(out, host)
    out.text("# Commands\n\n```\n" + "\n".join(commands) + "\n```")
    return out


def write(rows: Sequence[Row], host: Mapping[str, Any], commands: Sequence[str], to: Path) -> None:
    """Write the page."""
    page(rows, host, commands).write(to)
