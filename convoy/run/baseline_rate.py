# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The tester's baseline rate, what it reaches by itself, measured again as a run goes on.

No device can be shown to exceed it. A degraded host halves it, and would cap the rest of a run that
measured it only once; the highest is what can be offered.
"""

import time
from collections.abc import Callable

from convoy.host.private import private_folder
from convoy.results.trial_result import SelfTest
from convoy.tester.convoy_gen import ConvoyGen

INTERVAL_S = 45.0  # a self-test takes three or four seconds, of a run's minutes
INTERVAL_MAX_S = 720.0  # of a run's hours: it doubles as long as none is higher
HIGHER = 1.02


class BaselineRate:
    """The highest that was measured, and when."""

    def __init__(
        self,
        tester_core: int,
        device_core: int,
        higher: Callable[[SelfTest], None] = lambda result: None,
    ) -> None:
        """Measure nothing yet. higher: called with each self-test that is the highest so far."""
        self._tester_core = tester_core
        self._device_core = device_core
        self._higher = higher
        self._last: float | None = None
        self._interval_s = INTERVAL_S
        self.pps: float | None = None

    def due(self) -> bool:
        """Return whether it was not measured for a while."""
        return self._last is None or time.monotonic() - self._last > self._interval_s

    def measure(self) -> None:
        """Run the tester's self-test, on its core and the device's. Raises ConvoyError."""
        self._last = time.monotonic()  # where that fails too: it takes its time
        with private_folder() as private:
            ports = [f"vhost-user:{private}/none-{side}" for side in ("left", "right")]
            with ConvoyGen(
                ports,
                self._tester_core,
                self_test=True,
                reflector_core=self._device_core,
                device_core=self._device_core,
            ) as tester:
                result = tester.self_test
        if result is not None:
            self._learn(result)

    def _learn(self, result: SelfTest) -> None:
        known, now = self.pps or 0.0, result.baseline_pps or 0.0
        higher = now > HIGHER * known
        self._interval_s = INTERVAL_S if higher else min(2 * self._interval_s, INTERVAL_MAX_S)
        if now > known:
            self.pps = now
            self._higher(result.without_histogram())
