# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a device spent during a trial, by its own counters: whole, and by its parts."""

from dataclasses import dataclass

from convoy.dut.base import Cost as Counted
from convoy.dut.base import Running
from convoy.results.trials import Cost


@dataclass(frozen=True)
class Spent:
    """The counters at one moment."""

    whole: Counted | None
    parts: dict[str, Counted]

    @classmethod
    def now(cls, running: Running) -> "Spent":
        """Read them."""
        return cls(running.cost(), dict(running.part_costs()))


def _difference(before: Counted | None, after: Counted | None) -> Cost | None:
    if before is None or after is None:
        return None
    return Cost(
        cycles=after.busy_cycles - before.busy_cycles,
        packets=after.packets - before.packets,
        source=after.source,
    )


def between(before: Spent, after: Spent) -> tuple[Cost | None, dict[str, Cost]]:
    """Return what the device spent in between, and each part of it that counts."""
    each = {name: _difference(before.parts.get(name), cost) for name, cost in after.parts.items()}
    parts = {name: cost for name, cost in each.items() if cost is not None}
    return _difference(before.whole, after.whole), parts
