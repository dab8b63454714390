# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The parts of a chain as people see them: what each runs, where, and whom it is joined to."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from convoy.chain.split import Part, Split


def _neighbours(split: Split, part: Part) -> dict[str, str]:
    """Return the parts that a part is joined to, by which kind of port."""
    result = {}
    for pair in split.pairs:
        if part.name in (pair.maker, pair.other):
            other = pair.other if part.name == pair.maker else pair.maker
            result[other] = pair.kind
    return result


def parts_table(split: Split) -> Table:
    """Return the parts of a chain that is not started."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("part", "place", "cores", "functions", "joined to"):
        table.add_column(name, no_wrap=True)
    for part in split.parts:
        joined = [f"{other} ({kind})" for other, kind in _neighbours(split, part).items()]
        functions = ", ".join(part.functions) or "-"
        cores = ", ".join(map(str, part.cores))
        table.add_row(part.name, part.place, cores, functions, ", ".join(joined))
    return table


def parts_document(split: Split) -> list[dict[str, Any]]:
    """Return the parts as JSON has them."""
    return [
        {
            "name": part.name,
            "place": part.place,
            "functions": list(part.functions),
            "joined_to": _neighbours(split, part),
            **({"plan": part.plan.data} if part.plan is not None else {}),
            **({"flow_rules": list(part.rules)} if part.rules else {}),
        }
        for part in split.parts
    ]


def states_table(parts: Sequence[Mapping[str, Any]]) -> Table:
    """Return the parts of a chain that runs, of Supervisor.state()."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("part", "place", "functions", "process", "restarts", "ended last by"):
        table.add_column(name, justify="right" if name in ("process", "restarts") else "left")
    for part in parts:
        process = str(part["pid"]) if part["running"] else "starts"
        table.add_row(
            part["name"],
            part["place"],
            ", ".join(part["functions"]) or "-",
            process,
            str(part["restarts"]),
            part.get("why", "-"),
        )
    return table
