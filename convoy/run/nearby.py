# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Waits, for a bounded time, until the machine is in its fast phase: the tester's core and the
device's near each other, and nobody else on the device's.

Slow ones take a tenth of a second to some seconds (convoy/results/phase.py). What is measured in
the meantime is left out where there is enough else: better not to measure it. Where one stays, the
run goes on, and says so.
"""

import time
from bisect import insort
from collections.abc import Callable

from convoy.results.phase import SLOW, Figures, quickest, slower

WAIT_S = 3.0  # each time
SHARE = 0.2  # of a run's time, that may be spent on it
FIRST_S = 10.0  # and this much at first
LOOK_S = 0.1  # from one look to the next


class Nearby:
    """What a run has seen of the machine, and how long it has waited."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self._waited_s = 0.0
        self._known: dict[str, list[float]] = {name: [] for name in SLOW}  # in order of size

    @property
    def fast(self) -> Figures:
        """Return what the machine is like in its fast phase."""
        best = {name: quickest(values) for name, values in self._known.items()}
        return {name: value for name, value in best.items() if value is not None}

    def learn(self, one: Figures) -> None:
        """Note a trial's."""
        for name in SLOW.keys() & one.keys():
            insort(self._known[name], one[name])

    def slow(self, one: Figures) -> bool:
        """Return whether that is a slow phase."""
        return bool(slower(one, self.fast))

    def wait(self, look: Callable[[], Figures]) -> bool:
        """Look until the machine is fast, or it takes too long. Returns whether it is.

        Where nobody can tell, it is.
        """
        if not self.fast:
            return True
        began = self._clock()
        left = FIRST_S + SHARE * (began - self._began) - self._waited_s
        end = began + min(WAIT_S, left)
        while self.slow(look()):
            if self._clock() >= end:
                fast = False
                break
            self._sleep(LOOK_S)
        else:
            fast = True
        self._waited_s += self._clock() - began
        return fast
