# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The tester of convoy.dut.dummy: results as convoy-gen gives them, from a known response curve.

What it offers beyond the curve's capacity is lost; latency grows with the load as in a queue. The
same specification and seed give the same result, and no time passes.
"""

import random
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convoy.dut.dummy import TSC_HZ, RunningDummy
from convoy.frame.capture import read_packets
from convoy.results.trial_result import (
    Latency,
    LostTime,
    PacketCounts,
    TesterState,
    TrialResult,
)
from convoy.tester.base import Tester
from convoy.tester.model import TrialSpec, read_spec

BASELINE_PPS = 50e6
IMIX_BYTES = (28 * 64 + 16 * 570 + 4 * 1518) / 48
QUANTILES = ((0.5, 1.0), (0.9, 1.3), (0.99, 2.0), (0.999, 4.0), (1.0, 6.0))  # times the median


class DummyTester(Tester):
    """Answers for a device that is a curve."""

    def __init__(self, device: RunningDummy, seed: int = 1) -> None:
        self._device = device
        self._random = random.Random(seed)

    @property
    def baseline_pps(self) -> float:
        """Return the highest rate it offers."""
        return BASELINE_PPS

    def trial(self, specification: TrialSpec | Mapping[str, Any]) -> TrialResult:
        """Do one trial; see Tester.trial."""
        spec = read_spec(specification)
        curve, device = self._device.curve, self._device
        size = _frame_bytes(spec)
        capacity = curve.capacity_pps(device.functions, size)
        capacity *= max(0.1, self._random.gauss(1.0, curve.noise))
        rate = BASELINE_PPS if spec.rate_pps == "max" else float(spec.rate_pps)
        offered = max(1, round(min(rate, BASELINE_PPS) * spec.duration_s))
        loss = max(0.0, 1 - capacity / rate)
        if self._random.random() < curve.hiccups:
            loss = max(loss, curve.hiccup_loss)
        paused = self._random.random() < curve.invalid
        invalid = paused or rate > BASELINE_PPS
        received = offered - round(offered * loss)
        device.spent(received, size)
        duration_ns = round(spec.duration_s * 1e9)
        return TrialResult(
            ok=not invalid,
            reason_code="rate_not_reached" if invalid else None,
            reason="the dummy had a pause" if invalid else None,
            intended_pps=None if spec.rate_pps == "max" else rate,
            baseline_pps=BASELINE_PPS,
            duration_ns=duration_ns,
            total=PacketCounts(
                offered_pkts=offered,
                sent_pkts=offered,
                received_pkts=received,
                unsent_pkts=int(paused),
                lost_pkts=offered - received,
                loss_ratio=(offered - received) / offered,
                mean_frame_bytes=size,
                offered_pps=offered / spec.duration_s,
                received_pps=received / spec.duration_s,
                latency=_latency(curve.latency_ns, min(rate / capacity, 0.99), received),
            ),
            tester=TesterState(
                tsc_hz=TSC_HZ,
                core=0,
                lost_time=LostTime(descheduled_ns=duration_ns if paused else 0),
            ),
        )


def _frame_bytes(spec: TrialSpec) -> float:
    if spec.capture is not None:
        return statistics.mean(map(len, read_packets(Path(spec.capture.file)))) + 4
    return float(spec.size) if isinstance(spec.size, int) else IMIX_BYTES


def _latency(idle_ns: float, load: float, packets: int) -> Latency:
    median = idle_ns * (1 + load / (1 - load) / 4)
    values = [(share, round(median * times)) for share, times in QUANTILES]
    histogram, below = [], 0.0
    for share, value in values:
        histogram.append((value, round(packets * (share - below))))
        below = share
    (_, p50), (_, p90), (_, p99), (_, p99_9), (_, most) = values
    return Latency(
        count=packets,
        min_ns=round(idle_ns / 2),
        mean_ns=median * 1.1,
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        p99_9_ns=p99_9,
        max_ns=most,
        significant_digits=3,
        histogram_ns=tuple(histogram),
    )
