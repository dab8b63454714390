# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Options that several commands have, so that they read alike."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from convoy.base.problem import shown
from convoy.errors import InputError

Devices = Annotated[
    list[str] | None,
    typer.Option(help="Only these, with commas.  [all that the scenario names]"),
]
Rounds = Annotated[
    int | None, typer.Option(help="Rounds through all devices.  [5, quick 3]", min=1, max=99)
]
NewFolder = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Folder for the results.  [results/TIME-NAME]"),
]


TIME_MAX_S = 20 * 86400  # what waits for a process can wait at a time
_UNITS_S = {"s": 1, "m": 60, "h": 3600}


def seconds(option: str, text: str) -> float:
    """Return the seconds that 30s, 5m, 1h, 30 or 0.5 mean, TIME_MAX_S at most.

    Raises InputError.
    """
    number = text[:-1] if text[-1:] in _UNITS_S else text
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", number, re.ASCII):
        raise InputError(f"{option}: {shown(text)}: write a time like 30s, 5m, 1h or 0.5")
    result = float(number) * _UNITS_S.get(text[-1:], 1)
    if result > TIME_MAX_S:
        raise InputError(f"{option}: {shown(text)}: write a time up to {TIME_MAX_S // 3600}h")
    return result


def _duration(text: str) -> float:
    return seconds("--duration", text)


def _time_limit(text: str) -> float:
    return seconds("--time-limit", text)


TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        parser=_time_limit,
        help="End after that time (90m, 2h): every scenario's first round, then its next ones.",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(metavar="TIME", parser=_duration, help="End after that time (30s, 5m, 1h)."),
]


def split(option: str, texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the words of an option that takes several: with commas, or given again.

    None: it was not given. Raises InputError.
    """
    if not texts:
        return None
    words = [word.strip() for text in texts for word in text.split(",")]
    if not all(words):
        given = " ".join(texts)
        raise InputError(f"{option}: '{given}': give names with commas between, or leave it out")
    return tuple(dict.fromkeys(words))
