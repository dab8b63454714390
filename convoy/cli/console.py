# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What all commands print with."""

import json
import os
import sys
from typing import Any

from rich.console import Console

WIDEST = 10_000  # columns; a table takes what it needs of them


def console() -> Console:
    """Return a console for results; NO_COLOR and pipes are respected, lines are never cut.

    What goes to a file or a pipe is as wide as its tables need, unless COLUMNS says otherwise.
    """
    out = Console(highlight=False, soft_wrap=True, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = WIDEST
    return out


def messages() -> Console:
    """Return a console for what is not the result: progress, warnings. On stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_json(document: Any) -> None:
    """Print one JSON document and nothing else."""
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")
