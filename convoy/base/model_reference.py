# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A model as a section of a Markdown reference, for docs/."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

BEGIN = "<!-- made from the models by `make generated`: do not edit below -->"
_COMMON = ("socket-mode", "socket-group", "mtu", "mac", "convoys")


def section(title: str, model: type[BaseModel], words: str | None = None) -> Iterator[str]:
    """Yield a model's heading, what it is (or other words), and a table of its keys."""
    schema = model.model_json_schema(by_alias=True)
    yield f"{title}\n\n{' '.join((words or model.__doc__ or '').split())}\n"
    yield "| key | value | default | |\n| --- | --- | --- | --- |"
    options = schema.get("properties", {})
    for key in sorted(options, key=lambda key: key in _COMMON):  # common ones last
        option = options[key]
        needed = key in schema.get("required", ())
        default = "**required**" if needed else _default(option.get("default"))
        words = option.get("description", "")
        yield f"| `{key}` | {_value(option, schema)} | {default} | {words} |"
    yield ""


def _default(value: Any) -> str:
    if value in (None, "", []) or isinstance(value, dict):
        return ""
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        return ""
    return f"`{json.dumps(value)}`".replace('"', "")


def _value(option: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what may stand there, in words."""
    if "$ref" in option:
        return "mapping"
    if "const" in option:
        return f"`{option['const']}`"
    if "enum" in option:
        return ", ".join(f"`{word}`" for word in option["enum"])
    choices = option.get("anyOf") or option.get("oneOf")
    if choices:
        texts = [_value(choice, schema) for choice in choices]
        return " or ".join(dict.fromkeys(text for text in texts if text != "null"))
    kind: str = option.get("type", "")
    if kind in ("integer", "number") and "minimum" in option:
        high = option.get("maximum")
        return f"{option['minimum']:.12g} " + ("or more" if high is None else f"to {high:.12g}")
    if kind == "array":
        return f"list of {_value(option.get('items', {}), schema) or 'values'}"
    if kind == "object":
        return "mapping"
    if kind == "string" and option.get("examples"):
        return f"text, e.g. `{option['examples'][0]}`"
    return {"string": "text", "integer": "number", "boolean": "`true`, `false`"}.get(kind, kind)
