# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of simulated.jsonl says: a simulation that a scenario has run."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SIMULATED_SCHEMA: Literal["convoy.bench.simulated/1"] = "convoy.bench.simulated/1"

FIGURES = ("mean_bytes", "frames_per_packet")  # of a link, each a list by seed


def _has_links(table: Any) -> bool:
    links = table.get("links") if isinstance(table, dict) else None
    return (
        isinstance(links, list) and isinstance(table.get("topology"), str)
        and all(isinstance(one, dict) and isinstance(one.get("link"), str) for one in links)
        and all(_numbers(one.get(name)) for one in links for name in FIGURES)
    )  # fmt: skip


def _numbers(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, int | float) for one in value)
    )


class Simulated(BaseModel):
    """What a simulation printed, raw."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_tag: Literal["convoy.bench.simulated/1"] = Field(SIMULATED_SCHEMA, alias="schema")
    scenario: str
    what: str  # paper-topologies
    command: tuple[str, ...]
    result: dict[str, Any]  # what the command prints with --json

    @model_validator(mode="after")
    def _is_read(self) -> "Simulated":
        """Refuse what reports could not read: a run may be anybody's."""
        tables = self.result.get("tables", [])
        if not isinstance(tables, list) or not all(map(_has_links, tables)):
            raise ValueError(
                f"result.tables: each has a topology and links, and these {', '.join(FIGURES)}"
            )
        return self

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each link of each topology: its figures, each a list by seed."""
        return [
            {"topology": table["topology"], **link}
            for table in self.result.get("tables", ())
            for link in table["links"]
        ]
