# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Line rates of Ethernet beside what was measured: in figures and in sentences."""

import pytest

from convoy.report.figures import figures
from convoy.report.findings import findings
from convoy.report.line_rate import line_gbps, line_rate_pps
from convoy.report.rates import rows
from convoy.report.run_data import Run
from convoy.results.trials import GoalResult, Point, Search, Trial

from .results import result, scenario


def measured(device, rates_mpps):
    """Return what was searches at each frame size."""
    trials, searches = [], []
    for size, mpps in rates_mpps.items():
        point = Point(
            scenario="s", setup="all", device=device, functions=(), size=str(size), repeat=0
        )
        goal = GoalResult(
            goal="pdr", rate_pps=mpps * 1e6, lower_pps=mpps * 1e6, upper_pps=None, regular=True,
            remark="", lower_bound=False,
        )  # fmt: skip
        searches.append(Search(point=point, outcome="measured", goals=(goal,)))
        total = {"received_pps": mpps * 1e6, "mean_frame_bytes": float(size)}
        trials.append(Trial(
            point=point, purpose="search", load="", rate_pps=mpps * 1e6, duration_s=0.1,
            verdict="passed", commands=(), result=result(total=total),
        ))  # fmt: skip
    return rows(trials, searches)


def run_of(**devices):
    made = [row for name, rates in devices.items() for row in measured(name, rates)]
    scenarios = {"s": scenario(setups={"all": {"functions": []}})}
    return Run(
        folders=(), scenarios=scenarios, rows=tuple(made), hosts=(), plans=(),
        commands=(), cannot=(),
    )  # fmt: skip


def test_frames_of_a_line_are_those_that_everybody_knows():
    assert line_rate_pps(10, 64) == pytest.approx(14_880_952, abs=1)
    assert line_rate_pps(100, 1518) == pytest.approx(8_127_438, abs=1)
    assert line_gbps(14_880_952, 64) == pytest.approx(10)


def test_figures_have_the_lines_that_are_in_reach():
    run = run_of(fast={64: 20.0, 1500: 4.0}, slow={64: 1.0, 1500: 0.8})
    rate, gbps = (figure.plot for figure in figures(run, "s")[:2])
    lines = {trace.name: trace for trace in rate.data if "line rate" in trace.name}
    assert list(lines) == [f"{speed} Gb/s line rate" for speed in (1, 10, 40, 100)]
    assert list(lines["10 Gb/s line rate"].x) == ["64", "1500"]
    assert list(lines["40 Gb/s line rate"].x) == ["1500"]  # 59.5 Mpps of 64 B are out of reach
    assert lines["10 Gb/s line rate"].y[0] == pytest.approx(14.88, abs=0.01)
    lines = {trace.name: trace for trace in gbps.data if "line rate" in trace.name}
    assert "100 Gb/s line rate" not in lines  # 48 Gb/s were measured
    assert lines["40 Gb/s line rate"].y[-1] == pytest.approx(40 * 1500 / 1520)


def test_more_lines_than_one_set_of_axes_holds_have_them_in_each():
    run = run_of(**{f"d{i}": {64: 10.0 + i, 1500: 2.0} for i in range(9)})
    plot = figures(run, "s")[0].plot
    lines = [trace for trace in plot.data if trace.name == "10 Gb/s line rate"]
    assert len(lines) == len({trace.xaxis for trace in plot.data})
    assert [trace.showlegend for trace in lines] == [True] + [False] * (len(lines) - 1)


def test_a_sentence_says_which_line_rates_are_reached_from_which_size_on():
    run = run_of(
        fast={64: 20.0, 512: 10.0, 1500: 4.0},
        gap={64: 15.0, 512: 1.0, 1500: 0.9},
        slow={64: 0.3, 1500: 0.08},
    )
    (line,) = [text for text in findings(run) if "line rate" in text]
    assert line == (
        "all, line rate is reached: fast 1 and 10 Gb/s from 64 B on, 40 Gb/s from 512 B on; "
        "gap 1 Gb/s from 64 B on, 10 Gb/s from 1500 B on; slow not 1 Gb/s."
    )
