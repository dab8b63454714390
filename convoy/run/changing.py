# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Replaces a running device's configuration again and again, while packets are measured.

Who does it must not wait for the tester nor keep it waiting: it has a core of its own where there
is one, else it shares the device's.
"""

import os
import threading
import time
from collections.abc import Iterable

from convoy.dut.base import Changer
from convoy.errors import ConvoyError
from convoy.host.scope import Scope


def control_core(allowed: Iterable[int], tester: int, device: tuple[int, ...]) -> int:
    """Return the core that configurations are changed on."""
    free = sorted(set(allowed) - {tester, *device})
    return free[0] if free else device[0]


class Changing(Scope):
    """Goes to and fro between two configurations, from now on until it is closed."""

    def __init__(self, changer: Changer, every_s: float, core: int) -> None:
        """changer: of configurations 0, which runs, and 1."""
        self._changer, self._every_s, self._core = changer, every_s, core
        self._took_ns: list[int] = []
        self._lock = threading.Lock()
        self._error: ConvoyError | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changing", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        try:
            for thread in (threading.get_native_id(), *self._changer.threads()):
                os.sched_setaffinity(thread, {self._core})
            while not self._end.is_set():
                began = time.monotonic_ns()
                number = 1 - number
                self._changer.change(number)
                took = time.monotonic_ns() - began
                with self._lock:
                    self._took_ns.append(took)
                self._end.wait(max(0.0, self._every_s - took / 1e9))
        except ConvoyError as error:
            self._error = error
        except OSError as error:
            self._error = ConvoyError(f"core {self._core} for changes: {error.strerror}")

    def take(self) -> tuple[int, ...]:
        """Return how long each change took since the last call. Raises ConvoyError if one failed.

        From the call to the device's word that it is in effect.
        """
        if self._error is not None:
            raise self._error
        with self._lock:
            result, self._took_ns = tuple(self._took_ns), []
        return result

    def _leave(self) -> None:
        self._end.set()
        self._thread.join()
        self._changer.close()
