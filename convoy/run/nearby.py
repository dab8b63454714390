# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Waits, for a bounded time, until the tester's core and the device's are near each other.

They come and go for seconds at a time (convoy/results/phase.py). What is measured in the
meantime is left out where there is enough else: better not to measure it. Where they stay apart,
the run goes on, and says so.
"""

import time
from bisect import insort
from collections.abc import Callable

from convoy.results.phase import PLACED, quickest

WAIT_S = 3.0  # each time
SHARE = 0.1  # of a run's time, that may be spent on it
FIRST_S = 10.0  # and this much at first
LOOK_S = 0.1  # from one look to the next


class Nearby:
    """What a run has seen of the distance, and how long it has waited."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self._waited_s = 0.0
        self._lines_ns: list[float] = []  # in order of size

    @property
    def nearest_ns(self) -> float | None:
        """Return what a line takes where the cores are near."""
        return quickest(self._lines_ns)

    def learn(self, line: float | None) -> None:
        """Note a trial's."""
        if line is not None:
            insort(self._lines_ns, line)

    def far(self, line: float | None) -> bool:
        """Return whether that is far apart."""
        nearest = self.nearest_ns
        return line is not None and nearest is not None and line > PLACED["line"] * nearest

    def wait(self, look: Callable[[], float | None]) -> bool:
        """Look until the cores are near, or it takes too long. Returns whether they are.

        Where nobody can tell, they are.
        """
        if self.nearest_ns is None:
            return True
        began = self._clock()
        left = FIRST_S + SHARE * (began - self._began) - self._waited_s
        end = began + min(WAIT_S, left)
        while self.far(look()):
            if self._clock() >= end:
                near = False
                break
            self._sleep(LOOK_S)
        else:
            near = True
        self._waited_s += self._clock() - began
        return near
