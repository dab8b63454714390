# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A trial's result, as convoy-gen prints it (docs/tester.md) and trials.jsonl keeps it.

Byte counts (_bytes) are without FCS. Keys that no field has are kept, too: a result is raw.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from convoy.errors import ConvoyError, first_problem


class _Output(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="allow", frozen=True, populate_by_name=True)


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
    jitter_mean_abs_diff_ns: float | None = None
    significant_digits: int
    # Lowest value of a bucket, count; None: not kept.
    histogram_ns: tuple[tuple[int, int], ...] | None = None


class PacketCounts(_Output):
    """What became of the packets: of a path, or of all."""

    offered_pkts: int = 0
    sent_pkts: int = 0
    refused_pkts: int = 0
    unsent_pkts: int = 0
    received_pkts: int = 0
    lost_pkts: int = 0
    loss_ratio: float | None = None
    duplicated_pkts: int = 0
    reordered_pkts: int = 0
    stale_pkts: int = 0
    misrouted_pkts: int = 0
    corrupt_pkts: int = 0
    loss_bursts_pkts: tuple[tuple[int, int], ...] = ()  # length of a run, how often
    refused_bursts_pkts: tuple[tuple[int, int], ...] = ()
    sent_bytes: int = 0
    received_bytes: int = 0
    mean_frame_bytes: float | None = None
    tx_full_events: int = 0
    late_max_ns: int = 0
    send_window_ns: int | None = None
    receive_window_ns: int | None = None
    offered_pps: float | None = None
    sent_pps: float | None = None
    received_pps: float | None = None
    latency: Latency | None = None

    def without_histogram(self) -> Self:
        """Return it with the latencies' quantiles alone."""
        if self.latency is None:
            return self
        latency = self.latency.model_copy(update={"histogram_ns": None})
        return self.model_copy(update={"latency": latency})


class PathCounts(PacketCounts):
    """What became of the packets of one path."""

    path_from: int = Field(alias="from")
    path_to: int = Field(alias="to")
    queues: int = 0


class LostTime(_Output):
    """Time in which the tester could not do its job."""

    longest_gap_ns: int = 0
    gaps_over_10us: int = 0
    gaps_over_10us_ns: int = 0
    descheduled_ns: int | None = None
    receive_full_ns: int | None = None  # around polls that found a receive queue full


class TesterState(_Output):
    """The tester on itself."""

    busy_share: float | None = None
    tsc_hz: int | None = None
    core: int | None = None
    loops: int = 0
    ring_errors: int = 0
    kicks: int = 0
    lost_time: LostTime = LostTime()
    ports: tuple[dict[str, Any], ...] = ()


class Probe(_Output):
    """What the machine was like, right before and after the trial. None: not known."""

    device_core: int | None = None
    before_ns: float | None = None  # a cache line's way to the device's core and back
    after_ns: float | None = None
    tester_work_ns: float | None = None  # the same little work, on both cores at once
    device_work_ns: float | None = None
    took_ns: int = 0  # for which the device may have been kept from polling, outside the trial


class ConvoyCounts(_Output):
    """What was aggregated; frames of one packet are no convoys."""

    sent_frames: int = 0
    received_frames: int = 0
    received_pkts: int = 0
    received_by_packets: tuple[tuple[int, int], ...] = ()  # packets in a convoy, how many convoys
    refused_frames: dict[str, int] = Field(default_factory=dict)  # by reason


class Answers(_Output):
    """Packets that the tester answered; unanswered: it had no room, or they were not whole."""

    answered_pkts: int = 0
    unanswered_pkts: int = 0


class Translated(_Output):
    """Packets that a translator made; wrong: by what is wrong with them."""

    checked_pkts: int = 0
    wrong_pkts: dict[str, int] = Field(default_factory=dict)


class TrialResult(_Output):
    """One trial's result; the counts are missing where nothing was sent."""

    schema_tag: Literal["convoy.trial/2"] = Field("convoy.trial/2", alias="schema")
    id: str | None = None
    ok: bool
    reason_code: str | None = None
    reason: str | None = None
    suspect: str | None = None
    suspect_pkts: int | None = None  # the most that the tester itself may have lost
    intended_pps: float | None = None
    baseline_pps: float | None = None
    total: PacketCounts | None = None
    paths: tuple[PathCounts, ...] = ()
    convoys: ConvoyCounts | None = None
    answers: Answers | None = None  # None: nothing is answered
    translated: Translated | None = None  # None: nothing is checked
    kept: tuple[str, ...] | None = None  # frames in hexadecimal; None: not asked for
    foreign_pkts: int = 0
    earlier_trial_pkts: int = 0
    settled_frames: int = 0
    duration_ns: int = 0
    drain_ns: int = 0
    tester: TesterState | None = None
    probe: Probe | None = None

    def as_document(self) -> dict[str, Any]:
        """Return it as the tester printed it."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def without_histograms(self, of_total: bool = True) -> "TrialResult":
        """Return it without its histograms, which are most of its bytes; quantiles stay.

        of_total: without that of all packets, too.
        """
        changed: dict[str, Any] = {"paths": tuple(path.without_histogram() for path in self.paths)}
        if of_total and self.total is not None:
            changed["total"] = self.total.without_histogram()
        return self.model_copy(update=changed)


class SelfTest(_Output):
    """What the tester reaches by itself, with no device between."""

    schema_tag: Literal["convoy.self-test/2"] = Field("convoy.self-test/2", alias="schema")
    baseline_pps: float | None = None
    noise_latency: Latency | None = None

    def without_histogram(self) -> "SelfTest":
        """Return it with its latencies' quantiles alone."""
        if self.noise_latency is None:
            return self
        latency = self.noise_latency.model_copy(update={"histogram_ns": None})
        return self.model_copy(update={"noise_latency": latency})


def read_result(raw: Mapping[str, Any]) -> TrialResult:
    """Read a result. Raises ConvoyError if it is not one of this version's."""
    try:
        return TrialResult.model_validate(raw)
    except ValidationError as error:
        raise ConvoyError(f"trial result: {first_problem(error)}") from None
