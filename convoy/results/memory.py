# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of memory.jsonl says: parts measured in memory, without a device and a tester."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MEMORY_SCHEMA: Literal["convoy.bench.memory/2"] = "convoy.bench.memory/2"

NUMBERS = ("median", "min", "max")
# What reports look up in a program's rows: names and figures.
NAMES = {
    "next-hop": ("sc_ids",), "vring": ("row",), "views": ("working_set", "buffers", "pages"),
    "latency": ("burst",),
}  # fmt: skip
FIGURES = {
    "next-hop": ("same_key", "all_different"), "vring": ("cycles_per_packet",),
    "views": ("times",), "latency": ("cost",),
}  # fmt: skip


class Memory(BaseModel):
    """What a program that measures in memory printed, raw."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)

    schema_tag: Literal["convoy.bench.memory/2"] = Field(MEMORY_SCHEMA, alias="schema")
    scenario: str
    what: str  # next-hop, frame, vring, views, crossing, latency
    command: tuple[str, ...]
    result: dict[str, Any]  # each program's own: tests/bench/

    @model_validator(mode="after")
    def _is_read(self) -> "Memory":
        """Refuse what reports could not read: a run may be anybody's."""
        rows = self.result.get("results", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("result.results: must be a list of mappings")
        for row in rows:
            figures = {key: value for key, value in row.items() if isinstance(value, dict)}
            for name, value in figures.items():
                if not all(isinstance(value.get(each), int | float) for each in NUMBERS):
                    raise ValueError(f"result.results: {name}: must have {', '.join(NUMBERS)}")
            lacks = [key for key in NAMES.get(self.what, ()) if key not in row]
            lacks += [key for key in FIGURES.get(self.what, ()) if key not in figures]
            if lacks:
                raise ValueError(f"result.results: a row of {self.what} has no {', '.join(lacks)}")
        return self

    def rows(self) -> list[dict[str, Any]]:
        """Return the result's rows; the numbers of each are cycles per packet."""
        return list(self.result.get("results", ()))

    def figures(self) -> Iterator[tuple[str, str, dict[str, float]]]:
        """Yield the case of each row, as people read it, a figure's name and its numbers.

        Numbers are `median`, `min` and `max`.
        """
        for row in self.rows():
            named = {key: value for key, value in row.items() if not isinstance(value, dict)}
            case = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in named.items())
            for name, value in row.items():
                if isinstance(value, dict):
                    yield case, name, value
