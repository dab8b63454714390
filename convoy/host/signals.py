# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Signals that ask us to stop, as something to wait on instead of an exception anywhere."""

import os
import select
import signal
from types import FrameType
from typing import Any, Self

from convoy.host.scope import Scope


class StopSignals(Scope):
    """While in its `with`, SIGINT, SIGTERM and SIGHUP request to stop; the third one interrupts."""

    def __init__(self) -> None:
        self._times = 0
        self._old: dict[int, Any] = {}
        self._old_wakeup = -1
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    @property
    def stop_requested(self) -> bool:
        """Whether a signal came."""
        return self._times > 0

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._times += 1
        if self._times > 2:
            raise KeyboardInterrupt

    def wait(self, pid: int, longest_s: float | None) -> None:
        """Return when a signal came, that process ended, or after longest_s (None: no limit)."""
        try:
            ended = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            select.select([self._read, ended], [], [], longest_s)
        finally:
            os.close(ended)

    def __enter__(self) -> Self:
        # Written to at once. A handler of Python's may run only after select() has begun to wait.
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._old[number] = signal.signal(number, self._on_signal)
        return self

    def _leave(self) -> None:
        signal.set_wakeup_fd(self._old_wakeup)
        for number, old in self._old.items():
            signal.signal(number, old)
        os.close(self._read)
        os.close(self._write)
