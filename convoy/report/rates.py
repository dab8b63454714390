# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Trials to rates, latencies and cycles per packet: one row per device, functions and frame size.

A repeat's rate is that of the fastest trial of its search that passed. A repeat in which none did
is missing, not zero.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from convoy.results.trials import Trial

Key = tuple[str, tuple[str, ...], str]  # device, functions, size


def path_name(functions: Sequence[str]) -> str:
    """Return the functions as reports write them."""
    return " → ".join(functions) or "no function"


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


@dataclass(frozen=True)
class Row:
    """What was found at one frame size; each tuple has one value per repeat that gave one."""

    device: str
    functions: tuple[str, ...]
    size: str
    rates_pps: tuple[float, ...]
    frame_bytes: float | None  # mean, with FCS
    loads_pps: tuple[float, ...]  # of the latency trials
    p50s_ns: tuple[float, ...]
    p99s_ns: tuple[float, ...]
    node_cycles: tuple[float, ...]  # busy TSC ticks per packet of the device's workers
    function_cycles: tuple[float, ...]  # of these, in its functions
    repeats: int
    trials: int
    spoilt: int

    @property
    def path(self) -> str:
        """Return the functions as reports write them."""
        return path_name(self.functions)

    @property
    def rate_pps(self) -> float | None:
        """Return the median rate."""
        return _median(self.rates_pps)

    @property
    def gbps(self) -> float | None:
        """Return 1e9 bits of frames (with FCS, without preamble and gap) per second."""
        if self.rate_pps is None or self.frame_bytes is None:
            return None
        return self.rate_pps * self.frame_bytes * 8 / 1e9

    @property
    def p50_ns(self) -> float | None:
        """Return the median of the repeats' median latencies."""
        return _median(self.p50s_ns)

    @property
    def p99_ns(self) -> float | None:
        """Return the median of the repeats' 99th percentiles."""
        return _median(self.p99s_ns)

    @property
    def load_pps(self) -> float | None:
        """Return the rate at which latency was measured."""
        return _median(self.loads_pps)

    @property
    def node_cycles_per_packet(self) -> float | None:
        """Return the median of the workers' busy cycles per packet, ports included."""
        return _median(self.node_cycles)

    @property
    def function_cycles_per_packet(self) -> float | None:
        """Return the median of the functions' own busy cycles per packet."""
        return _median(self.function_cycles)


def _sum(objects: Any, field: str) -> int:
    """Sum a counter over ports or functions (by name) or workers (a list)."""
    things = objects.values() if isinstance(objects, dict) else objects
    return sum(int(thing.get(field, 0)) for thing in things)


def _cycles(trial: Trial) -> tuple[float, float] | None:
    """Busy cycles per packet of a node's workers and functions during a trial."""
    before, after = trial.device_before, trial.device_after
    if not before or not after or "workers" not in after:
        return None

    def more(part: str, field: str) -> int:
        return _sum(after[part], field) - _sum(before[part], field)

    packets = more("ports", "rx_packets")
    if packets <= 0:
        return None
    return more("workers", "busy_cycles") / packets, more("functions", "busy_cycles") / packets


def _row(key: Key, trials: Sequence[Trial]) -> Row:
    best: dict[int, Trial] = {}
    latencies: dict[int, Trial] = {}
    for trial in trials:
        if trial.verdict != "passed" or trial.received_pps is None:
            continue
        if trial.purpose == "latency":
            latencies[trial.repeat] = trial
        elif trial.purpose == "search":
            fastest = best.get(trial.repeat)
            if fastest is None or (fastest.received_pps or 0) < trial.received_pps:
                best[trial.repeat] = trial
    cycles = [pair for trial in best.values() if (pair := _cycles(trial)) is not None]
    books = [trial.tester.get("total") or {} for trial in trials]
    frames = [total["mean_frame_bytes"] for total in books if total.get("mean_frame_bytes")]
    found = [trial.tester["total"]["latency"] for trial in latencies.values()]
    return Row(
        *key,
        rates_pps=tuple(trial.received_pps or 0 for trial in best.values()),
        frame_bytes=_median(frames),
        loads_pps=tuple(trial.rate_pps or 0 for trial in latencies.values()),
        p50s_ns=tuple(latency["p50_ns"] for latency in found),
        p99s_ns=tuple(latency["p99_ns"] for latency in found),
        node_cycles=tuple(node for node, _ in cycles),
        function_cycles=tuple(own for _, own in cycles),
        repeats=len({trial.repeat for trial in trials}),
        trials=len(trials),
        spoilt=sum(trial.verdict == "spoilt" for trial in trials),
    )


def rows(trials: Iterable[Trial]) -> list[Row]:
    """Return a row for everything that was tried, in the order in which it was first met."""
    groups: dict[Key, list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.device, trial.functions, trial.size), []).append(trial)
    return [_row(key, group) for key, group in groups.items()]


def expected_pps(bare_pps: float, function_cycles: float, tsc_hz: float) -> float:
    """Return the rate of a device that does the bare one's work and these cycles on top."""
    return 1 / (1 / bare_pps + function_cycles / tsc_hz)
