# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The option reference of docs/descriptor.md, made from the models."""

import json
from collections.abc import Iterator
from typing import Any

from convoy.chain.descriptor import Chain, Descriptor, Memory, Telemetry, Workers
from convoy.chain.functions import FUNCTIONS, Match, Route
from convoy.chain.match import ChainMatch
from convoy.chain.model import Model
from convoy.chain.next_hops import NextHop
from convoy.chain.ports import PORTS, Captures, Convoys

_COMMON = ("socket-mode", "socket-group", "mtu", "mac", "convoys")
BEGIN = "<!-- made from the models by tools/descriptor-docs: do not edit below -->"


def reference() -> str:
    """Return the reference as Markdown, without the introduction that people wrote."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from _section("## Descriptor", Descriptor)
    yield "## `ports`\n\nThe key that comes first names the kind.\n"
    for kind, model in PORTS.items():
        yield from _section(f"### `{kind}`", model)
        if kind == "pcap":
            yield from _section("#### `pcap:`", Captures)
    yield from _section("### `convoys:` of any port", Convoys)
    yield "## `functions`\n\nThe key names the type; under it stand its settings.\n"
    for name, function in FUNCTIONS.items():
        inner = function.model_fields[name].annotation
        assert isinstance(inner, type) and issubclass(inner, Model)
        yield from _section(f"### `{name}`", inner)
        if name == "firewall":
            yield from _section("#### `rules`: `allow:` or `deny:`", Match)
        if name == "router":
            yield from _section("#### `routes`", Route)
    yield from _section("## `chains`", Chain)
    yield from _section("### `match`", ChainMatch)
    yield from _section("## `next-hops`", NextHop)
    yield from _section("## `workers`", Workers)
    yield from _section("## `memory`", Memory)
    yield from _section("## `telemetry`", Telemetry)


def _section(title: str, model: type[Model]) -> Iterator[str]:
    schema = model.model_json_schema(by_alias=True)
    yield f"{title}\n\n{' '.join((model.__doc__ or '').split())}\n"
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
    return (
        ""
        if value is None or isinstance(value, dict | list)
        else f"`{json.dumps(value)}`".replace('"', "")
    )


def _value(option: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what may stand there, in words."""
    if "$ref" in option:
        return "mapping"
    if "enum" in option:
        return ", ".join(f"`{word}`" for word in option["enum"])
    choices = option.get("anyOf") or option.get("oneOf")
    if choices:
        texts = [_value(choice, schema) for choice in choices]
        return " or ".join(dict.fromkeys(text for text in texts if text != "null"))
    kind: str = option.get("type", "")
    if kind == "integer":
        low, high = option.get("minimum"), option.get("maximum")
        return "number" if low is None else f"{low} to {high}"
    if kind == "array":
        return f"list of {_value(option.get('items', {}), schema) or 'values'}"
    if kind == "object":
        return "mapping"
    if kind == "string" and option.get("examples"):
        return f"text, e.g. `{option['examples'][0]}`"
    return {"string": "text", "boolean": "`true`, `false`"}.get(kind, kind)
