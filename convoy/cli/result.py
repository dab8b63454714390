# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What commands return. They print progress and remarks, on stderr; the result is main's to print.

Each command with a result has --json: one document of the same facts as the text.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.cli.console import print_json

_META = "convoy.json"  # in a context's meta, which all contexts of a command share


class Result(ABC):
    """What a command did or learnt."""

    @property
    def exit_code(self) -> int:
        """How the command ends."""
        return 0

    @abstractmethod
    def document(self) -> Any:
        """Return what --json prints."""

    @abstractmethod
    def show(self, out: Console) -> None:
        """Print it for people."""


class PrintedDocument(Result):
    """What is for programs, with --json and without."""

    def __init__(self, document: Any) -> None:
        self._document = document

    def document(self) -> Any:
        """See Result."""
        return self._document

    def show(self, out: Console) -> None:
        """Print it as JSON, too."""
        print_json(self._document)


def _remember(context: typer.Context, chosen: bool) -> bool:
    context.meta[_META] = chosen
    return chosen


def wants_json(context: typer.Context) -> bool:
    """Return whether --json was given."""
    return bool(context.meta.get(_META))


# A command declares it and may leave it to main.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", callback=_remember)]
