# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What plan.yaml and host.json of a run say.

A plan is whole: a run can be resumed from it. Of a host, what is missing is unknown, and what no
field has is kept: older runs have less, newer ones more. What is there must be what it seems.
"""

import datetime
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from convoy.base.clock import timestamp
from convoy.results.device_host import DeviceHost
from convoy.results.scenario import Scenario
from convoy.results.trial_result import SelfTest

PLAN_SCHEMA: Literal["convoy.bench.plan/2"] = "convoy.bench.plan/2"
HOST_SCHEMA: Literal["convoy.host/2"] = "convoy.host/2"


class _Document(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="allow", frozen=True, populate_by_name=True)


class Chosen(BaseModel):
    """Points of a scenario, where not all are to be measured."""

    model_config = ConfigDict(defer_build=True, frozen=True)

    setup: str
    device: str
    cpu_speed: float = 1.0
    sizes: tuple[str, ...] = ()  # frame sizes of the tester's packets
    applications: tuple[str, ...] = ()


class BenchPlan(_Document):
    """What is to be measured: what a user asked for, and the scenarios whole."""

    schema_tag: Literal["convoy.bench.plan/2"] = Field(PLAN_SCHEMA, alias="schema")
    created: str = Field(default_factory=timestamp)
    quick: bool
    profile: Literal["smoke", "quick", "standard", "full"] = Field(alias="search")
    goals: tuple[str, ...]
    repeats: int = Field(ge=1, le=99)
    scenarios: dict[str, Scenario]
    device_host: DeviceHost | None = None  # None: the tester's machine
    # By scenario, only these points; a scenario that is not there: all.
    only: dict[str, tuple[Chosen, ...]] = Field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """Return it as plan.yaml keeps it. What --quick would leave out is not needed again."""
        quick = {"scenarios": {"__all__": {"quick"}}}
        return self.model_dump(mode="json", by_alias=True, exclude=quick)


@dataclass(frozen=True)
class Cannot:
    """Something of a scenario that is not measured on a machine, and why."""

    scenario: str
    setup: str  # empty: all of them
    device: str  # empty: all of them
    why: str

    def as_json(self) -> dict[str, str]:
        """Return it as host.json keeps it."""
        return asdict(self)


class Host(_Document):
    """On what machine."""

    schema_tag: Literal["convoy.host/2"] = Field(HOST_SCHEMA, alias="schema")
    started: str | None = None  # ISO 8601, with its time zone
    cpu: str = "unknown processor"
    cores: tuple[int, ...] = ()
    cores_allowed: tuple[int, ...] = ()
    tester_core: int | None = None
    device_core: int | None = None
    governor: str | None = None
    kernel: str = "unknown"
    hugepages: bool = False
    hugepages_free_mb: int | None = None
    root: bool = False
    convoy: str = "unknown"
    commit: str | None = None
    devices: dict[str, str | None] = Field(default_factory=dict)
    mitigations: dict[str, str | None] = Field(default_factory=dict)
    remarks: dict[str, str] = Field(default_factory=dict)
    cannot: tuple[Cannot, ...] = ()
    self_test: SelfTest | None = None
    nics: dict[str, str] = Field(default_factory=dict)  # that join two machines: what each is
    device_host: "Host | None" = None  # where devices stood; None: here
    resumed: "tuple[Host, ...]" = ()

    @field_validator("started")
    @classmethod
    def _time(cls, value: str | None) -> str | None:
        if value is not None and datetime.datetime.fromisoformat(value).tzinfo is None:
            raise ValueError("a time without its zone")
        return value

    @property
    def baseline_pps(self) -> float | None:
        """Return the highest rate that the tester reached by itself."""
        return self.self_test.baseline_pps if self.self_test else None

    def as_document(self) -> dict[str, Any]:
        """Return it as host.json keeps it."""
        return self.model_dump(mode="json", by_alias=True)
