# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running device that is one process, and leaves sockets behind."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from convoy.dut.base import Running
from convoy.host.container import Container
from convoy.host.process import Process, ProcessError, output_of

WORDS = 3  # lines of a dead process that are shown


class RunningProcess(Running):
    """A device that is one process and leaves sockets behind."""

    def __init__(
        self, process: Process, sockets: Sequence[str | Path], holding: Container | None = None
    ) -> None:
        """holding: the container that it runs in. Raises ProcessError if it does not."""
        self._process = process
        self._holding = holding
        self._pid = process.pid if holding is None else holding.started(process)
        self._sockets = tuple(Path(socket) for socket in sockets)
        self.commands = (process.command,)

    def died(self) -> ProcessError:
        """Return what to raise where it runs no more: a cause stands before the last word."""
        self._process.last_words()  # waits until all of them were read
        lines = [line.strip() for line in self._process.stderr.text().splitlines() if line.strip()]
        code = self._process.exit_code or 0
        # Of a signal it had no time to speak itself.
        how = [f"ended by {signal.Signals(-code).name}"] if code < 0 else []
        words = "; ".join(how + lines[-WORDS:]) or f"exit code {code}"
        return ProcessError(f"{self._process.name}: {words}")

    def alive(self) -> bool:
        """Return whether its process runs."""
        return self._process.running()

    def processes(self) -> tuple[int, ...]:
        """Return the id of its process."""
        return (self._pid,)

    def watched(self) -> tuple[int, ...]:
        """Return the id of its process, which polls."""
        return self.processes()

    def output(self) -> Mapping[str, str]:
        """Return what it said."""
        return {self._process.name: output_of(self._process)}

    def stop(self) -> None:
        """End it, and remove its sockets."""
        self._process.close()
        if self._holding is not None:
            self._holding.close()
        for socket in self._sockets:
            socket.unlink(missing_ok=True)
