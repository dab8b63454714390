# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Programs: ours, and those that ours stand on."""

import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from convoy.host.command import CommandError, run
from convoy.host.doctor.finding import Finding
from convoy.host.programs import find

DEADLINE_S = 5.0


@dataclass(frozen=True)
class Program:
    """A program, how it tells its version, and what it is for."""

    name: str
    command: Sequence[str]
    purpose: str
    fix: str = ""


OURS = ("convoyd", "convoy-gen")
OTHERS = (Program("DPDK", ("pkg-config", "--modversion", "libdpdk"), "to build", "make setup"),)

Query = Callable[[Sequence[str]], str | None]


def query(command: Sequence[str]) -> str | None:
    """Return the first line that a command prints, or None where there is no such command."""
    path = shutil.which(command[0])
    if path is None or len(command) == 1:  # it cannot be asked
        return path
    try:
        ended = run(command, DEADLINE_S)
    except CommandError:
        return "found, but it does not answer"
    output = (ended.stdout or ended.stderr).strip()
    if not output and ended.exit_code != 0:
        return None
    return output.splitlines()[0] if output else "found"


def version(line: str) -> str:
    """Return the version number in a line, or the line."""
    match = re.search(r"(?<![0-9.])[0-9]+\.[0-9]+[0-9A-Za-z.~+-]*", line)
    return match[0] if match else line[:60]


def check(query: Query = query) -> Iterator[Finding]:
    """Yield which programs are here, and their versions."""
    yield Finding("kernel", "ok", platform.release())
    for name in OURS:
        path = find(name)
        if path is not None:
            yield Finding(name, "ok", str(path))
        else:
            yield Finding(name, "problem", "not found", "nothing can run without it", "make build")
    for program in OTHERS:
        line = query(program.command)
        if line is not None:
            yield Finding(program.name, "ok", version(line))
        else:
            yield Finding(program.name, "note", "not found", program.purpose, program.fix)
