# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Do the parts of a packet's way through our node add up to what the tester measures, and is it
cheap to time them?

Both sums are means of all packets. They agree where the interval of their quotient, as the ledger
has it, has 1 in it; where the interval is too wide to have told a part that is missing, nothing is
known.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from convoy.report.ledger.evaluate import Interval, quotient
from convoy.report.ledger.measured import Measured
from convoy.report.noise import FLOOR_MIN
from convoy.report.packets import Delay
from convoy.report.row import Row, median
from convoy.report.run_data import Run

Verdict = Literal["holds", "does not hold", "cannot be told"]
ROUNDS_MIN = 2
NOISE_MOST = 1.5  # a quotient: a part as long as half of all others would show
COST_MOST = 1.0  # cycles per packet that timing may cost


@dataclass(frozen=True)
class LatencySum:
    """The parts' sum and the tester's mean at one load, in us."""

    node_us: float
    tester_us: float
    quotient: Interval | None  # None: one round alone shows no spread

    @property
    def verdict(self) -> Verdict:
        """Return whether they add up within noise."""
        here = self.quotient
        if here is not None and not here.low <= 1 <= here.high:
            return "does not hold"
        if here is None or here.low < 1 / NOISE_MOST or here.high > NOISE_MOST:
            return "cannot be told"
        return "holds"

    @property
    def text(self) -> str:
        """Return it in a sentence."""
        both = (
            f"the means of the node's parts, {self.node_us:.2f} us, add up to the tester's mean, "
            f"{self.tester_us:.2f} us: **{self.verdict}**"
        )
        if self.quotient is None:
            return f"{both}, of one round"
        return f"{both} (quotient {self.quotient.text})"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it; an open end of an interval is null."""
        here = self.quotient
        ends = {"median": here.median, "low": here.low, "high": here.high} if here else {}
        known = {name: end if math.isfinite(end) else None for name, end in ends.items()}
        return {
            "node_us": self.node_us, "tester_us": self.tester_us, "quotient": known or None,
            "verdict": self.verdict,
        }  # fmt: skip


def _measured(rounds: Mapping[int, float]) -> Measured:
    values = list(rounds.values())
    return Measured("us", rounds, median(values) or 0.0, min(values), max(values))


def _latency_sum(delay: Delay, floor: float | None) -> LatencySum | None:
    parts: dict[int, float] = {}
    means: dict[int, float] = {}
    for number, one in delay.rounds.items():
        if one.stages and one.mean_ns:
            parts[number] = sum(stage.mean_ns for stage in one.stages) / 1e3
            means[number] = one.mean_ns / 1e3
    if not parts:
        return None
    a, b = _measured(parts), _measured(means)
    share = quotient(a, b, max(floor or 0.0, FLOOR_MIN)) if len(parts) >= ROUNDS_MIN else None
    return LatencySum(a.median, b.median, share)


def latency_sums(run: Run, scenario: str) -> Iterator[tuple[Row, Delay, LatencySum]]:
    """Yield the sums of a scenario that is about them, at each load with parts."""
    if run.scenarios[scenario].figure.y != "stages":
        return
    for row in run.of(scenario):
        floor = run.noise_floor(scenario, row.size, row.run or None)
        for delay in row.delays if row.contends else ():
            one = _latency_sum(delay, floor)
            if one is not None:
                yield row, delay, one


@dataclass(frozen=True)
class TimingCost:
    """What timing costs in cycles per packet, where a poll brings so many: bench-latency."""

    burst: int
    cycles: Interval  # of repeats with bursts drawn and without, in turn; 95 % of the median

    @property
    def verdict(self) -> Verdict:
        """Return whether it is under COST_MOST."""
        if self.cycles.high < COST_MOST:
            return "holds"
        return "does not hold" if self.cycles.low >= COST_MOST else "cannot be told"

    @property
    def text(self) -> str:
        """Return it in a sentence."""
        packets = "packets" if self.burst > 1 else "packet"
        return (
            f"Timing parts in polls of {self.burst} {packets} costs {self.cycles.median:.2f} "
            f"[{self.cycles.low:.2f} .. {self.cycles.high:.2f}] cycles per packet: under "
            f"{COST_MOST:g} **{self.verdict}**."
        )


def timing_costs(run: Run, scenario: str) -> Iterator[TimingCost]:
    """Yield what timing costs, by how many packets a poll brings."""
    for one in run.memory:
        for row in one.rows() if (one.scenario, one.what) == (scenario, "latency") else ():
            cost = row["cost"]
            yield TimingCost(row["burst"], Interval(cost["median"], cost["min"], cost["max"]))
