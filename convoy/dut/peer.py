# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What dataplanes that no distribution packages have in common: where they are, how they answer."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from convoy.dut.base import Running
from convoy.errors import ConvoyError
from convoy.host.process import Process, ProcessError
from convoy.host.waited import waited_ns

ASK_DEADLINE_S = 15.0
WORDS = 3  # lines of a dead process that are shown


def find(program: str, variable: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the path of a program, or None.

    Looked for in an environment variable, which holds its path or a folder that it is in, and then
    in PATH. A variable that leads nowhere is no reason to take another one: None.
    """
    environment = os.environ if environment is None else environment
    if environment.get(variable):
        place = Path(environment[variable])
        place = place / program if place.is_dir() else place
        return place.absolute() if place.is_file() and os.access(place, os.X_OK) else None
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    return Path(found) if found else None


def ask(
    command: Sequence[str | Path],
    deadline_s: float = ASK_DEADLINE_S,
    must_succeed: bool = True,
) -> str:
    """Run a command to its end and return what it printed. Raises ConvoyError with its words."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=deadline_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ConvoyError(f"{name}: no answer within {deadline_s:g} s") from None
    except OSError as error:
        raise ConvoyError(f"{name}: {error}") from None
    if done.returncode != 0 and must_succeed:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        raise ConvoyError(f"{name}: {(lines or [f'exit code {done.returncode}'])[-1]}")
    return done.stdout


class RunningPeer(Running):
    """A device that is one process and leaves sockets behind."""

    def __init__(self, process: Process, sockets: Sequence[str | Path]) -> None:
        self._process = process
        self._sockets = tuple(Path(socket) for socket in sockets)
        self.commands = (process.command,)

    def died(self) -> ProcessError:
        """Return what to raise where it runs no more: a cause stands before the last word."""
        self._process.last_words()  # waits until all of them were read
        lines = [line.strip() for line in self._process.stderr.text().splitlines() if line.strip()]
        words = "; ".join(lines[-WORDS:]) or f"exit code {self._process.exit_code}"
        return ProcessError(f"{self._process.name}: {words}")

    def alive(self) -> bool:
        """Return whether its process runs."""
        return self._process.running()

    def processes(self) -> tuple[int, ...]:
        """Return the id of its process."""
        return (self._process.pid,)

    def waited_ns(self) -> int:
        """Return how long others kept it off its cores."""
        return waited_ns(self._process.pid)

    def stop(self) -> None:
        """End it, and remove its sockets."""
        self._process.__exit__(None, None, None)
        for socket in self._sockets:
            socket.unlink(missing_ok=True)
