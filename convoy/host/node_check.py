# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoyd --check: what only the node can tell (function tables, capture files, devices)."""

import json
import subprocess
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError, InputError
from convoy.host.folders import make_for_sockets

CHECK_DEADLINE_S = 120.0


def check_plan(convoyd: Path, plan: dict[str, Any], file: Path | None = None) -> None:
    """Let convoyd check a plan; nothing is started. Raises InputError with convoyd's words.

    file: where the plan was read from, if a person could have changed it: convoyd reads it itself.
    """
    make_for_sockets(plan)
    try:
        done = subprocess.run(
            [convoyd, "--check", "-" if file is None else file],
            input=json.dumps(plan) if file is None else "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHECK_DEADLINE_S,
            check=False,
        )
    except OSError as error:
        raise InputError(f"{convoyd}: {error.strerror}; build it again: make build") from None
    except subprocess.TimeoutExpired:
        raise ConvoyError(f"{convoyd} --check: no answer in {CHECK_DEADLINE_S:.0f} s") from None
    if done.returncode == 0:
        return
    message = about_plan(last_words(done.stderr)) or f"convoyd --check ended with {done.returncode}"
    raise (InputError if done.returncode == 2 else ConvoyError)(message)


def last_words(stderr: str) -> str:
    """Return what convoyd said last about why it ended."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("convoyd:")]
    return (own or lines or [""])[-1]


def about_plan(words: str, name: str = "the plan") -> str:
    """Return convoyd's words with a better name for the plan that it read from us."""
    return words.replace("convoyd: stdin: ", f"convoyd: {name}: ", 1)
