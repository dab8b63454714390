# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Setups over others at full speed, as a scenario's `compare` asks, beside target and paper.

Round by round: the medians of a round's trials are divided, and of the quotients there is the
median, the least and the most.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from convoy.report.beside import Beside
from convoy.report.paflow import full_speed_gain, times
from convoy.report.page import Cell, Column
from convoy.report.row import Row
from convoy.report.run_data import Run

BUSY = 0.95  # of a trial; a device with more time left could have taken more
Spread = tuple[float, float, float]  # median, least, most


@dataclass(frozen=True)
class Compared:
    """A setup over another one, at one frame size."""

    scenario: str
    setup: str
    over: str
    name: str  # of the device; with its run, where there are several
    size: str
    rate: Spread  # quotient of the rates
    cycles: Spread | None  # of the busy cycles per packet; None: the device does not count them
    target: float | None  # that the rates' quotient is to reach
    paper: str  # what the paper says
    waited: tuple[str, ...]  # of the two setups those that waited for the tester

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it."""
        names = ("median", "min", "max")
        cycles = dict(zip(names, self.cycles, strict=True)) if self.cycles else None
        rate = dict(zip(names, self.rate, strict=True))
        return vars(self) | {
            "rate": rate,
            "cycles": cycles,
            "paper": self.paper or None,
            "waited": list(self.waited),
        }


def _waited(row: Row) -> bool:
    shares = [share for shares in row.full_speed_busy.values() for share in shares]
    return bool(shares) and statistics.median(shares) < BUSY


def compared(run: Run, scenario: str) -> Iterator[Compared]:
    """Yield what a scenario asks to compare and the run has; in its order, then by size."""
    rows = [row for row in run.of(scenario) if row.contends]
    known: dict[tuple[str, str, str], Row] = {(r.setup, r.name, r.size): r for r in rows}
    for asked in run.scenarios[scenario].compare:
        sizes = [str(size) for size in asked.sizes or ()]
        for row in rows:
            other = known.get((asked.over, row.name, row.size))
            if row.setup != asked.setup or other is None or (sizes and row.size not in sizes):
                continue
            rate = full_speed_gain(row, other, "full_speed_pps")
            if rate is None:
                continue
            cycles = full_speed_gain(row, other, "full_speed_cycles")
            yield Compared(
                scenario, row.setup, other.setup, row.name, row.size, rate, cycles,
                asked.target, asked.paper,
                tuple(r.setup for r in (row, other) if _waited(r)),
            )  # fmt: skip


def table(run: Run, scenario: str) -> Beside:
    """Return all that as a table."""
    out = Beside(
        "At full speed, one setup over another: median and range of the rounds",
        ["setup", "over", "device", Column("frame", "bytes"), Column("rate", "x"),
         Column("cycles per packet", "x"), Column("target", "x", "ours, for the rate"), "paper",
         Column("waited", "for the tester", "could have taken more: compare cycles, not rates")],
    )  # fmt: skip
    for one in compared(run, scenario):
        target = None if one.target is None else Cell(one.target, f"{one.target:g}")
        out.rows.append(
            [one.setup, one.over, one.name, one.size, times(one.rate),
             times(one.cycles) if one.cycles else None, target, one.paper or None,
             ", ".join(one.waited) or None]
        )  # fmt: skip
    return out
