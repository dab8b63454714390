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
from convoy.cli.result import Json, PrintedDocument, Result
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node_check import NodeFlows, check_plan
from convoy.host.programs import find, need


@dataclass(frozen=True)
class Checked(Result):
    """A file that is right."""

    file: str
    plan: Plan
    flows: tuple[NodeFlows, ...] | None  # None: convoyd is not built

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.check/1",
            "file": self.file,
            "ok": True,
            "checked_by_convoyd": self.flows is not None,
            "flows": [asdict(each) for each in self.flows or ()],
            "notes": list(self.plan.notes),
            "plan": self.plan.data,
        }

    def show(self, out: Console) -> None:
        """Print a picture of each chain, and what there is to know."""
        for title, lines in pictures(self.plan.data):
            out.print(title, style="bold", markup=False)
            for line in lines:
                out.print(f"  {line}", markup=False)
        for note in self.plan.notes:
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
    opened = open_file(file, this_machine())
    convoyd = need("convoyd") if opened.loaded is None else find("convoyd")
    flows = None
    if convoyd is not None:
        flows = check_plan(convoyd, opened.plan.data, None if opened.loaded else file)
    return Checked(str(file), opened.plan, flows)


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
