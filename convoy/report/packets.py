# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What became of packets: how late and in which frames they came back, how many were lost, where.

The tester disaggregates convoys and counts what they held, so this is the same for every device.
What came singly is what is left of all that came.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convoy.results.latency_stages import WAITED, latencies
from convoy.results.trial_result import TrialResult
from convoy.results.trials import Trial

Buckets = tuple[tuple[int, int], ...]
ENTRANCE = "refused at the entrance"
UNCOUNTED = "inside or at the exit, not counted"


def quantile(buckets: Iterable[tuple[int, int]], share: float) -> float | None:
    """Return the value that this share does not exceed, of (value, how often) in order."""
    buckets = tuple(buckets)
    wanted, seen = share * sum(count for _, count in buckets), 0
    for value, count in buckets:
        seen += count
        if seen >= wanted and count:
            return float(value)
    return None


@dataclass(frozen=True)
class Frames:
    """How many frames held how many packets."""

    sizes: Buckets  # packets in a frame, how many such frames

    @property
    def packets(self) -> int:
        """Return all packets."""
        return sum(size * count for size, count in self.sizes)

    @property
    def frames(self) -> int:
        """Return all frames."""
        return sum(count for _, count in self.sizes)

    @property
    def per_frame(self) -> float:
        """Return the mean of packets in a frame."""
        return self.packets / self.frames

    @property
    def ratio_percent(self) -> float:
        """Return the aggregation ratio as PA-Flow defines it: frames / packets * 100."""
        return 100 * self.frames / self.packets


def frames_of(results: Sequence[TrialResult]) -> Frames | None:
    """Return in what frames the tester's results say packets came; None: it did not look."""
    sizes: Counter[int] = Counter()
    for result in results:
        convoys = result.convoys
        if convoys is None or result.total is None:
            continue
        for size, count in convoys.received_by_packets:
            sizes[size] += count
        single = result.total.received_pkts - convoys.received_pkts
        if single > 0:
            sizes[1] += single
    return Frames(tuple(sorted(sizes.items()))) if sizes else None


def loss_periods_of(results: Sequence[TrialResult]) -> Buckets:
    """Return the lengths of loss periods, how often: refused at the entrance, or inside."""
    runs: Counter[int] = Counter()
    for result in results:
        total = result.total
        for length, count in (*total.loss_bursts_pkts, *total.refused_bursts_pkts) if total else ():
            runs[length] += count
    return tuple(sorted(runs.items()))


def cpu_us_of(trials: Iterable[Trial]) -> tuple[float, ...]:
    """Return the CPU time of a device's processes for a packet that came back, of each trial.

    The device ran for a little longer than packets came: it is its share of a core that counts.
    """
    return tuple(
        trial.device_cpu_ns / trial.elapsed_ns * trial.duration_s * 1e6 / total.received_pkts
        for trial in trials
        if (total := trial.result.total) is not None
        and total.received_pkts and trial.device_cpu_ns is not None and trial.elapsed_ns
    )  # fmt: skip


def busy_share(trial: Trial) -> float | None:
    """Return the busy TSC ticks of a trial, as a share of one core's; None: it counts none."""
    ticks = (trial.tsc_hz or 0) * trial.duration_s
    return trial.cost.cycles / ticks if trial.cost and ticks else None


@dataclass(frozen=True)
class Stage:
    """What packets took at one place of our node."""

    where: str
    mean_ns: float  # in a port: half of the time between polls, if packets come evenly
    packets: int  # that were timed

    @property
    def in_function(self) -> bool:
        """Return whether it is a function, and not the way to one."""
        return ": " not in self.where


def stages_of(trials: Iterable[Trial]) -> tuple[Stage, ...]:
    """Return what the node says of its packets' way, of all trials."""
    sums: dict[str, list[float]] = {}
    for trial in trials:
        after, before = trial.device_after or {}, trial.device_before or {}
        if "functions" not in after or "functions" not in before:
            continue
        for where, timed in latencies(after, before):
            waits = where.endswith(WAITED)
            name = where.removesuffix(WAITED) + "in its queue" if waits else where
            one = sums.setdefault(name, [0.0, 0])
            one[0] += timed.ns / 2 if waits else timed.ns
            one[1] += timed.packets
    return tuple(Stage(name, ns / packets, int(packets)) for name, (ns, packets) in sums.items())


@dataclass(frozen=True)
class DelayRound:
    """What one round measured at a load. None: it did not."""

    p50_ns: float | None = None
    p99_ns: float | None = None
    lost_ratio: float | None = None
    frames: Frames | None = None
    loss_periods: Buckets = ()
    stages: tuple[Stage, ...] = ()
    mean_ns: float | None = None

    def value(self, metric: str) -> float | None:
        """Return latency-p50 or latency-p99 (us), lost or frames (%), or loss-period (packets).

        latency-functions and latency-ports: the mean time in functions, and in the node elsewhere.
        """
        if metric in ("latency-functions", "latency-ports"):
            parts = [s for s in self.stages if s.in_function == (metric == "latency-functions")]
            return sum(stage.mean_ns for stage in parts) / 1e3 if parts else None
        ns = {"latency-p50": self.p50_ns, "latency-p99": self.p99_ns}.get(metric)
        if ns is not None:
            return ns / 1e3
        if metric == "lost" and self.lost_ratio is not None:
            return 100 * self.lost_ratio
        if metric == "frames" and self.frames is not None:
            return self.frames.ratio_percent
        return _half_lost(self.loss_periods) if metric == "loss-period" else None


