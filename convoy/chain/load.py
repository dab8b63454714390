# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A descriptor file to a checked descriptor: every error with file, line, field, value and fix."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from convoy.chain import links
from convoy.chain.descriptor import Descriptor
from convoy.chain.machine import Machine
from convoy.chain.problem import Loc, Problem, known, shown
from convoy.chain.text import Text, parse, read

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Loaded:
    """A descriptor that is right, and where it came from."""

    descriptor: Descriptor
    text: Text
    base: Path  # relative paths in it start here


def load(path: Path, machine: Machine) -> Loaded:
    """Load a descriptor from a file. Raises DescriptorError."""
    return check_text(read(path), path.parent.absolute(), machine)


def loads(content: str | bytes, machine: Machine, base: Path, name: str = "<text>") -> Loaded:
    """Load a descriptor from memory; relative paths in it start at base. Raises DescriptorError."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return check_text(parse(data, name), base, machine)


def validate(text: Text, model: type[M]) -> M:
    """Return the document as a model. Raises DescriptorError with every problem."""
    try:
        return model.model_validate(text.data)
    except ValidationError as error:
        found = [_problem(text, detail) for detail in error.errors(include_url=False)]
        raise text.error(list(dict.fromkeys(found))) from None


def check_text(text: Text, base: Path, machine: Machine) -> Loaded:
    """Check a parsed descriptor. Raises DescriptorError with every problem."""
    descriptor = validate(text, Descriptor)
    found = links.problems(descriptor, base, machine)
    if found:
        raise text.error(found)
    return Loaded(descriptor, text, base)


def _place(text: Text, raw: Loc) -> Loc:
    """Drop from pydantic's location what is not in the document: tags of unions."""
    loc: Loc = ()
    for part in raw:
        if (*loc, part) in text.lines:
            loc = (*loc, part)
    return loc


def _value(text: Text, loc: Loc) -> Any:
    value = text.data
    for part in loc:
        value = value[part]
    return value


_WORDS = {
    "int_type": "must be a whole number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of names",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
}


def _problem(text: Text, detail: Any) -> Problem:
    """One of pydantic's errors as a person would say it."""
    kind: str = detail["type"]
    context = detail.get("ctx", {})
    loc = _place(text, tuple(detail["loc"]))
    if kind == "missing":
        key = detail["loc"][-1]
        return Problem(loc, f"the key '{key}' is missing", f"add {key}:")
    message = detail["msg"].removeprefix("Value error, ")
    message = message.replace("Input should be", "must be")
    if kind == "convoy_key":
        what, _, fix = message.partition("; ")
        at = (*loc, context["key"])
        return Problem(at if at in text.lines else loc, what, fix)
    value = _value(text, loc)
    is_key = detail["loc"][-1:] == ("[key]",)
    scalar = is_key or not isinstance(value, dict | list)
    given = shown(loc[-1] if is_key else value) if scalar else ""
    if value is None:
        given = "nothing"
    what, _, fix = message.partition("; ")
    if kind == "literal_error":
        names = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        what, fix = "must be one of these", known("values", value, names)
    elif kind == "too_long":
        what = f"has {context['actual_length']} items, {context['max_length']} is the most"
    elif kind == "too_short":
        what = f"needs {context['min_length']} or more items"
    elif kind in _WORDS:
        what = _WORDS[kind]
        if kind == "int_type" and isinstance(value, str) and value.strip("-").isdigit():
            fix = "write it without quotes"
        if kind == "string_type" and isinstance(value, int | float):
            fix = "put it in quotes"
    return Problem(loc, what, fix, given)
