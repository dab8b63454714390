# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Options that several commands have, so that they read alike."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

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
