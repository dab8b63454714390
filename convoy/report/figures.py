# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The plots of a scenario."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import plotly.graph_objects as go

from convoy import reference
from convoy.report.applications import Served
from convoy.report.document import Figure
from convoy.report.findings import size_name
from convoy.report.line_rate import LINE_RATES_GBPS, line_rate_pps
from convoy.report.packets import Delay
from convoy.report.papers import RATIO
from convoy.report.plots import MOST_LINES, Line, draw, empty
from convoy.report.row import Row
from convoy.report.run_data import Run

QUANTILES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
MPPS = {"title": "Mpps", "rangemode": "tozero"}
SIZES = "frame size, bytes with FCS"
BEYOND = 1.2  # times the highest rate: so far up lines are drawn to compare with
GBPS = {"title": "Gb/s", "rangemode": "tozero"}


def _category(title: str, values: Iterable[str]) -> dict[str, Any]:
    return {
        "title": title,
        "type": "category",
        "categoryorder": "array",  # a device may lack one
        "categoryarray": list(dict.fromkeys(values)),
    }


CPU_BY_SIZE = (
    "CPU time of the device by frame size (of the kernel: its core's), and busy cycles, by its own "
    "counters. A poll loop takes its core whole; its busy cycles are what packets take of it."
)

T = TypeVar("T", Row, Served)


def _lines(
    run: Run,
    scenario: str,
    rows: Iterable[T],
    along: Callable[[T], str],
    of: Callable[[T], str],
    values: Callable[[T], Sequence[float]],
    x: str,
    y: dict[str, Any],
    guides: Sequence[Line] = (),
) -> go.Figure | None:
    """Return medians and extremes, a line for each device; None: there is one point only."""
    mine = [row for row in rows if values(row)]
    points = list(dict.fromkeys(along(row) for row in mine))
    if len(points) < 2:
        return None
    groups: dict[tuple[str, str], list[T]] = {}
    for row in mine:
        groups.setdefault((of(row), row.name), []).append(row)
    lines = [
        Line(
            name,
            [along(row) for row in line],
            [statistics.median(values(row)) for row in line],
            of=part,
            extremes=[values(row) for row in line],
        )
        for (part, name), line in groups.items()
    ]
    return draw(lines, _category(x, points), y, run.names(scenario), guides)


Unit = Callable[[float, Row], float]  # of a rate in packets per second, of a row's frames


def _mpps(rate_pps: float, _: Row) -> float:
    return rate_pps / 1e6


def _gbps(rate_pps: float, row: Row) -> float:
    return rate_pps * (row.frame_bytes or 0) * 8 / 1e9


def _rates_in(unit: Unit) -> Callable[[Row], list[float]]:
    return lambda row: [unit(rate, row) for rate in row.rates_pps]


def _line_rates(rows: Sequence[Row], unit: Unit) -> list[Line]:
    """Return what Ethernet lines carry of the rows' frame sizes, as far as a row comes near."""
    rows = [row for row in rows if row.rates_pps and row.frame_bytes]
    top = max((unit(rate, row) for row in rows for rate in row.rates_pps), default=0.0)
    lines = []
    for gbps in LINE_RATES_GBPS:
        full = {row.size: unit(line_rate_pps(gbps, row.frame_bytes or 0), row) for row in rows}
        shown = {size: value for size, value in full.items() if value <= BEYOND * top}
        if shown:
            lines.append(Line(f"{gbps} Gb/s line rate", list(shown), list(shown.values())))
    return lines


