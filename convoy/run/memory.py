# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs the programs that measure parts of a hop in memory: cycles per packet, nothing around."""

import json
import subprocess
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.programs import need

DEADLINE_S = 120.0
REPEATS = {"next-hop": 101, "frame": 11, "vring": 11, "views": 11}


def command(what: str, repeats: int | None = None) -> tuple[str, ...]:
    """Return the command that measures next-hop, frame, vring or views. Raises InputError."""
    return (str(need(f"bench-{what}")), str(repeats or REPEATS[what]))


def measure(what: str, repeats: int | None = None) -> dict[str, Any]:
    """Run it and return the document that it printed.

    Raises ConvoyError where the program fails, InputError where it is not there.
    """
    words = command(what, repeats)
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
        result = json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        raise ConvoyError(f"bench-{what}: no result within {DEADLINE_S:g} s") from None
    except ValueError as error:
        raise ConvoyError(f"bench-{what}: printed no JSON: {error}") from None
    if not isinstance(result, dict):
        raise ConvoyError(f"bench-{what} ended with {done.returncode}: {done.stderr.strip()}")
    return result
