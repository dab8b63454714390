# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How far the tester's core and the device's were from each other: near, or far. Pure.

A virtual machine's cores are moved about. Behind one level-3 cache a line goes from one to the
other and back in 70 ns; behind two it takes 300, and every packet takes so much longer. The tester
looks before and after each trial. What was measured far apart is another machine's number.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FAR = 2.0  # times the nearest: between 1.3, which moments differ by, and 4, which caches do
FIRST = 0.05  # the nearest of a run: what so many of its trials did not exceed
MOST = 0.25  # of a round's trials that were far apart, or the round was
ENOUGH = 2  # rounds nearby, which then stand for all


def line_ns(result: Mapping[str, Any]) -> float | None:
    """Return a line's time there and back, of the two looks the slower one; None: not known."""
    probe = result.get("probe") or {}
    looks = [probe[when] for when in ("before_ns", "after_ns") if probe.get(when)]
    return float(max(looks)) if looks else None


def nearest_ns(lines_ns: Sequence[float]) -> float | None:
    """Return what a line took where the cores were near; None: nobody looked."""
    return sorted(lines_ns)[int(FIRST * len(lines_ns))] if lines_ns else None


def is_far(line: float | None, nearest: float | None) -> bool:
    """Return whether that is far apart. What is not known is not."""
    return line is not None and nearest is not None and line > FAR * nearest


def far_rounds(lines_ns: Mapping[int, Sequence[float]], nearest: float | None) -> frozenset[int]:
    """Return the rounds that were far apart, of a point's trials by round."""
    return frozenset(
        number
        for number, lines in lines_ns.items()
        if lines and sum(is_far(line, nearest) for line in lines) >= MOST * len(lines)
    )


def left_out(far: frozenset[int], told: Iterable[int]) -> frozenset[int]:
    """Return the rounds that count for nothing, where enough others told something.

    told: the rounds that have a result.
    """
    return far if len(frozenset(told) - far) >= ENOUGH else frozenset()
