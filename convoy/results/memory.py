# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of memory.jsonl says: parts measured in memory, without a device and a tester."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MEMORY_SCHEMA: Literal["convoy.bench.memory/2"] = "convoy.bench.memory/2"


class Memory(BaseModel):
    """What a program that measures in memory printed, raw."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)

    schema_tag: Literal["convoy.bench.memory/2"] = Field(MEMORY_SCHEMA, alias="schema")
    scenario: str
    what: str  # next-hop, frame, vring, views, crossing, latency
    command: tuple[str, ...]
    result: dict[str, Any]  # each program's own: tests/bench/

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
