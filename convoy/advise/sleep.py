# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""CPU time of a worker with `idle: sleep`, by the packets that come: as it was measured.

It polls for a while before it sleeps, so that few packets a second keep it awake: by far more than
its load.
"""

import math
from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from convoy.report.row import Row

EMPTY = 0.05  # of its core, that it takes without packets (docs/running.md)
OPTION = ("idle", "sleep")


@dataclass(frozen=True)
class Sleep:
    """Shares of a core, by packets a second that one worker gets, in their order."""

    points: tuple[tuple[float, float], ...] = ()

    @property
    def measured(self) -> bool:
        """Return whether more is known than what it takes without packets."""
        return bool(self.points)

    def share(self, rate_pps: float, load: float) -> float:
        """Return the share of its core at a rate and a load; where nothing was measured: the least.

        Between two measured rates by the logarithm, below them in proportion, and never less than
        the load: a chain of more functions than that which was measured sleeps less.
        """
        return max(load, self._at(rate_pps))

    def _at(self, rate_pps: float) -> float:
        if not self.points or rate_pps <= 0:
            return EMPTY
        i = bisect(self.points, (rate_pps, math.inf))
        if i == 0:
            rate, share = self.points[0]
            return EMPTY + max(0.0, share - EMPTY) * rate_pps / rate
        if i == len(self.points):
            return self.points[-1][1]
        (low, least), (high, most) = self.points[i - 1], self.points[i]
        return least + (most - least) * math.log(rate_pps / low) / math.log(high / low)


def sleep_of(rows: Iterable[Row]) -> Sleep:
    """Return what rows of our node with one worker that sleeps tell; of several the most."""
    points: dict[float, float] = {}
    for row in rows:
        if row.device == "convoy" and row.contends and OPTION in row.conditions.options:
            for delay in row.delays if row.conditions.cores == 1 else ():
                if delay.cpu_us_per_packet is not None and delay.rate_pps > 0:
                    share = min(1.0, delay.cpu_us_per_packet * delay.rate_pps / 1e6)
                    points[delay.rate_pps] = max(share, points.get(delay.rate_pps, 0.0))
    return Sleep(tuple(sorted(points.items())))
