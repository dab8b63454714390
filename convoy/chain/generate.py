# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Models of functions' parameters as Python source, made from the tables in nf/.

The tables are what `convoyd --functions` prints. A parameter that is a list or a mapping of its own
shape gets no field here: the type's model in convoy/chain/functions.py adds it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_HEADER = '''\
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Parameters of the network functions, made from nf/ by `make generated`: do not edit."""

from typing import Literal

from pydantic import Field

from convoy.chain.model import File, Mac, Outputs, Parameters, Text
'''
_TYPES = {
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "text": "Text",
    "file": "File",
    "mac": "Mac",
}


def class_name(function: str) -> str:
    """Return the name of the model of a type's parameters."""
    return "".join(word.capitalize() for word in function.split("_")) + "Parameters"


def parameters(functions: Sequence[Mapping[str, Any]]) -> str:
    """Return the source of convoy/chain/parameters.py, but for how it is laid out."""
    lines = [_HEADER]
    for function in functions:
        lines += ["", f"class {class_name(function['name'])}(Parameters):"]
        lines += [f'    """{function["summary"]}"""', ""]
        lines += [_field(row) for row in function["params"] if _is_simple(row)]
        if function["branches"]:
            lines += ['    outputs: Outputs = Field({}, description="chains, by output")']
        lines += [""]
    lines += ["", "PARAMETERS: dict[str, type[Parameters]] = {"]
    lines += [f"    {each['name']!r}: {class_name(each['name'])}," for each in functions]
    more = _rows(functions, lambda row: not _is_simple(row))
    files = _rows(functions, lambda row: row["type"] == "file")
    by_function = {name: tuple(rows) for name, rows in files.items()}
    lines += ["}", "# What the fields are for that a type's own model must add."]
    lines += [f"MORE: dict[str, dict[str, str]] = {more!r}"]
    lines += ["# Parameters that are paths of files to read."]
    lines += [f"FILES: dict[str, tuple[str, ...]] = {by_function!r}"]
    return "\n".join(lines) + "\n"


def _rows(
    functions: Sequence[Mapping[str, Any]], wanted: Callable[[Mapping[str, Any]], bool]
) -> dict[str, dict[str, str]]:
    """Return the lines that document the wanted parameters, by function and key."""
    rows = {
        each["name"]: {row["key"]: row["doc"] for row in each["params"] if wanted(row)}
        for each in functions
    }
    return {name: named for name, named in rows.items() if named}


def _is_simple(row: Mapping[str, Any]) -> bool:
    return row["type"] == "word" or row["type"] in _TYPES


def _field(row: Mapping[str, Any]) -> str:
    words = ", ".join(repr(word) for word in row.get("words", ()))
    kind = f"Literal[{words}]" if words else _TYPES[row["type"]]
    bounds = f", ge={row['low']}, le={row['high']}" if "low" in row else ""
    default = "..." if row["required"] else repr(row.get("default"))
    if default == "None":
        kind += " | None"
    return f"    {row['key']}: {kind} = Field({default}{bounds}, description={row['doc']!r})"
