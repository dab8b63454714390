# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A trial's specification, as convoy-gen reads it (docs/tester.md).

Frame sizes count the FCS, as in RFC 2544. The tester checks a specification again and has the last
word on it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from convoy.errors import InputError, first_problem

Range = int | str  # 53, "1024-2047"; addresses also "10.0.0.0/24"
Number = Annotated[float, Field(strict=True)]
Whole = Annotated[int, Field(strict=True)]
Path = Annotated[str, Field(pattern=r"^[0-9]+>[0-9]+$")]


class _Input(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Pacing(_Input):
    """When packets are due: burst_pkts at once; with off_us, only during on_us of the time."""

    burst_pkts: Whole = Field(1, ge=1, le=65536)
    on_us: Number | None = Field(None, ge=1, le=1e7)
    off_us: Number | None = Field(None, ge=0, le=1e7)

    @model_validator(mode="after")
    def _a_pause_follows_something(self) -> "Pacing":
        if self.off_us is not None and self.on_us is None:
            raise ValueError("off_us needs on_us")
        return self


class Flows(_Input):
    """Flow i has value low + i % span of every range."""

    count: Whole = Field(1, ge=1, le=1 << 24)
    order: Literal["sequential", "shuffle"] = "sequential"
    written: Literal["before", "sending"] = "before"
    first: Whole = Field(0, ge=0, le=1 << 24)
    ip: Literal[4, 6] = 4
    protocol: Literal["udp", "tcp"] = "udp"
    src_mac: str | None = None
    dst_mac: str | None = None
    vlan: Range | None = None
    src_ip: str | None = None
    dst_ip: str | None = None
    src_port: Range | None = None
    dst_port: Range | None = None


class SizeFile(_Input):
    """Sizes drawn from a file of lines `bytes,weight`."""

    file: str


class Capture(_Input):
    """Frames of a capture file, at its own times (divided by speed) or at rate_pps.

    loops: end after so many passes; 0: when duration_s is over.
    """

    file: str
    timing: Literal["original", "rate"] = "original"
    speed: Number = Field(1.0, ge=1e-6, le=1e6)
    loops: Whole = Field(0, ge=0, le=10**9)


class Convoys(_Input):
    """Packets sent together in one frame; received convoys are disaggregated from 1 on."""

    packets: Whole = Field(ge=1, le=255)
    src_mac: str | None = None
    dst_mac: str | None = None
    src: str | None = None
    dst: str | None = None
    port: Whole | None = Field(None, ge=1, le=65535)
    nfi: Whole | None = Field(None, ge=0, le=65535)
    mtu: Whole | None = Field(None, ge=128, le=65500)


class TrialSpec(_Input):
    """One trial."""

    id: Annotated[str, Field(min_length=1)] | None = None
    duration_s: Number = Field(1.0, ge=1e-6, le=86400)
    warmup_s: Number = Field(0.0, ge=0, le=3600)
    drain_s: Number = Field(0.2, ge=0, le=60)
    rate_pps: Annotated[Number, Field(ge=0.01, le=1e9)] | Literal["max"] = 100_000.0
    tolerance: Number = Field(0.001, ge=0, le=1)
    seed: Whole = Field(1, ge=0, lt=1 << 63)
    on_full: Literal["wait", "drop"] = "wait"
    packets: Whole = Field(0, ge=0, lt=(1 << 32) - 1)
    answers: bool = False
    translated: str | None = None
    keep: Whole = Field(0, ge=0, le=4096)
    paths: Annotated[tuple[Path, ...], Field(min_length=1, max_length=16)] | None = None
    pacing: Pacing | None = None
    convoys: Annotated[Whole, Field(ge=1, le=255)] | Convoys | None = None
    size: Annotated[Whole, Field(ge=64, le=65535)] | Literal["imix"] | SizeFile = 64
    flows: Flows | None = None
    capture: Capture | None = None

    def to_json(self) -> str:
        """Return the line that the tester reads."""
        return self.model_dump_json(exclude_none=True)


def read_spec(specification: TrialSpec | Mapping[str, Any]) -> TrialSpec:
    """Check a specification. Raises InputError that names the field, its value and the fix."""
    if isinstance(specification, TrialSpec):
        return specification
    try:
        return TrialSpec.model_validate(specification)
    except ValidationError as error:
        raise InputError(f"trial: {first_problem(error)}") from None
