# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Commands that run to their end, with a deadline: what they wrote, and how they ended."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convoy.errors import ConvoyError

DEADLINE_S = 20.0


class CommandError(ConvoyError):
    """A command cannot be run, did not end in time, or failed."""


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Everything that it wrote."""
        return self.stdout + self.stderr

    def lines(self) -> list[str]:
        """Return what it wrote about why it ended, one line or more; else its exit code."""
        texts = (line.strip() for line in (self.stderr.strip() or self.stdout).splitlines())
        return [line for line in texts if line] or [f"exit code {self.exit_code}"]


def run(
    command: Sequence[str | Path],
    deadline_s: float = DEADLINE_S,
    text: str = "",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command to its end, however that is. Raises CommandError without one.

    text: its standard input. environment: added to ours.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(word) for word in command],
            input=text, capture_output=True, text=True, errors="replace",
            timeout=deadline_s, env={**os.environ, **(environment or {})}, check=False,
        )  # fmt: skip
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{name}: no answer within {deadline_s:g} s") from None
    return Ended(done.returncode, done.stdout, done.stderr)


def output(
    command: Sequence[str | Path],
    deadline_s: float = DEADLINE_S,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command that must succeed; return its standard output. Raises CommandError."""
    ended = run(command, deadline_s, environment=environment)
    if ended.exit_code != 0:
        raise CommandError(f"{Path(command[0]).name}: {ended.lines()[-1]}")
    return ended.stdout
