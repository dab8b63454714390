# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The plots of a scenario."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from convoy import reference
from convoy.report.applications import Served
from convoy.report.document import Figure
from convoy.report.findings import size_name
from convoy.report.papers import RATIO
from convoy.report.plots import MOST_LINES, Line, draw
from convoy.report.row import Delay, Row
from convoy.report.run_data import Run

QUANTILES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
MPPS = {"title": "Mpps", "rangemode": "tozero"}
SIZES = "frame size, bytes with FCS"
GBPS = {"title": "Gb/s", "rangemode": "tozero"}


def _category(title: str, values: Iterable[str]) -> dict[str, Any]:
    return {
        "title": title,
        "type": "category",
        "categoryorder": "array",  # a device may lack one
        "categoryarray": list(dict.fromkeys(values)),
    }


def _rates(
    run: Run,
    scenario: str,
    rows: Iterable[Row],
    along: Callable[[Row], str],
    of: Callable[[Row], str],
    title: str,
    y: dict[str, Any] = MPPS,
) -> go.Figure | None:
    """Return the rates of rows, a line for each device; None: there is one point only."""
    mine = [row for row in rows if row.rates_pps and row.role == "device"]
    values = list(dict.fromkeys(along(row) for row in mine))
    if len(values) < 2:
        return None
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in mine:
        groups.setdefault((of(row), row.name), []).append(row)
    lines = []
    for (part, name), line in groups.items():
        unit = [(row.frame_bytes or 0) * 8 / 1e9 if y is GBPS else 1e-6 for row in line]
        both = list(zip(line, unit, strict=True))
        lines.append(Line(
            name,
            [along(row) for row in line],
            [(row.rate_pps or 0) * scale for row, scale in both],
            of=part,
            extremes=[[rate * scale for rate in row.rates_pps] for row, scale in both],
        ))  # fmt: skip
    return draw(lines, _category(title, values), y, run.names(scenario))


def by_size(run: Run, scenario: str, y: dict[str, Any] = MPPS) -> go.Figure | None:
    """Return the rates by frame size."""
    rows = (row for row in run.of(scenario) if row.cpu_speed == 1.0)
    return _rates(run, scenario, rows, lambda row: row.size, lambda row: row.setup, SIZES, y)


def by_setup(run: Run, scenario: str) -> go.Figure | None:
    """Return the rates by setup, at up to two frame sizes."""
    mine = [row for row in run.of(scenario) if row.cpu_speed == 1.0]
    sizes = list(dict.fromkeys(row.size for row in mine))[:2]
    rows = (row for row in mine if row.size in sizes)
    return _rates(
        run, scenario, rows, lambda row: row.setup, lambda row: size_name(row.size), "setup"
    )


def by_speed(run: Run, scenario: str) -> go.Figure | None:
    """Return the rates at the first frame size by the share of its core that a device had."""
    mine = sorted(run.of(scenario), key=lambda row: row.cpu_speed)
    if len({row.cpu_speed for row in mine}) < 2:
        return None
    first = run.of(scenario)[0].size
    rows = (row for row in mine if row.size == first)
    title = "share of the core's time (emulated speed)"
    return _rates(
        run, scenario, rows, lambda row: f"{row.cpu_speed:.0%}", lambda row: row.setup, title
    )


def served_by_size(run: Run, scenario: str) -> go.Figure | None:
    """Return what iperf3 got through by UDP, by frame size."""
    mine = [
        row for row in run.served(scenario)
        if row.application == "iperf3-udp" and row.value is not None
    ]  # fmt: skip
    sizes = list(dict.fromkeys(str(row.frame_bytes) for row in mine))
    if len(sizes) < 2:
        return None
    groups: dict[tuple[str, str], list[Served]] = {}
    for row in mine:
        groups.setdefault((row.setup, row.name), []).append(row)
    lines = [
        Line(
            name,
            [str(row.frame_bytes) for row in line],
            [row.value for row in line],
            of=setup,
            extremes=[row.values(row.figure) for row in line],
        )
        for (setup, name), line in groups.items()
    ]
    y = {"title": "Mbit/s of payload", "rangemode": "tozero"}
    return draw(lines, _category(SIZES, sizes), y, run.names(scenario))


def _at_rates(run: Run, scenario: str) -> Iterator[tuple[Row, list[Delay]]]:
    """Yield the contenders that were measured at several rates, and these in order."""
    for row in run.of(scenario):
        if row.contends and len(row.delays) > 1:
            yield row, sorted(row.delays, key=lambda delay: delay.rate_pps)


def _by_rate(
    run: Run, scenario: str, value: Callable[[Delay], float | None]
) -> list[Line]:  # fmt: skip
    """Return a line for each device, setup and frame size, by rate in Mpps."""
    lines = []
    for row, delays in _at_rates(run, scenario):
        shown = [(delay, y) for delay in delays if (y := value(delay)) is not None]
        if shown:
            lines.append(Line(
                row.name,
                [delay.rate_pps / 1e6 for delay, _ in shown],
                [y for _, y in shown],
                of=f"{row.setup}, {size_name(row.size)}",
                text=[delay.load for delay, _ in shown],
            ))  # fmt: skip
    return lines


