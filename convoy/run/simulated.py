# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs simulations that scenarios ask for."""

import json
import sys
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.command import run

DEADLINE_S = 900.0
SIMULATED_S = 30.0  # of one, with all of its seeds
SEEDS = 20  # and as many values of each figure, which differ by chance alone
COMMANDS = {"paper-topologies": ("sim", "paper", "--json", "--more-seeds", str(SEEDS - 1))}


def command(what: str) -> tuple[str, ...]:
    """Return the command that simulates it."""
    return ("convoy", *COMMANDS[what])


def simulate(what: str) -> dict[str, Any]:
    """Run it and return the document that it printed. Raises ConvoyError where it fails."""
    ended = run((sys.executable, "-m", *command(what)), DEADLINE_S)
    try:
        result = json.loads(ended.stdout) if ended.exit_code == 0 else None
    except ValueError as error:
        raise ConvoyError(f"{what}: printed no JSON: {error}") from None
    if not isinstance(result, dict):
        raise ConvoyError(f"{what}: {ended.lines()[-1]}")
    return result
