# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whether a function's cost grows with the payload, by its own cycles at several frame sizes.

"Data plane versus VNF" (Table I) calls functions that look at headers only I/O-bound and those that
work on payloads compute-bound, and lists them unmeasured. Here it is measured or not said: our
node counts the cycles that a function takes for itself.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from convoy.report.row import Row

FLAT = 1.25  # times the cycles at the shortest frames, at most: payload costs nothing to be seen
GROWS = 2.0  # times, at least: most of the cycles at the longest frames are the payload's
SPAN = 8  # times as long, at least, must the longest frames be as the shortest


@dataclass(frozen=True)
class Bound:
    """What a function's cycles per packet depend on."""

    kind: Literal["I/O-bound", "compute-bound", "between", "not known"]
    cycles: tuple[tuple[int, float], ...]  # frame size, cycles per packet of the function itself

    def __str__(self) -> str:
        """Return it with the numbers it rests on."""
        if self.kind == "not known":
            return "I/O- or compute-bound: not known, its cycles at several sizes were not measured"
        (short, few), (long, many) = self.cycles[0], self.cycles[-1]
        says = {
            "I/O-bound": "I/O-bound: its cycles do not grow with the payload",
            "compute-bound": "compute-bound: its cycles grow with the payload",
            "between": "neither I/O- nor compute-bound: its cycles grow a little with the payload",
        }[self.kind]
        return f"{says} ({few:.0f} a packet at {short} B, {many:.0f} at {long} B)"


def bound(function: str, rows: Sequence[Row]) -> Bound:
    """Return a function's class, by rows in which it was alone, inline, with plain packets."""
    cycles: dict[int, list[float]] = {}
    for row in rows:
        alone = row.functions == (function,) and row.conditions.deployment == "inline"
        if alone and row.contends and row.conditions.plain and row.size.isdigit():
            own = row.function_cycles_per_packet
            if own:
                cycles.setdefault(int(row.size), []).append(own)
    known = tuple((size, statistics.median(values)) for size, values in sorted(cycles.items()))
    if not known or known[-1][0] < SPAN * known[0][0]:
        return Bound("not known", known)
    times = known[-1][1] / known[0][1]
    if times <= FLAT:
        return Bound("I/O-bound", known)
    return Bound("compute-bound" if times >= GROWS else "between", known)