RATE_AXIS = {"title": "Mpps", "type": "log", "dtick": 1}


def latency_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return median latency by rate, both logarithmic."""

    def median_us(delay: Delay) -> float | None:
        value = delay.quantile(0.5)
        return None if value is None else value / 1e3

    y = {"title": "median latency, us", "type": "log", "dtick": "D2"}
    return draw(_by_rate(run, scenario, median_us), RATE_AXIS, y, run.names(scenario))


def percentiles(run: Run, scenario: str) -> go.Figure | None:
    """Return the latency's distribution at the load that most devices have, by percentile."""
    first = next((row for row in run.of(scenario) if row.delays), None)
    if first is None:
        return None
    load = first.delays[min(1, len(first.delays) - 1)].load
    lines = []
    for row in run.of(scenario):
        delay = row.delay(load)
        if (row.setup, row.size) != (first.setup, first.size) or not row.contends or delay is None:
            continue
        values = [delay.quantile(share) for share in QUANTILES]
        lines.append(Line(
            row.name,
            [f"{100 * share:g} %" if share else "least" for share in QUANTILES],
            [None if value is None else value / 1e3 for value in values],
        ))  # fmt: skip
    title = f"share of packets: {first.setup}, {size_name(first.size)}, {load}"
    y = {"title": "latency, us", "type": "log", "dtick": "D2"}
    return draw(lines, {"title": title, "type": "category"}, y, run.names(scenario))


def aggregation_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return frames / packets by rate, ours and the paper's."""
    lines = _by_rate(
        run, scenario, lambda delay: delay.frames.ratio_percent if delay.frames else None
    )
    if not lines:
        return None
    paper = reference.table(RATIO)
    for name, words in (("non_bursty_percent", "even"), ("bursty_percent", "bursts of 32")):
        lines.append(Line(
            f"PA-Flow's Table 2, {words}",
            [float(row["rx_rate_pps"]) / 1e6 for row in paper],
            [float(row[name]) for row in paper],
            of="the paper",
            style={"color": "#8a94a0", "dash": "dot" if words == "even" else "dash"},
        ))  # fmt: skip
    y = {"title": "frames / packets, %", "rangemode": "tozero"}
    return draw(lines, RATE_AXIS, y, run.names(scenario))


def lost_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return the share of offered packets that was lost, by rate."""
    lines = _by_rate(run, scenario, lambda d: None if d.lost_ratio is None else 100 * d.lost_ratio)
    y = {"title": "lost, % of offered", "rangemode": "tozero"}
    return draw(lines, RATE_AXIS, y, run.names(scenario))


def loss_periods(run: Run, scenario: str) -> go.Figure | None:
    """Return the lengths of loss periods at the highest rate that lost any: Figure 12."""
    lines = []
    for row, delays in _at_rates(run, scenario):
        worst = next((delay for delay in reversed(delays) if delay.loss_periods), None)
        if worst is None:
            continue
        lost = sum(length * count for length, count in worst.loss_periods)
        seen, shares = 0, []
        for length, count in worst.loss_periods:
            seen += length * count
            shares.append(100 * seen / lost)
        lines.append(Line(
            row.name,
            [length for length, _ in worst.loss_periods],
            shares,
            of=f"{row.setup}, {worst.load}",
            style={"shape": "hv"},
        ))  # fmt: skip
    x = {"title": "loss period, packets", "type": "log", "dtick": "D2"}
    y = {"title": "% of the lost packets in periods of up to so many", "rangemode": "tozero"}
    return draw(lines, x, y, run.names(scenario))


def _drawn(run: Run, name: str) -> Iterator[tuple[go.Figure | None, str]]:
    asked = run.scenarios[name].figure
    if asked.x == "setup":
        yield by_setup(run, name), "Rate by setup."
    else:
        yield by_size(run, name), "Rate by frame size."
        yield by_size(run, name, GBPS), "The same in Gb/s."
    yield by_speed(run, name), "Rate by emulated CPU speed, at the first frame size."
    yield latency_by_rate(run, name), "Median latency by rate."
    yield percentiles(run, name), "Latency by percentile: the histograms of all rounds, added up."
    if asked.y == "ratio":
        yield aggregation_by_rate(run, name), "Aggregation ratio by rate; grey: the paper's."
    if asked.y == "lost":
        yield lost_by_rate(run, name), "Lost packets by rate."
        yield loss_periods(run, name), "Loss periods at the highest rate that lost any (Figure 12)."
    yield served_by_size(run, name), "iperf3 by UDP, by frame size."


def figures(run: Run, name: str) -> Sequence[Figure]:
    """Return the plots of a scenario that it has the numbers for. Bars: the rounds' extremes."""
    return [
        Figure(plot, caption, wide=len(plot.data) > MOST_LINES)
        for plot, caption in _drawn(run, name)
        if plot is not None
    ]
