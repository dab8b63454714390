# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What was measured at one point: a rate, latencies, cycles per packet. A round without a result
is missing, not zero; each tuple has one value per repeat that gave one.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from convoy.report.packets import Delay
from convoy.results.scenario import Scenario
from convoy.results.trials import Role, display_name

# Run, scenario, setup, device, role, share of the core, frame size.
Key = tuple[str, str, str, str, Role, float, str]
FIRST_GOAL = "pdr"


def path_name(functions: Sequence[str]) -> str:
    """Return the functions as reports write them."""
    return " → ".join(functions) or "no function"


def median(values: Sequence[float]) -> float | None:
    """Return the median; None: there is nothing."""
    return statistics.median(values) if values else None


@dataclass(frozen=True)
class Conditions:
    """What two rows must have in common to be compared as the same thing."""

    deployment: str = "inline"
    cores: int = 1  # of the device
    queues: int = 1  # pairs, of each port
    chains: int = 1  # independent ones, on the device's cores
    convoys: int = 0  # packets that the tester sent in one frame; 0 and 1: one each
    aggregates: bool = False  # the device sends (and takes) convoys
    evenly: bool = True  # packets were due one by one, at equal distances
    placement: str = ""  # of a process for each function, where cores were chosen for it
    options: tuple[tuple[str, str], ...] = ()  # the device's own, but for convoys
    entries: int | None = None  # routes and rules; None: not known
    flows: int | None = None
    connections: str = ""  # rates are of new connections of this protocol, not of packets
    capture: str = ""  # sha256 of the file that is replayed; "": made packets

    @property
    def plain(self) -> bool:
        """Return whether packets came and left one by one."""
        return self.convoys <= 1 and not self.aggregates and not self.connections


def conditions(scenario: Scenario | None, setup: str, device: str, size: str) -> Conditions:
    """Return what a run's plan says of a setup, and of a frame size that is a capture's name."""
    if scenario is None or setup not in scenario.setups:
        return Conditions()
    spec = scenario.setups[setup]
    options = dict(spec.options.get(device, {}))
    aggregates = options.pop("convoys", "no") != "no"
    return Conditions(
        deployment=spec.deployment,
        # Placed functions have a core each (convoy/run/session.py).
        cores=max(spec.cores, len(spec.functions) if spec.placement else 1),
        queues=spec.queues,
        chains=spec.chains,
        convoys=spec.convoys,
        aggregates=aggregates,
        evenly=not (spec.pacing or scenario.pacing),
        placement=spec.placement or "",
        options=tuple(sorted(options.items())),
        entries=spec.entries,
        flows=spec.flows or scenario.flows,
        connections=spec.connections or "",
        capture=next((one.sha256 for one in scenario.captures if str(one) == size), ""),
    )


@dataclass(frozen=True)
class Row:
    """What was measured at one frame size."""

    scenario: str
    setup: str
    device: str
    role: Role  # control: never a contender
    functions: tuple[str, ...]
    cpu_speed: float
    size: str
    port_kind: str
    goals: Mapping[str, Mapping[int, float]]  # by repeat, the rates that met the goal
    mrrs_pps: tuple[float, ...]  # maximum receive rates
    # By repeat: packets in a second, and in a second of CPU time, at closed-loop saturation.
    saturation_pps: Mapping[int, tuple[float, ...]]
    per_cpu_s: Mapping[int, tuple[float, ...]]
    saturation_cycles: Mapping[int, tuple[float, ...]]  # busy TSC ticks per packet, in these trials
    saturation_busy: Mapping[int, tuple[float, ...]]  # busy TSC ticks, as a share of the trial's
    frame_bytes: float | None  # mean, with FCS
    delays: tuple[Delay, ...]
    node_cycles: tuple[float, ...]  # busy TSC ticks per packet, by the device's own counters
    cycles_source: str  # who counted
    function_cycles: tuple[float, ...]  # of these, in its functions
    cpu_shares: tuple[float, ...]  # CPU time of the device's processes, of one core
    core_shares: tuple[float, ...]  # of the device's core, whoever used it
    repeats: int
    trials: int
    invalid: int  # of the trials: they show nothing about the device
    lost: tuple[tuple[str, float], ...]  # where, and the share, when offered too much
    irregular: tuple[str, ...]  # remarks of the searches
    failed: tuple[str, ...]  # why repeats failed
    notes: tuple[str, ...] = field(default=())
    load_not_reached: int = 0  # of the trials: more than can be offered
    lower_bound: bool = False  # the median rate is censored: no more could be offered
    # The host's state in the rounds that count: medians (convoy/results/host_state.py).
    host_state: Mapping[str, float] = field(default_factory=dict)
    degraded: frozenset[int] = frozenset()  # rounds on a degraded host
    excluded_rounds: int = 0  # of these
    # The run's folder, where a report has several runs of this scenario: rounds pair within one.
    run: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    tsc_hz: float | None = None  # of the machine
    # Of a device of several parts: busy TSC ticks of each for a packet that came through.
    part_cycles: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    busy_shares: tuple[float, ...] = ()  # busy TSC ticks, of one core's: of cpu_shares, its work

    @property
    def key(self) -> Key:
        """Return what tells it from other rows."""
        return (
            self.run, self.scenario, self.setup, self.device, self.role, self.cpu_speed, self.size
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Return who was measured, as reports write it."""
        return display_name(self.device, self.role, self.run)

    @property
    def contends(self) -> bool:
        """Return whether it is a device's own row, at full CPU speed: comparable with others."""
        return self.role == "device" and self.cpu_speed == 1.0

    @property
    def path(self) -> str:
        """Return the functions as reports write them."""
        return path_name(self.functions)

    @property
    def rounds(self) -> Mapping[int, float]:
        """Return the first goal's rates by repeat: PDR's, or what was searched for instead."""
        return self.goals.get(FIRST_GOAL) or next(iter(self.goals.values()), {})

    @property
    def rates_pps(self) -> tuple[float, ...]:
        """Return the first goal's rates."""
        return tuple(self.rounds.values())

    @property
    def rate_pps(self) -> float | None:
        """Return the median rate."""
        return median(self.rates_pps)

    def goal_pps(self, goal: str) -> float | None:
        """Return the median rate for a goal."""
        return median(list(self.goals.get(goal, {}).values()))

    @property
    def mrr_pps(self) -> float | None:
        """Return the median of the maximum receive rates."""
        return median(self.mrrs_pps)

    @property
    def gbps(self) -> float | None:
        """Return 1e9 bits of frames (with FCS, without preamble and gap) per second."""
        if self.rate_pps is None or self.frame_bytes is None:
            return None
        return self.rate_pps * self.frame_bytes * 8 / 1e9

    def delay(self, load: str) -> Delay | None:
        """Return the latency at a load."""
        return next((delay for delay in self.delays if delay.load == load), None)

    @property
    def p50_ns(self) -> float | None:
        """Return the median latency at the highest load up to half of PDR."""
        half = self.delay("50% of PDR")
        return half.quantile(0.5) if half else None

    @property
    def node_cycles_per_packet(self) -> float | None:
        """Return the median of the device's busy cycles per packet, ports included."""
        return median(self.node_cycles)

    @property
    def function_cycles_per_packet(self) -> float | None:
        """Return the median of the functions' own busy cycles per packet."""
        return median(self.function_cycles)

    @property
    def cpu_share(self) -> float | None:
        """Return the median CPU time of the device's processes, as a share of one core's."""
        return median(self.cpu_shares)

    @property
    def core_share(self) -> float | None:
        """Return the median share of its core's time in which anybody was busy."""
        return median(self.core_shares)