def _half_lost(periods: Buckets) -> float | None:
    return quantile([(length, length * n) for length, n in periods], 0.5)


@dataclass(frozen=True)
class Delay:
    """Latency at one load, all repeats' histograms added up. Nanoseconds."""

    load: str
    rate_pps: float  # median of the repeats
    histogram_ns: tuple[tuple[int, int], ...]  # lowest value of a bucket, count
    p50s_ns: tuple[float, ...]  # of each repeat
    p99s_ns: tuple[float, ...]
    lost_ratio: float | None  # of all repeats' packets
    frames: Frames | None = None  # in which packets came back; None: not recorded
    loss_periods: Buckets = ()  # lengths of loss periods (RFC 3357), how often
    rounds: Mapping[int, DelayRound] = field(default_factory=dict)
    cpu_us: tuple[float, ...] = ()  # of the device's processes for a packet, in each trial
    changes_ms: tuple[float, ...] = ()  # time to effect of each change of the configuration
    mean_ns: float | None = None  # of all repeats' packets
    stages: tuple[Stage, ...] = ()  # of our node, in the order of a packet's way
    cycles: tuple[float, ...] = ()  # busy TSC ticks for a packet, in each trial: its own counters
    busy_shares: tuple[float, ...] = ()  # the same as a share of one core's, in each trial
    reordered_ratio: float | None = None  # of those that came: after a later one of their flow

    @property
    def cycles_per_packet(self) -> float | None:
        """Return the median of busy TSC ticks for a packet; None: the device counts none."""
        return statistics.median(self.cycles) if self.cycles else None

    @property
    def cpu_us_per_packet(self) -> float | None:
        """Return the median CPU time of a packet; None: the device has no processes of its own."""
        return statistics.median(self.cpu_us) if self.cpu_us else None

    @property
    def count(self) -> int:
        """Return how many packets it knows."""
        return sum(count for _, count in self.histogram_ns)

    def quantile(self, share: float) -> float | None:
        """Return the value that this share of the packets does not exceed.

        Of results that are kept without histograms: the median of the repeats', for 0.5 and 0.99.
        """
        if self.histogram_ns:
            return quantile(self.histogram_ns, share)
        each = {0.5: self.p50s_ns, 0.99: self.p99s_ns}.get(share)
        return statistics.median(each) if each else None

    @property
    def median_loss_period(self) -> float | None:
        """Return the loss period that half of the lost packets were in, or in shorter ones."""
        return _half_lost(self.loss_periods)


def _drops(counters: Any, place: str = "") -> Counter[str]:
    """Return a device's drop counters, by place and reason, however deep it stands.

    Our node says drops = {reason: packets} of each port and function; the kernel (of namespaces and
    guests) and Open vSwitch say rx and tx = {dropped: packets} of each interface,
    or add up their ports' drop.
    """
    drops: Counter[str] = Counter()
    for name, thing in counters.items() if isinstance(counters, Mapping) else ():
        if name == "drops" and isinstance(thing, Mapping):
            for reason, count in thing.items():
                drops[f"{place}: {reason}"] += int(count)
        elif name in ("rx", "tx") and isinstance(thing, Mapping):
            drops[f"{place}: {name} dropped"] += int(thing.get("dropped") or 0)
        elif str(name).endswith(" drop") and isinstance(thing, int):
            drops[f"{place}: {name}"] += thing
        elif isinstance(thing, Mapping):
            plain = name in ("ports", "functions")  # what stands in them says where
            drops += _drops(thing, place if plain else " ".join(filter(None, (place, name))))
    return drops


def losses(trials: Sequence[Trial]) -> tuple[tuple[str, float], ...]:
    """Return where a device loses packets when it is offered too much, and which share of all.

    Of trials that a search failed, worst first. ENTRANCE: its queue was full when they were due;
    then what the device counted, by place and reason; UNCOUNTED: the rest. Empty: unknown.
    """
    lost: Counter[str] = Counter()
    offered = 0
    for trial in trials:
        total = trial.result.total
        if trial.purpose != "search" or trial.verdict != "failed" or not total:
            continue
        offered += total.offered_pkts
        counted = _drops(trial.device_after)
        counted.subtract(_drops(trial.device_before))
        lost[ENTRANCE] += total.refused_pkts
        for where, count in counted.items():
            lost[where] += count
        lost[UNCOUNTED] += max(0, total.lost_pkts - total.refused_pkts - sum(counted.values()))
    if not offered:
        return ()
    return tuple((where, count / offered) for where, count in lost.most_common() if count > 0)
