# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How fast the tester is by itself, looked at again as a run goes on.

What no device can be shown to exceed. A machine in a slow phase halves it, and would cap the rest
of a run that asked only once; the highest that was seen is what can be offered.
"""

import time
from collections.abc import Callable

from convoy.host.private import private_folder
from convoy.results.trial_result import SelfTest
from convoy.tester.convoy_gen import ConvoyGen

AGAIN_S = 45.0  # a look takes three or four seconds, of a run's minutes


class Ceiling:
    """The highest that was seen, and when somebody last looked."""

    def __init__(
        self,
        tester_core: int,
        device_core: int,
        higher: Callable[[SelfTest], None] = lambda result: None,
    ) -> None:
        """Look at nothing yet. higher: called with each self-test that is the highest so far."""
        self._tester_core = tester_core
        self._device_core = device_core
        self._higher = higher
        self._last: float | None = None
        self.pps: float | None = None

    def due(self) -> bool:
        """Return whether nobody looked for a while."""
        return self._last is None or time.monotonic() - self._last > AGAIN_S

    def look(self) -> None:
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
                found, result = tester.ceiling_pps, tester.self_test
        if found is not None and result is not None and found > (self.pps or 0.0):
            self.pps = found
            self._higher(result.without_histogram())
