# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A scenario's plots."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from convoy.report.row import Row
from convoy.report.run_data import Run

COLORS = (
    "#0b5cad", "#8a94a0", "#e08e0b", "#2a9d8f", "#b5446e", "#6a4c93", "#1c2733", "#7a9e3f",
)  # fmt: skip
DASHES = ("solid", "dash", "dot", "dashdot")
QUANTILES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)


def _color(names: Sequence[str], name: str) -> str:
    return COLORS[names.index(name) % len(COLORS)] if name in names else COLORS[-1]


def _layout(figure: go.Figure, x: dict[str, Any], y: str) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        xaxis=x,
        yaxis={"title": y, "rangemode": "tozero"},
        showlegend=True,
    )
    return figure


def _rates(rows: Sequence[Row], x: Sequence[str], name: str, color: str, gbps: bool) -> Any:
    def scale(row: Row, rate: float) -> float:
        return rate * (row.frame_bytes or 0) * 8 / 1e9 if gbps else rate / 1e6

    middle = [scale(row, row.rate_pps or 0) for row in rows]
    pairs = list(zip(rows, middle, strict=True))
    return go.Scatter(
        x=list(x),
        y=middle,
        name=name,
        mode="lines+markers",
        line={"color": color},
        error_y={
            "array": [scale(row, max(row.rates_pps)) - y for row, y in pairs],
            "arrayminus": [y - scale(row, min(row.rates_pps)) for row, y in pairs],
            "thickness": 1,
        },
    )


def _category(title: str, values: Iterable[str]) -> dict[str, Any]:
    return {
        "title": title,
        "type": "category",
        "categoryorder": "array",  # a device may lack one
        "categoryarray": list(dict.fromkeys(values)),
    }


def _lines(
    run: Run,
    scenario: str,
    rows: Sequence[Row],
    along: Callable[[Row], str],
    title: str,
    gbps: bool = False,
) -> go.Figure | None:
    """Return the rates of rows at full CPU speed, a line for each device; None: one point only."""
    mine = [row for row in rows if row.rates_pps and row.cpu_speed == 1.0]
    values = list(dict.fromkeys(along(row) for row in mine))
    if len(values) < 2:
        return None
    names = run.names(scenario)
    figure = go.Figure()
    for name in names:
        line = [row for row in mine if row.name == name]
        if line:
            color = _color(names, name)
            figure.add_trace(_rates(line, [along(row) for row in line], name, color, gbps))
    return _layout(figure, _category(title, values), "Gb/s" if gbps else "Mpps")


def by_size(run: Run, scenario: str, setup: str, gbps: bool = False) -> go.Figure | None:
    """Return the rates of one setup by frame size, a line for each device."""
    return _lines(
        run,
        scenario,
        [row for row in run.of(scenario) if row.setup == setup],
        lambda row: row.size,
        "frame size, bytes with FCS",
        gbps,
    )


def by_setup(run: Run, scenario: str, size: str) -> go.Figure | None:
    """Return the rates at one frame size by setup, a line for each device."""
    return _lines(
        run,
        scenario,
        [row for row in run.of(scenario) if row.size == size],
        lambda row: row.setup,
        "setup",
    )


def by_speed(run: Run, scenario: str, setup: str, size: str) -> go.Figure | None:
    """Return the rates by the share of its core that a device was left with."""
    mine = [r for r in run.of(scenario) if (r.setup, r.size) == (setup, size) and r.rates_pps]
    if len({row.cpu_speed for row in mine}) < 2:
        return None
    names = run.names(scenario)
    figure = go.Figure()
    for name in names:
        line = sorted((row for row in mine if row.name == name), key=lambda row: row.cpu_speed)
        if line:
            x = [f"{row.cpu_speed:.0%}" for row in line]
            figure.add_trace(_rates(line, x, name, _color(names, name), False))
    speeds = [f"{speed:.0%}" for speed in sorted({row.cpu_speed for row in mine})]
    return _layout(figure, _category("share of the core's time (emulated speed)", speeds), "Mpps")


def served_by_size(run: Run, scenario: str, setup: str) -> go.Figure | None:
    """Return what iperf3 got through by UDP, by frame size, a line for each device."""
    mine = [
        row for row in run.served(scenario)
        if (row.setup, row.application) == (setup, "iperf3-udp") and row.value is not None
    ]  # fmt: skip
    sizes = list(dict.fromkeys(str(row.frame_bytes) for row in mine))
    if len(sizes) < 2:
        return None
    names = list(dict.fromkeys(row.name for row in run.served(scenario)))
    figure = go.Figure()
    for name in dict.fromkeys(row.name for row in mine):
        line = [row for row in mine if row.name == name]
        middle = [row.value or 0 for row in line]
        pairs = [(row.values(row.figure), value) for row, value in zip(line, middle, strict=True)]
        figure.add_scatter(
            x=[str(row.frame_bytes) for row in line],
            y=middle,
            name=name,
            mode="lines+markers",
            line={"color": _color(run.names(scenario) or names, name)},
            error_y={
                "array": [max(values) - y for values, y in pairs],
                "arrayminus": [y - min(values) for values, y in pairs],
                "thickness": 1,
            },
        )
    return _layout(figure, _category("frame size, bytes with FCS", sizes), "Mbit/s of payload")


def latency_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return median latency by rate (both logarithmic), a line for each device and setup."""
    figure = go.Figure()
    dashes: dict[tuple[str, str], str] = {}
    names = run.names(scenario)
    for row in run.of(scenario):
        if not row.contends or len(row.delays) < 2:
            continue
        delays = sorted(row.delays, key=lambda delay: delay.rate_pps)
        shown = [(d, p50) for d in delays if (p50 := d.quantile(0.5)) is not None]
        figure.add_scatter(
            x=[delay.rate_pps for delay, _ in shown],
            y=[p50 / 1e3 for _, p50 in shown],
            text=[delay.load for delay, _ in shown],
            name=f"{row.name}, {row.setup}, {row.size}",
            mode="lines+markers",
            line={
                "color": _color(names, row.name),
                "dash": dashes.setdefault((row.setup, row.size), DASHES[len(dashes) % len(DASHES)]),
            },
        )
    if not figure.data:
        return None
    _layout(figure, {"title": "packets/s", "type": "log"}, "median latency, us")
    figure.update_layout(yaxis={"type": "log", "title": "median latency, us"})
    return figure


def percentiles(run: Run, scenario: str) -> go.Figure | None:
    """Return the latency's distribution at the load that most devices have, by percentile."""
    first = next((row for row in run.of(scenario) if row.delays), None)
    if first is None:
        return None
    load = first.delays[min(1, len(first.delays) - 1)].load
    figure = go.Figure()
    names = run.names(scenario)
    for row in run.of(scenario):
        delay = row.delay(load)
        if row.setup != first.setup or row.size != first.size or row.cpu_speed != 1.0:
            continue
        if delay is None or row.role == "control":
            continue
        values = [delay.quantile(share) for share in QUANTILES]
        figure.add_scatter(
            x=[f"{100 * share:g} %" if share else "least" for share in QUANTILES],
            y=[value / 1e3 if value is not None else None for value in values],
            name=row.name,
            mode="lines+markers",
            line={"color": _color(names, row.name)},
        )
    title = f"share of packets: {first.setup}, {first.size} B, {load}"
    _layout(figure, {"title": title, "type": "category"}, "latency, us")
    figure.update_layout(yaxis={"type": "log", "title": "latency, us"})
    return figure
