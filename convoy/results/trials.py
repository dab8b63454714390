# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a line of trials.jsonl (one trial) and of points.jsonl (one search) says.

Nothing is averaged, and invalid trials are kept, too. Missing is null, never zero.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from convoy.results.trial_result import TrialResult

TRIAL_SCHEMA: Literal["convoy.bench.trial/6"] = "convoy.bench.trial/6"
POINT_SCHEMA: Literal["convoy.bench.point/3"] = "convoy.bench.point/3"


class _Line(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


Role = Literal["device", "control"]  # control: the A/A control, the same device measured again


def display_name(device: str, role: Role = "device", run: str = "") -> str:
    """Return who was measured, as progress and reports write it. run: where there are several."""
    control = " (A/A control)" if role == "control" else ""
    return f"{device}{control}{f' [{run}]' if run else ''}"


class Point(_Line):
    """Who was measured, with what, for the how-many-eth time."""

    scenario: str = ""
    setup: str = ""  # of the scenario, by name
    device: str
    role: Role = "device"
    functions: tuple[str, ...]  # types, in the order of the chain
    port_kind: str = "vhost-user"
    cpu_speed: float = 1.0  # share of the core's time that the device was left with
    size: str  # bytes with FCS, or the name of a mix
    repeat: int  # from 0

    @property
    def key(self) -> "PointKey":
        """Return what tells this point from all others of a run."""
        setup = self.setup or " ".join(self.functions)
        return (
            self.scenario, setup, self.device, self.role, self.cpu_speed, self.size, self.repeat
        )  # fmt: skip


# Scenario, setup, device, role, share of the core, frame size, repeat.
PointKey = tuple[str, str, str, Role, float, str, int]


class Cost(_Line):
    """What packets cost during a trial, by the device's own counters."""

    cycles: int
    packets: int
    source: str


SATURATION = "closed-loop saturation"  # load of trials in which the tester waits for the device


class Trial(_Line):
    """One trial: who was measured, why, and what the tester and the device reported."""

    schema_tag: Literal["convoy.bench.trial/6"] = Field(TRIAL_SCHEMA, alias="schema")
    point: Point
    purpose: Literal["mrr", "search", "latency", "rate"]
    load: str = ""  # of a latency trial: idle, "50 %" (of PDR), "2 Mpps"; SATURATION
    rate_pps: float | None  # asked for; None: as much as possible
    duration_s: float
    verdict: Literal["passed", "failed", "invalid"]
    load_not_reached: bool = False  # invalid: more than can be offered over these ports
    commands: tuple[str, ...]  # that started the device
    notes: tuple[str, ...] = ()  # to be shown wherever this result is
    result: TrialResult  # the tester's, raw
    device_run_queue_delay_ns: int = 0  # while others ran on its cores
    uninterrupted: bool = False  # nobody could keep the poll loops off their cores
    kernel_ns: int = 0  # of its own threads, where these do the device's work
    elapsed_ns: int | None = None  # between the looks at CPU times: longer than the trial
    device_cpu_ns: int | None = None  # CPU time of the device's processes; None: it has none
    core_busy_share: float | None = None  # of the device's core, whoever used it (/proc/stat)
    cost: Cost | None = None  # None: the device does not count that
    part_costs: dict[str, Cost] = Field(default_factory=dict)  # switch and VNFs, or processes
    device_before: dict[str, Any] | None = None  # what the device counted, by its own names
    device_after: dict[str, Any] | None = None
    # Time to effect of each change of the configuration that ended in it; None: it stays.
    changes_ns: tuple[int, ...] | None = None
    ended_unix_s: float = 0.0

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)

    @property
    def sent_pps(self) -> float | None:
        """Return the rate at which packets were sent."""
        return self.result.total.sent_pps if self.result.total else None

    @property
    def tsc_hz(self) -> int | None:
        """Return how often a second the time stamp counter ticks."""
        return self.result.tester.tsc_hz if self.result.tester else None

    @property
    def received_pps(self) -> float | None:
        """Return the rate at which packets came back.

        The tester's is over the time from the first to the last one. Where it waited for the device
        they may have come in one burst: there it is over the whole trial, if that is longer.
        """
        total = self.result.total
        if total is None or total.received_pps is None or self.rate_pps is not None:
            return total.received_pps if total else None
        return min(total.received_pps, total.received_pkts / self.duration_s)

    @field_serializer("result")
    def _raw(self, result: TrialResult) -> dict[str, Any]:
        return result.as_document()


class GoalResult(_Line):
    """The result of a search for one goal (RFC 9971). Rates in packets per second."""

    goal: str
    rate_pps: float | None  # conditional throughput
    lower_pps: float | None
    upper_pps: float | None
    regular: bool
    remark: str = ""
    lower_bound: bool = False  # censored: nothing more could be offered, the device may be faster


class Search(_Line):
    """How a point ended."""

    schema_tag: Literal["convoy.bench.point/3"] = Field(POINT_SCHEMA, alias="schema")
    point: Point
    outcome: Literal["measured", "failed"]
    why: str = ""  # it failed
    goals: tuple[GoalResult, ...] = ()
    mrr_pps: float | None = None  # maximum receive rate: at all that the tester can send
    trials: int = 0
    invalid: int = 0  # of these: excluded, they show nothing about the device
    load_not_reached: int = 0  # of the trials: the offered load was not reached; excluded as well
    seconds: float = 0.0

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)

    def rate(self, goal: str) -> float | None:
        """Return the rate for a goal, or None."""
        return next((one.rate_pps for one in self.goals if one.goal == goal), None)
