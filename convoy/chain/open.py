# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A plan from a file: made from a descriptor, or written by an earlier `convoy check --plan`."""

from dataclasses import dataclass
from pathlib import Path

from convoy.chain.load import Loaded, check_text
from convoy.chain.machine import Machine
from convoy.chain.plan import SCHEMA, Plan, make_plan
from convoy.chain.text import read


@dataclass(frozen=True)
class Opened:
    """A file that can be run."""

    plan: Plan
    loaded: Loaded | None  # None: the file is a plan itself, which only convoyd can check


def open_file(path: Path, machine: Machine) -> Opened:
    """Read a descriptor or a plan. Raises DescriptorError."""
    text = read(path)
    if isinstance(text.data, dict) and text.data.get("schema") == SCHEMA:
        return Opened(Plan(text.data), None)
    loaded = check_text(text, path.parent.absolute(), machine)
    return Opened(make_plan(loaded, machine), loaded)
