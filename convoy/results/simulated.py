# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of simulated.jsonl says: a simulation that a scenario has run."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SIMULATED_SCHEMA: Literal["convoy.bench.simulated/1"] = "convoy.bench.simulated/1"


class Simulated(BaseModel):
    """What a simulation printed, raw."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_tag: Literal["convoy.bench.simulated/1"] = Field(SIMULATED_SCHEMA, alias="schema")
    scenario: str
    what: str  # paper-topologies
    command: tuple[str, ...]
    result: dict[str, Any]  # what the command prints with --json

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each link of each topology: its figures, each a list by seed."""
        return [
            {"topology": table["topology"], **link}
            for table in self.result.get("tables", ())
            for link in table["links"]
        ]
