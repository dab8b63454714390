# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy check: is a descriptor right, and what would run?"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import printable
from convoy.chain.open import open_file
from convoy.chain.picture import pictures
from convoy.chain.plan import Plan
from convoy.chain.schema import json_schema
from convoy.chain.split import Split
from convoy.cli.parts_view import parts_document, parts_table
from convoy.cli.refused import with_line
from convoy.cli.result import Json, PrintedDocument, Result
from convoy.errors import InputError
from convoy.host.folders import runtime_dir
from convoy.host.machine import this_machine
from convoy.host.node_check import NodeFlows, check_plan
from convoy.host.programs import find, need


@dataclass(frozen=True)
class Checked(Result):
    """A file that is right."""

    file: str
    plan: Plan
    flows: tuple[NodeFlows, ...] | None  # None: convoyd is not built
    split: Split | None = None

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.check/1",
            "file": self.file,
            "ok": True,
            "checked_by_convoyd": self.flows is not None,
            "flows": [asdict(each) for each in self.flows or ()],
            "notes": list(self._notes),
            "plan": self.plan.data,
            **({} if self.split is None else {"parts": parts_document(self.split)}),
        }

    @property
    def _notes(self) -> tuple[str, ...]:
        return self.plan.notes if self.split is None else self.split.notes

    def show(self, out: Console) -> None:
        """Print a picture of each chain, and what there is to know."""
        drawn = pictures(self.plan.data)
        if self.split is not None:
            drawn = [(title, [line]) for title, line in self.split.pictures]
        for title, lines in drawn:
            out.print(title, style="bold", markup=False)
            for line in lines:
                out.print(f"  {line}", markup=False)
        if self.split is not None:
            out.print(parts_table(self.split))
        for note in self._notes:
            out.print(f"note: {note}", markup=False)
        for each in self.flows or ():
            out.print(
                f"note: flows of {each.functions}: {each.max:,} IPv4 and {each.max_ipv6:,} IPv6, "
                f"{each.bytes / 2**20:,.0f} MiB",
                markup=False,
            )
        if self.flows is None:
            out.print(
                "note: convoyd is not built, so only it could tell whether the tables load; "
                "run make build",
                markup=False,
            )
        out.print(f"{printable(self.file)}: ok", style="green", markup=False)


def check(file: Path) -> Checked:
    """Check a descriptor (or a plan) here and, where convoyd is built, there."""
    opened = open_file(file, this_machine(), folder=runtime_dir())
    convoyd = need("convoyd") if opened.loaded is None else find("convoyd")
    flows = None
    if convoyd is not None:
        try:
            flows = check_plan(convoyd, opened.plan.data, None if opened.loaded else file)
        except InputError as error:
            raise InputError(with_line(printable(str(error)), file, opened)) from None
        for part in opened.split.parts[1:] if opened.split else ():
            if part.plan is not None:
                flows += check_plan(convoyd, part.plan.data)
    return Checked(str(file), opened.plan, flows, opened.split)


def command(
    file: Annotated[
        Path | None, typer.Argument(help="Chain descriptor (YAML), or a plan (JSON).")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the plan that convoyd reads.")
    ] = False,
    as_json: Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of descriptors, for editors.")
    ] = False,
) -> Result:
    """Check a chain descriptor; start nothing."""
    if schema:
        return PrintedDocument(json_schema())
    if file is None:
        raise InputError("convoy check: which file? Give a chain descriptor: convoy check FILE")
    result = check(file)
    return PrintedDocument(result.plan.data) if plan else result
