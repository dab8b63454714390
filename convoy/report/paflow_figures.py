# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Plots of aggregation: packets in a frame, losses and their lengths, by rate."""

from collections.abc import Callable, Iterator

import plotly.graph_objects as go

from convoy import reference
from convoy.report.paflow import RATIO
from convoy.report.row import Delay, Row
from convoy.report.run_data import Run

Drawn = tuple[go.Figure | None, str]


def _rows(run: Run, scenario: str) -> Iterator[tuple[Row, list[Delay]]]:
    for row in run.of(scenario):
        if row.contends and len(row.delays) > 1:
            yield row, sorted(row.delays, key=lambda delay: delay.rate_pps)


def _by_rate(
    run: Run, scenario: str, title: str, value: Callable[[Delay], float | None]
) -> go.Figure:
    figure = go.Figure()
    for row, delays in _rows(run, scenario):
        shown = [(d.rate_pps / 1e6, v) for d in delays if (v := value(d)) is not None]
        if shown:
            figure.add_scatter(
                x=[rate for rate, _ in shown],
                y=[y for _, y in shown],
                name=f"{row.setup}, {row.name}",
                mode="lines+markers",
            )
    figure.update_layout(
        template="plotly_white",
        xaxis={"title": "Mpps", "type": "log"},
        yaxis={"title": title, "rangemode": "tozero"},
        showlegend=True,
    )
    return figure


def _ratio(run: Run, scenario: str) -> Drawn:
    figure = _by_rate(
        run,
        scenario,
        "frames / packets, %",
        lambda delay: delay.frames.ratio_percent if delay.frames else None,
    )
    paper = reference.table(RATIO)
    for name, words in (("non_bursty_percent", "even"), ("bursty_percent", "bursts of 32")):
        figure.add_scatter(
            x=[float(row["rx_rate_pps"]) / 1e6 for row in paper],
            y=[float(row[name]) for row in paper],
            name=f"PA-Flow's Table 2, {words}",
            mode="lines+markers",
            line={"color": "#8a94a0", "dash": "dot" if words == "even" else "dash"},
        )
    return figure, "Aggregation ratio by rate; dotted and dashed: the paper's."


def _runs(run: Run, scenario: str) -> Drawn:
    """Draw how many packets were lost in a row, at the highest rate that lost any: Figure 12."""
    figure = go.Figure()
    for row, delays in _rows(run, scenario):
        worst = next((d for d in reversed(delays) if d.lost_runs), None)
        if worst is None:
            continue
        runs = worst.lost_runs
        lost = sum(length * count for length, count in runs)
        seen, shares = 0, []
        for length, count in runs:
            seen += length * count
            shares.append(100 * seen / lost)
        figure.add_scatter(
            x=[length for length, _ in runs],
            y=shares,
            name=f"{row.setup}, {row.name}, {worst.load}",
            mode="lines",
            line={"shape": "hv"},
        )
    if not figure.data:
        return None, ""
    figure.update_layout(
        template="plotly_white",
        xaxis={"title": "packets lost in a row", "type": "log"},
        yaxis={"title": "% of the lost packets in runs of up to so many", "rangemode": "tozero"},
        showlegend=True,
    )
    return figure, "Lost in a row, at the highest rate that lost any (the paper's Figure 12)."


def figures(run: Run, scenario: str) -> list[Drawn]:
    """Return what a scenario's `figure: {y: ...}` asks for; nothing for other scenarios."""
    y = run.scenarios[scenario].figure.y
    if not any(True for _ in _rows(run, scenario)):
        return []
    if y == "ratio":
        return [_ratio(run, scenario)]
    if y == "lost":
        lost = _by_rate(
            run,
            scenario,
            "lost, % of offered",
            lambda delay: None if delay.lost_ratio is None else 100 * delay.lost_ratio,
        )
        return [(lost, "Lost packets by rate."), _runs(run, scenario)]
    return []
