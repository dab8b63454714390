# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy check: is a descriptor right, and what would run?"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from convoy.base.problem import printable
from convoy.chain.open import open_file
from convoy.chain.picture import pictures
from convoy.chain.plan import Plan
from convoy.chain.schema import json_schema
from convoy.cli.console import console, print_json
from convoy.cli.options import Json
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node_check import check_plan
from convoy.host.programs import find, need


@dataclass(frozen=True)
class CheckResult:
    """A file that is right."""

    file: str
    plan: Plan
    checked_by_convoyd: bool

    def as_json(self) -> dict[str, Any]:
        """Return the document that --json prints."""
        return {
            "schema": "convoy.check/1",
            "file": self.file,
            "ok": True,
            "checked_by_convoyd": self.checked_by_convoyd,
            "notes": list(self.plan.notes),
            "plan": self.plan.data,
        }


def check(file: Path) -> CheckResult:
    """Check a descriptor (or a plan) here and, where convoyd is built, there."""
    opened = open_file(file, this_machine())
    convoyd = need("convoyd") if opened.loaded is None else find("convoyd")
    if convoyd is not None:
        check_plan(convoyd, opened.plan.data, None if opened.loaded else file)
    return CheckResult(str(file), opened.plan, convoyd is not None)


def render(result: CheckResult) -> None:
    """Print a picture of each chain, and what there is to know."""
    out = console()
    for title, lines in pictures(result.plan.data):
        out.print(title, style="bold", markup=False)
        for line in lines:
            out.print(f"  {line}", markup=False)
    for note in result.plan.notes:
        out.print(f"note: {note}", markup=False)
    if not result.checked_by_convoyd:
        out.print(
            "note: convoyd is not built, so only it could tell whether the tables load; "
            "run make build",
            markup=False,
        )
    out.print(f"{printable(result.file)}: ok", style="green", markup=False)


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
) -> None:
    """Check a chain descriptor; start nothing."""
    if schema:
        print_json(json_schema())
        return
    if file is None:
        raise InputError("convoy check: which file? Give a chain descriptor: convoy check FILE")
    result = check(file)
    if plan:
        print(json.dumps(result.plan.data, indent=2))
    elif as_json:
        print_json(result.as_json())
    else:
        render(result)
