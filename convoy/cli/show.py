# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy show: what a node runs now, as a plan or as a descriptor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.files import will_write, write_whole
from convoy.chain.as_descriptor import as_descriptor
from convoy.cli.result import Json, PrintedDocument, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.errors import InputError
from convoy.host.machine import this_machine


@dataclass(frozen=True)
class Written(Result):
    """What runs, as a descriptor."""

    text: str
    file: Path | None  # None: it is to be printed

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.show/1",
            "descriptor": self.text,
            "file": None if self.file is None else str(self.file),
        }

    def show(self, out: Console) -> None:
        """Print it, or where it is."""
        if self.file is None:
            out.print(self.text, end="", markup=False, highlight=False, soft_wrap=True)
        else:
            out.print(f"{self.file}: written", markup=False)


def command(
    pid: Pid = None,
    descriptor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write it as a descriptor, in place of a plan; -: print that."
        ),
    ] = None,
    as_json: Json = False,
) -> Result:
    """Print the plan that a node runs now: `convoy run` and `convoy apply` take it.

    With --descriptor, it is YAML as people write it: what was changed since the start is in it, and
    applied to the same node it changes nothing.
    """
    node = chosen(pid)
    with Client(node.read) as client:
        plan = client.plan()
    if descriptor is None:
        return PrintedDocument(plan)
    file = None if str(descriptor) == "-" else descriptor
    if file is not None:
        will_write("--descriptor", file)
    text = as_descriptor(plan, this_machine(), file)
    if file is not None:
        try:
            write_whole(file, text)
        except OSError as error:
            raise InputError(f"--descriptor: {file}: {error.strerror}") from None
    return Written(text, file)