def _rates(run: Run, name: str) -> Iterator[tuple[go.Figure | None, str]]:
    """Yield the rates by setup or frame size, and by the share of its core that a device had."""
    rows = [row for row in run.of(name) if row.role == "device"]
    full = [row for row in rows if row.contends]
    size, setup = attrgetter("size"), attrgetter("setup")
    sizes = list(dict.fromkeys(map(size, run.of(name))))
    mpps = _rates_in(_mpps)
    if run.scenarios[name].figure.x == "setup":
        two = [row for row in full if row.size in sizes[:2]]
        plot = _lines(run, name, two, setup, lambda row: size_name(row.size), mpps, "setup", MPPS)
        yield plot, "Rate by setup."
    else:
        lines = _line_rates(full, _mpps)
        yield _lines(run, name, full, size, setup, mpps, SIZES, MPPS, lines), "Rate by frame size."
        lines = _line_rates(full, _gbps)
        plot = _lines(run, name, full, size, setup, _rates_in(_gbps), SIZES, GBPS, lines)
        yield plot, "The same in Gb/s."
    speeds = sorted((row for row in rows if row.size in sizes[:1]), key=attrgetter("cpu_speed"))
    x = "share of the core's time (emulated speed)"
    plot = _lines(run, name, speeds, lambda row: f"{row.cpu_speed:.0%}", setup, mpps, x, MPPS)
    yield plot, "Rate by emulated CPU speed, at the first frame size."


def cycles_by_size(run: Run, name: str) -> go.Figure | None:
    """Return the functions' own cycles per packet by frame size: whose cost grows with it."""
    rows = [row for row in run.of(name) if row.role == "device" and row.contends]
    y = {"title": "cycles of the functions per packet", "type": "log", "dtick": "D2"}
    return _lines(
        run, name, rows, attrgetter("size"), attrgetter("setup"),
        lambda row: row.function_cycles, SIZES, y,
    )  # fmt: skip


def _served(run: Run, name: str) -> go.Figure | None:
    """Return what iperf3 got through by UDP, by frame size."""
    rows = [row for row in run.served(name) if row.application == "iperf3-udp"]
    y = {"title": "Mbit/s of payload", "rangemode": "tozero"}
    return _lines(
        run, name, rows, lambda row: str(row.frame_bytes), attrgetter("setup"),
        lambda row: row.values(row.figure), SIZES, y,
    )  # fmt: skip


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


def latency_by_stage(run: Run, scenario: str) -> Iterator[tuple[go.Figure, str]]:
    """Return mean latency by where packets were at each rate, a figure for each setup."""
    for row, delays in _at_rates(run, scenario):
        staged = [delay for delay in delays if delay.stages and delay.mean_ns is not None]
        if not staged:
            continue
        figure = empty(
            barmode="stack",
            xaxis=_category("offered", [delay.load for delay in staged]),
            yaxis={"title": "mean latency, us", "rangemode": "tozero"},
        )
        for where in dict.fromkeys(stage.where for delay in staged for stage in delay.stages):
            means = {
                delay.load: stage.mean_ns / 1e3
                for delay in staged
                for stage in delay.stages
                if stage.where == where
            }
            figure.add_bar(name=where, x=list(means), y=list(means.values()))
        # Who keeps the tester or the device from its core makes the mean long, and not the median.
        for name, symbol, ns in (
            ("mean of all, by the tester", "diamond", [delay.mean_ns for delay in staged]),
            ("median", "diamond-open", [delay.quantile(0.5) for delay in staged]),
        ):
            figure.add_scatter(
                name=name, mode="markers", x=[delay.load for delay in staged],
                y=[(value or 0) / 1e3 for value in ns],
                marker={"symbol": symbol, "size": 10, "color": "#1c2733"},
            )  # fmt: skip
        yield figure, f"{row.name}, {row.setup}: mean latency by stage."


def percentiles(run: Run, scenario: str) -> go.Figure | None:
    """Return the latency's distribution at the load that most devices have, by percentile."""
    rows = [row for row in run.of(scenario) if any(delay.histogram_ns for delay in row.delays)]
    if not rows:
        return None
    first = rows[0]
    load = first.delays[min(1, len(first.delays) - 1)].load
    lines = []
    for row in rows:
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


def cpu_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return the device's CPU time for a packet by rate, both logarithmic."""
    lines = _by_rate(run, scenario, lambda delay: delay.cpu_us_per_packet)
    y = {"title": "CPU time for a packet, us", "type": "log", "dtick": "D2"}
    return draw(lines, RATE_AXIS, y, run.names(scenario))


