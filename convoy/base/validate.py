# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A parsed document to a model: every problem with file, line, field, value and fix."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from convoy.base.problem import Loc, Problem, known, shown
from convoy.base.yaml_text import Text
from convoy.errors import message

M = TypeVar("M", bound=BaseModel)


def validate(text: Text, model: type[M]) -> M:
    """Return the document as a model. Raises DescriptorError with every problem."""
    try:
        return model.model_validate(text.data)
    except ValidationError as error:
        problems = [_problem(text, detail) for detail in error.errors(include_url=False)]
        raise text.error(list(dict.fromkeys(problems))) from None


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
    words = message(detail)
    if kind == "convoy_key":
        what, _, fix = words.partition("; ")
        at = (*loc, context["key"])
        return Problem(at if at in text.lines else loc, what, fix)
    value = _value(text, loc)
    is_key = detail["loc"][-1:] == ("[key]",)
    scalar = is_key or not isinstance(value, dict | list)
    given = shown(loc[-1] if is_key else value) if scalar else ""
    if value is None:
        given = "nothing"
    what, _, fix = words.partition("; ")
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
