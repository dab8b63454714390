# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A scenario's targets beside what a run reached: rates, and rates over those of other devices in
the same rounds, at the smallest frames of a setup.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from convoy.report.document import Cell, Column, Table, Value
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.scenario import Target


@dataclass(frozen=True)
class Reached:
    """A target, and what was reached by round."""

    scenario: str
    target: Target
    name: str  # of the device; with its run, where there are several
    values: tuple[float, ...]  # Mpps, or quotients; empty: not measured
    lower_bound: bool  # no more could be offered
    upper_bound: bool = False  # no more could be offered to what the quotients are over

    @property
    def wanted(self) -> float:
        """Return what is to be reached."""
        return self.target.mpps or self.target.times or 0.0

    @property
    def value(self) -> float | None:
        """Return the median; None: it was not measured."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Return whether the median reaches it; None: nobody knows."""
        if self.value is None or (self.lower_bound and self.upper_bound):
            return None
        reached = self.value >= self.wanted
        return None if (self.upper_bound if reached else self.lower_bound) else reached

    @property
    def what(self) -> str:
        """Return what is to be reached, in words."""
        over = f" / {self.target.over}" if self.target.over else ""
        return f"{self.target.setup}: {self.name}{over}"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it."""
        return {
            "scenario": self.scenario,
            "setup": self.target.setup,
            "device": self.name,
            "over": self.target.over,
            "unit": "x" if self.target.over else "Mpps",
            "target": self.wanted,
            "median": self.value,
            "min": min(self.values, default=None),
            "max": max(self.values, default=None),
            "lower_bound": self.lower_bound,
            "upper_bound": self.upper_bound,
            "met": self.met,
        }


def _rows(run: Run, scenario: str, setup: str, device: str) -> dict[str, Row]:
    """Return a device's row at its smallest frames, by run."""
    rows: dict[str, Row] = {}
    for row in run.of(scenario):
        if row.contends and row.rates_pps and (row.setup, row.device) == (setup, device):
            known = rows.get(row.run)
            if known is None or (row.frame_bytes or 0) < (known.frame_bytes or 0):
                rows[row.run] = row
    return rows


def reached(run: Run, scenario: str) -> Iterator[Reached]:
    """Yield each target of a scenario with what was reached; in the scenario's order."""
    for target in run.scenarios[scenario].targets:
        mine = _rows(run, scenario, target.setup, target.device)
        if not mine:
            yield Reached(scenario, target, target.device, (), False)
        others = _rows(run, scenario, target.setup, target.over) if target.over else {}
        for name, row in mine.items():
            upper_bound = False
            if target.over is None:
                values = tuple(rate / 1e6 for rate in row.rates_pps)
            elif name in others:
                other, upper_bound = others[name].rounds, others[name].lower_bound
                values = tuple(row.rounds[i] / other[i] for i in row.rounds.keys() & other.keys())
            else:
                values = ()
            yield Reached(scenario, target, row.name, values, row.lower_bound, upper_bound)


def table(run: Run, scenario: str) -> Table:
    """Return them as a table; without rows where the scenario has no targets."""
    words = {True: "met", False: "not met", None: "not known"}
    rows: list[list[Value]] = []
    for one in reached(run, scenario):
        unit = "x" if one.target.over else "Mpps"
        here = None
        if one.value is not None and not (one.lower_bound and one.upper_bound):
            sign = "≥ " if one.lower_bound else "≤ " if one.upper_bound else ""
            low, high = min(one.values), max(one.values)
            here = Cell(one.value, f"{sign}{one.value:.2f} [{low:.2f} .. {high:.2f}]")
        rows.append([one.what, unit, Cell(one.wanted, f"≥ {one.wanted:g}"), here, words[one.met]])
    return Table(["what", "unit", "target", Column("here", "", "median [all rounds]"), ""], rows)
