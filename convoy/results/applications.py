# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of trials.jsonl says that is about an application: a client and a server at work.

Raw, as every trial: what the client printed stands beside the numbers that were read from it.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

APPLICATION_SCHEMA: Literal["convoy.bench.application/3"] = "convoy.bench.application/3"


class _Line(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


class ApplicationPoint(_Line):
    """Which application, behind whose functions, for the how-many-eth time."""

    scenario: str
    setup: str
    device: str
    functions: tuple[str, ...]
    port_kind: str
    application: str
    frame_bytes: int | None = None  # with FCS; None: as the application likes
    repeat: int  # from 0

    @property
    def key(self) -> tuple[str, str, str, str, int | None, int]:
        """Return what tells this point from all others of a run."""
        return (
            self.scenario,
            self.setup,
            self.device,
            self.application,
            self.frame_bytes,
            self.repeat,
        )


class ApplicationTrial(_Line):
    """How it ended."""

    schema_tag: Literal["convoy.bench.application/3"] = Field(APPLICATION_SCHEMA, alias="schema")
    point: ApplicationPoint
    outcome: Literal["measured", "failed"]
    why: str = ""  # it failed
    duration_s: float  # that was asked of the client
    figure: str  # which of figures is compared with other devices'
    # Payload, as the client saw it: mbps, requests_per_s, pps, lost_ratio, p50_ns, ...
    figures: dict[str, float] = Field(default_factory=dict)
    commands: tuple[str, ...] = ()  # that started the device
    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    client_output: str = ""  # whole
    notes: tuple[str, ...] = ()  # to be shown wherever this result is
    elapsed_ns: int | None = None  # server and client, from start to end
    device_cpu_ns: int | None = None  # CPU time of the device's processes; None: it has none
    core_busy_share: float | None = None  # of the device's core, whoever used it
    hosts_busy_share: float | None = None  # of the core of client and server
    device_before: dict[str, Any] | None = None
    device_after: dict[str, Any] | None = None
    ended_unix_s: float = 0.0
