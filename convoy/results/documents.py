# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What plan.yaml and host.json of a run say, as far as a report needs it.

What is missing is shown as unknown, and what nobody asks for is kept: older runs have less, newer
ones more. What is there must be what it seems.
"""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from convoy.errors import InputError

PLAN_SCHEMA: Literal["convoy.bench.plan/1"] = "convoy.bench.plan/1"
HOST_SCHEMA: Literal["convoy.host/1"] = "convoy.host/1"


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class Planned(_Document):
    """A scenario, as it was when the run was made."""

    title: str = ""
    source: str = Field("", alias="from")
    asks: str = ""
    compare: tuple[dict[str, Any], ...] = ()
    figure: dict[str, Any] = Field(default_factory=dict)


class Plan(_Document):
    """What was to be measured."""

    schema_tag: Literal["convoy.bench.plan/1"] = Field(PLAN_SCHEMA, alias="schema")
    quick: bool = False
    search: str = "unknown"
    goals: tuple[str, ...] = ()
    repeats: int = 0
    scenarios: dict[str, Planned]


class Host(_Document):
    """On what machine."""

    schema_tag: Literal["convoy.host/1"] = Field(HOST_SCHEMA, alias="schema")
    started: str | None = None  # ISO 8601, with its time zone
    cpu: str = "unknown processor"
    cores: tuple[int, ...] = ()
    cores_allowed: tuple[int, ...] = ()
    tester_core: int | None = None
    device_core: int | None = None
    governor: str | None = None
    kernel: str = "unknown"
    hugepages: bool = False
    root: bool = False
    convoy: str = "unknown"
    commit: str | None = None
    devices: dict[str, str | None] = Field(default_factory=dict)
    mitigations: dict[str, str | None] = Field(default_factory=dict)
    remarks: dict[str, str] = Field(default_factory=dict)
    cannot: tuple[dict[str, str], ...] = ()
    self_test: dict[str, Any] | None = None

    @field_validator("started")
    @classmethod
    def _time(cls, value: str | None) -> str | None:
        if value is not None and datetime.datetime.fromisoformat(value).tzinfo is None:
            raise ValueError("a time without its zone")
        return value


def checked(path: Path, raw: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return a document with all that its model knows. Raises InputError, one line."""
    try:
        return model.model_validate(raw).model_dump(by_alias=True)
    except ValidationError as error:
        raise InputError(f"{path}: {wrong(error)}; is this a run of this version?") from None


def wrong(error: ValidationError) -> str:
    """Return the first thing that is wrong, in one line: field, value, what it should be."""
    first = error.errors(include_url=False)[0]
    key = first.get("ctx", {}).get("key")  # of convoy/chain/model.py's own errors
    field = ".".join(map(str, (*first["loc"], *([key] if key is not None else []))))
    message = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    value = "" if isinstance(first["input"], dict | list | tuple) else f"{first['input']!r}: "
    return f"{field}: {value}{message}"
