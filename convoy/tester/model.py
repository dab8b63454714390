# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A trial's specification and result, as convoy-gen reads and prints them (docs/tester.md).

Frame sizes count the FCS, as in RFC 2544; byte counts (_bytes of a result) do not. The tester
checks a specification again and has the last word on it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from convoy.errors import ConvoyError, InputError

Range = int | str  # 53, "1024-2047"; addresses also "10.0.0.0/24"


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Output(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


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


class Latency(_Output):
    """From the scheduled sending time to the receive poll that found the packet."""

    count: int
    min_ns: int
    mean_ns: float
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int
    jitter_mean_abs_diff_ns: float | None
    significant_digits: int
    histogram_ns: tuple[tuple[int, int], ...]  # lowest value of a bucket, count


class Books(_Output):
    """What became of the packets: of a path, or of all."""

    offered_pkts: int
    sent_pkts: int
    refused_pkts: int
    unsent_pkts: int
    received_pkts: int
    lost_pkts: int
    loss_ratio: float | None
    duplicated_pkts: int
    reordered_pkts: int
    stale_pkts: int
    misrouted_pkts: int
    corrupt_pkts: int
    loss_bursts_pkts: tuple[tuple[int, int], ...]  # length of a run, how often
    refused_bursts_pkts: tuple[tuple[int, int], ...]
    sent_bytes: int
    received_bytes: int
    mean_frame_bytes: float | None
    tx_full_events: int
    late_max_ns: int
    send_window_ns: int | None
    receive_window_ns: int | None
    offered_pps: float | None
    sent_pps: float | None
    received_pps: float | None
    latency: Latency | None


class PathBooks(Books):
    """The books of one path."""

    path_from: int = Field(alias="from")
    path_to: int = Field(alias="to")
    queues: int


class LostTime(_Output):
    """Time in which the tester could not do its job."""

    longest_gap_ns: int
    gaps_over_10us: int
    gaps_over_10us_ns: int
    descheduled_ns: int | None
    receive_full_ns: int | None = None  # around polls that found a receive queue full


class TesterState(_Output):
    """The tester on itself."""

    busy_share: float
    tsc_hz: int
    core: int
    loops: int
    ring_errors: int
    kicks: int
    lost_time: LostTime
    ports: tuple[dict[str, Any], ...]


class Probe(_Output):
    """What the machine was like, right before and after the trial. None: not known."""

    device_core: int
    before_ns: float | None  # a cache line's way to the device's core and back
    after_ns: float | None
    tester_work_ns: float | None = None  # the same little work, on both cores at once
    device_work_ns: float | None = None
    took_ns: int  # for which the device may have been kept from polling, outside the trial


class ConvoyCounts(_Output):
    """What travelled in convoys; frames of one packet are none."""

    sent_frames: int
    received_frames: int
    received_pkts: int
    received_by_packets: tuple[tuple[int, int], ...]  # packets in a convoy, how many convoys
    refused_frames: dict[str, int]  # by reason


class TrialResult(_Output):
    """One trial's result; the books are missing where nothing was sent."""

    schema_tag: Literal["convoy.trial/1"] = Field(alias="schema")
    id: str | None = None
    ok: bool
    reason_code: str | None = None
    reason: str | None = None
    suspect: str | None = None
    suspect_pkts: int | None = None  # the most that the tester itself may have lost
    intended_pps: float | None = None
    ceiling_pps: float | None = None
    total: Books | None = None
    paths: tuple[PathBooks, ...] = ()
    convoys: ConvoyCounts | None = None
    foreign_pkts: int = 0
    earlier_trial_pkts: int = 0
    duration_ns: int = 0
    drain_ns: int = 0
    tester: TesterState | None = None
    probe: Probe | None = None


def read_spec(specification: TrialSpec | Mapping[str, Any]) -> TrialSpec:
    """Check a specification. Raises InputError that names the field, its value and the fix."""
    if isinstance(specification, TrialSpec):
        return specification
    try:
        return TrialSpec.model_validate(specification)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "specification"
        raise InputError(f"trial: {field}: {first['input']!r}: {first['msg']}") from None


def read_result(raw: Mapping[str, Any]) -> TrialResult:
    """Read a result. Raises ConvoyError if it is not one of this version's."""
    try:
        return TrialResult.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ConvoyError(f"trial result: {field}: {first['msg']}") from None