def cpu_share_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return the share of a core that the device's processes take, by rate."""

    def percent(delay: Delay) -> float | None:
        each = delay.cpu_us_per_packet
        kept = 1 - (delay.lost_ratio or 0.0)
        return None if each is None else each * delay.rate_pps * kept / 1e4

    y = {"title": "CPU time of the device, % of a core", "rangemode": "tozero"}
    return draw(_by_rate(run, scenario, percent), RATE_AXIS, y, run.names(scenario))


def busy_cycles_by_rate(run: Run, scenario: str) -> go.Figure | None:
    """Return the device's busy cycles for a packet by rate: a poll loop's CPU time is all of it."""
    lines = _by_rate(run, scenario, lambda delay: delay.cycles_per_packet)
    y = {"title": "busy cycles for a packet", "rangemode": "tozero"}
    return draw(lines, RATE_AXIS, y, run.names(scenario))


def cpu_by_size(run: Run, scenario: str) -> go.Figure | None:
    """Return the shares of a core by frame size, in a panel each: CPU time, and busy cycles."""
    rows = [row for row in run.of(scenario) if row.contends and row.rates_pps]
    loads = dict.fromkeys(delay.load for row in rows for delay in row.delays)
    panels: dict[str, Callable[[Row], Sequence[float]]] = {
        "CPU time, at PDR": lambda row: row.cpu_shares or row.core_shares,
        "busy cycles, at PDR": lambda row: row.busy_shares,
    }
    for load in loads:
        panels[f"busy cycles, at {load}"] = lambda row, load=load: (  # type: ignore[misc]
            delay.busy_shares if (delay := row.delay(load)) else ()
        )
    sizes = list(dict.fromkeys(row.size for row in rows))
    lines = []
    for panel, shares in panels.items():
        for name in dict.fromkeys((row.name, row.setup) for row in rows):
            mine = [row for row in rows if (row.name, row.setup) == name and shares(row)]
            if len(mine) > 1:
                each = [[100 * share for share in shares(row)] for row in mine]
                middle = [statistics.median(values) for values in each]
                at = [row.size for row in mine]
                lines.append(Line(", ".join(name), at, middle, of=panel, extremes=each))
    y = {"title": "% of a core", "rangemode": "tozero"}
    return draw(lines, _category(SIZES, sizes), y)


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
    axes = run.scenarios[name].figure
    yield from _rates(run, name)
    if axes.y == "stages":
        yield from latency_by_stage(run, name)
    yield latency_by_rate(run, name), "Median latency by rate."
    yield percentiles(run, name), "Latency by percentile: the histograms of all rounds, added up."
    if axes.y == "cycles":
        yield cycles_by_size(run, name), "Cycles of the functions by frame size."
    if axes.y == "ratio":
        yield aggregation_by_rate(run, name), "Aggregation ratio by rate; grey: the paper's."
    if axes.y == "lost":
        yield lost_by_rate(run, name), "Lost packets by rate."
        yield loss_periods(run, name), "Loss periods at the highest rate that lost any (Figure 12)."
    if (axes.x, axes.y) == ("size", "cpu"):
        yield cpu_by_size(run, name), CPU_BY_SIZE
    elif axes.y == "cpu":
        yield cpu_by_rate(run, name), "CPU time for a packet by rate."
        yield cpu_share_by_rate(run, name), "CPU time of the device by rate."
        yield busy_cycles_by_rate(run, name), "Busy cycles for a packet by rate, by its counters."
    yield _served(run, name), "iperf3 by UDP, by frame size."


def figures(run: Run, name: str) -> Sequence[Figure]:
    """Return the plots of a scenario that it has the numbers for. Bars: the rounds' extremes."""
    return [
        Figure(plot, caption, wide=len(plot.data) > MOST_LINES)
        for plot, caption in _drawn(run, name)
        if plot is not None
    ]
