# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What dataplanes that no distribution packages have in common: where they are, how they answer."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from convoy.errors import ConvoyError

ASK_DEADLINE_S = 15.0


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
    result = shutil.which(program, path=environment.get("PATH", os.defpath))
    return Path(result) if result else None


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
