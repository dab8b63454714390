# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The reference of docs/scenarios.md and the JSON schema of scenarios, made from the models."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from convoy.base.model_reference import section
from convoy.results.scenario import (
    Applications,
    Capture,
    Changes,
    Compare,
    Contents,
    Figure,
    Needs,
    Pacing,
    Quick,
    Scenario,
    SetupSpec,
    Target,
)

SECTIONS: dict[str, type[BaseModel]] = {
    "## Scenario": Scenario,
    "## `sizes`: captures": Capture,
    "## `contents`": Contents,
    "## `setups`": SetupSpec,
    "## `pacing`": Pacing,
    "## `changes`": Changes,
    "## `compare`": Compare,
    "## `targets`": Target,
    "## `applications`": Applications,
    "## `figure`": Figure,
    "## `needs`": Needs,
    "## `quick`": Quick,
}


def _lines() -> Iterator[str]:
    for title, model in SECTIONS.items():
        yield from section(title, model)


def reference() -> str:
    """Return the reference as Markdown, without the introduction that people wrote."""
    return "\n".join(_lines())


def json_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema 2020-12) for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://convoy.invalid/scenario.schema.json",
        **Scenario.model_json_schema(by_alias=True),
        "title": "Convoy scenario",
    }
