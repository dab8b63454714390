# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One thing that was looked at."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing about the machine.

    note: it works, slower or less exactly than it could. problem: something does not work, or
    what is measured here is wrong.
    """

    name: str
    level: Level
    state: str  # what is the case
    why: str = ""  # why it matters; empty where nothing has to be done
    fix: str = ""  # a command, or a setting

    def as_json(self) -> dict[str, Any]:
        """Return it for --json."""
        return asdict(self)
