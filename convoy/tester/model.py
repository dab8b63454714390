# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A trial's specification, as convoy-gen reads it (docs/tester.md).

Frame sizes count the FCS, as in RFC 2544. The tester checks a specification again and has the last
word on it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from convoy.errors import InputError, first_problem

Range = int | str  # 53, "1024-2047"; addresses also "10.0.0.0/24"


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Pacing(_Input):
    """When packets are due: burst_pkts at once; with off_us, only during on_us of the time."""

    burst_pkts: int = Field(1, ge=1, le=65536)
    on_us: float | None = Field(None, ge=1, le=1e7)
    off_us: float | None = Field(None, ge=0, le=1e7)


class Flows(_Input):
    """Flow i has value low + i % span of every range."""

    count: int = Field(1, ge=1, le=1 << 24)
    order: Literal["sequential", "shuffle"] = "sequential"
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
    speed: float = Field(1.0, gt=0)
    loops: int = Field(0, ge=0)


class Convoys(_Input):
    """Packets sent together in one frame; received convoys are taken apart from 1 on."""

    packets: int = Field(ge=1, le=255)
    src_mac: str | None = None
    dst_mac: str | None = None
    src: str | None = None
    dst: str | None = None
    port: int | None = Field(None, ge=1, le=65535)
    nfi: int | None = Field(None, ge=0, le=65535)
    mtu: int | None = Field(None, ge=128, le=65500)


class TrialSpec(_Input):
    """One trial."""

    id: str | None = None
    duration_s: float = Field(1.0, gt=0, le=86400)
    warmup_s: float = Field(0.0, ge=0, le=3600)
    drain_s: float = Field(0.2, ge=0, le=60)
    rate_pps: float | Literal["max"] = 100_000.0
    tolerance: float = Field(0.001, ge=0, le=1)
    seed: int = Field(1, ge=0)
    on_full: Literal["wait", "drop"] = "wait"
    paths: tuple[str, ...] | None = None
    pacing: Pacing | None = None
    convoys: Annotated[int, Field(ge=1, le=255)] | Convoys | None = None
    size: Annotated[int, Field(ge=64, le=65535)] | Literal["imix"] | SizeFile = 64
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
