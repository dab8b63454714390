# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Waits, for a bounded time, until the host is in its nominal state.

An interference episode takes a tenth of a second to some seconds (convoy/results/host_state.py).
What is measured in the meantime is excluded where there is enough else: better not to measure it.
Where one stays, the run continues, and reports it.
"""

import time
from bisect import insort
from collections.abc import Callable

from convoy.results.host_state import DEGRADED, Figures, nominal_value, slower

WAIT_S = 3.0  # each time
SHARE = 0.2  # of a run's time, that may be spent on it
FIRST_S = 10.0  # and this much at first
PROBE_INTERVAL_S = 0.1


class HostState:
    """What a run has seen of the host, and how long it has waited."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        patient: bool = True,
    ) -> None:
        """patient: else nothing is waited for."""
        self._patient = patient
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self._waited_s = 0.0
        self._known: dict[str, list[float]] = {name: [] for name in DEGRADED}  # in order of size

    @property
    def nominal(self) -> Figures:
        """Return the host's nominal state."""
        values = {name: nominal_value(values) for name, values in self._known.items()}
        return {name: value for name, value in values.items() if value is not None}

    def learn(self, one: Figures) -> None:
        """Note a trial's."""
        for name in DEGRADED.keys() & one.keys():
            insort(self._known[name], one[name])

    def degraded(self, one: Figures) -> bool:
        """Return whether that is a degraded state."""
        return bool(slower(one, self.nominal))

    def wait(self, probe: Callable[[], Figures]) -> bool:
        """Probe until the host is nominal, or that takes too long. Returns whether it is.

        Where nobody can tell, or has the time to, it is.
        """
        if not self._patient or not self.nominal:
            return True
        began = self._clock()
        left = FIRST_S + SHARE * (began - self._began) - self._waited_s
        end = began + min(WAIT_S, left)
        while degraded := self.degraded(probe()):
            if self._clock() >= end:
                break
            self._sleep(PROBE_INTERVAL_S)
        self._waited_s += self._clock() - began
        return not degraded
