# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Setups over others of the same device, round by round.

The medians of a round's trials are divided; of the quotients there is the median, the least and the
most. A setup with convoys is compared with the setup without them that has the same functions: in
plan.yaml the first one of those functions, that deployment and as many cores whose devices get no
convoys. A scenario's `compare` names others.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.scenario import SetupSpec

BUSY = 0.95  # of a trial; a device with more time left could have taken more
Spread = tuple[float, float, float]  # median, least, most
Rounds = Mapping[int, float]


def _kind(spec: SetupSpec, device: str) -> tuple[object, ...]:
    """Return what two setups must have in common to be compared."""
    options = dict(spec.options.get(device, {}))
    options.pop("convoys", None)
    shape = spec.functions, spec.deployment, spec.ports, spec.cores
    return *shape, tuple(options.items()), spec.pacing


def _has_convoys(spec: SetupSpec, device: str) -> bool:
    return spec.options.get(device, {}).get("convoys", "no") != "no"


def pairs(run: Run, scenario: str) -> Iterator[tuple[Row, Row]]:
    """Yield a row with convoys, and that of the same device and frames without."""
    setups = run.scenarios[scenario].setups
    rows = [row for row in run.of(scenario) if row.contends]
    for row in rows:
        spec = setups.get(row.setup)
        if spec is None or not _has_convoys(spec, row.device):
            continue
        for plain in rows:
            other = setups.get(plain.setup)
            same = (plain.name, plain.size) == (row.name, row.size)
            if other is None or not same or _has_convoys(other, row.device):
                continue
            if _kind(spec, row.device) == _kind(other, row.device):
                yield row, plain
                break


def _ratio(row: Row, other: Row, a: Rounds, b: Rounds) -> Spread | None:
    """Return a / b of the rounds that have both and in which the host state was the same."""
    same = (i for i in a.keys() & b.keys() if (i in row.degraded) == (i in other.degraded))
    ratios = [a[i] / b[i] for i in same]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def gain(row: Row, plain: Row) -> Spread | None:
    """Return the ratio of two rows' rates, round by round; None: not known.

    Two lower bounds have none; where one is a bound, bound() says what the ratio is.
    """
    if row.lower_bound and plain.lower_bound:
        return None
    return _ratio(row, plain, row.rounds, plain.rounds)


def bound(row: Row, plain: Row) -> str:
    """Return what stands before the ratio of two rows' rates."""
    return "≥ " if row.lower_bound else "≤ " if plain.lower_bound else ""


def saturation_gain(row: Row, plain: Row, what: str) -> Spread | None:
    """Return the ratio of two rows' medians, round by round.

    what: the rows' "saturation_pps", "per_cpu_s" or "saturation_cycles".
    """
    a, b = (
        {repeat: statistics.median(values) for repeat, values in getattr(one, what).items()}
        for one in (row, plain)
    )
    return _ratio(row, plain, a, b)


@dataclass(frozen=True)
class Compared:
    """A setup over another one, at one frame size."""

    scenario: str
    setup: str
    over: str
    name: str  # of the device; with its run, where there are several
    size: str
    rate: Spread  # quotient of the rates
    cycles: Spread | None  # of the busy cycles per packet; None: the device does not count them
    target: float | None  # that the rates' quotient is to reach
    paper: str  # what the paper says
    waited: tuple[str, ...]  # of the two setups those that waited for the tester

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it."""
        names = ("median", "min", "max")
        cycles = dict(zip(names, self.cycles, strict=True)) if self.cycles else None
        rate = dict(zip(names, self.rate, strict=True))
        return vars(self) | {
            "rate": rate,
            "cycles": cycles,
            "paper": self.paper or None,
            "waited": list(self.waited),
        }


def _waited(row: Row) -> bool:
    shares = [share for shares in row.saturation_busy.values() for share in shares]
    return bool(shares) and statistics.median(shares) < BUSY


def compared(run: Run, scenario: str) -> Iterator[Compared]:
    """Yield what a scenario asks to compare and the run has; in its order, then by size."""
    rows = [row for row in run.of(scenario) if row.contends]
    known: dict[tuple[str, str, str], Row] = {(r.setup, r.name, r.size): r for r in rows}
    for wanted in run.scenarios[scenario].compare:
        sizes = [str(size) for size in wanted.sizes or ()]
        for row in rows:
            other = known.get((wanted.over, row.name, row.size))
            if row.setup != wanted.setup or other is None or (sizes and row.size not in sizes):
                continue
            rate = saturation_gain(row, other, "saturation_pps")
            if rate is None:
                continue
            cycles = saturation_gain(row, other, "saturation_cycles")
            yield Compared(
                scenario, row.setup, other.setup, row.name, row.size, rate, cycles,
                wanted.target, wanted.paper,
                tuple(r.setup for r in (row, other) if _waited(r)),
            )  # fmt: skip
