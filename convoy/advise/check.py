# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The held-out check: what the model says of chains that it has not seen, beside what they did.

Rows of the held-out scenarios are kept from the fit. Two things must hold: the median error of the
predicted cycles is at most 10 %, and no other way that was measured carries more than the way that
is predicted to be the best, beyond noise.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from convoy.advise.fit import Missing
from convoy.advise.model import Kind, Model, cycles_of_rounds, left_out, measured, models
from convoy.advise.parts import Chain, names
from convoy.report.noise import DEVICES, FLOOR_MIN, half_width
from convoy.report.row import Row

HELD_OUT = ("held-out", "held-out-convoys")  # scenarios
MEDIAN_MAX = 0.10


@dataclass(frozen=True)
class Compared:
    """A held-out row beside its prediction. Rates are of one core that is never idle."""

    name: str
    kind: Kind
    chain: Chain
    size: int
    measured_cycles: float
    rounds: tuple[float, ...]  # cycles of each round
    predicted_cycles: float
    interval: float  # half of the 95 % interval, a share
    measured_pps: float
    predicted_pps: float

    @property
    def error(self) -> float:
        """Return how much more cycles were predicted than measured, a share."""
        return self.predicted_cycles / self.measured_cycles - 1

    @property
    def inside(self) -> bool:
        """Return whether the interval has the measured value."""
        return abs(math.log(self.predicted_cycles / self.measured_cycles)) <= math.log1p(
            self.interval
        )


@dataclass(frozen=True)
class Delayed:
    """The median latency of a held-out row at a load beside its prediction."""

    row: Compared
    load: str
    measured_ns: float
    predicted_ns: float
    interval: float  # half of the 95 % interval, a share

    @property
    def error(self) -> float:
        """Return how much more was predicted than measured, a share."""
        return self.predicted_ns / self.measured_ns - 1

    @property
    def inside(self) -> bool:
        """Return whether the interval has the measured value."""
        low, high = (self.predicted_ns * (1 + sign * self.interval) for sign in (-1, 1))
        return low <= self.measured_ns <= high


@dataclass(frozen=True)
class Choice:
    """Ways of the same chain and traffic: the one advised, and the one that measured best."""

    what: str
    ways: int
    advised: Compared
    best: Compared
    noise: float  # share by which they may differ by chance
    pairs: int = 0  # of ways that measured differently, beyond noise
    turned: tuple[tuple[Compared, Compared], ...] = ()  # of them: the better one, predicted worse

    @property
    def lost(self) -> float:
        """Return the share by which the best one carries more than the one advised."""
        return self.best.measured_pps / self.advised.measured_pps - 1

    @property
    def beaten(self) -> bool:
        """Return whether another way measured better, beyond noise."""
        return self.lost > self.noise


@dataclass(frozen=True)
class Check:
    """How well the model does on rows that it has not seen."""

    compared: tuple[Compared, ...]
    choices: tuple[Choice, ...]
    refused: tuple[tuple[str, str], ...]  # held-out rows without a prediction, and why
    left_out: tuple[str, ...]  # rows that say nothing, and why
    models: tuple[Model, ...]
    delayed: tuple[Delayed, ...] = ()

    @property
    def median_error(self) -> float:
        """Return the median of the errors' sizes."""
        return statistics.median(abs(one.error) for one in self.compared)

    @property
    def beaten(self) -> tuple[Choice, ...]:
        """Return the choices in which another way was better."""
        return tuple(one for one in self.choices if one.beaten)

    @property
    def holds(self) -> bool:
        """Return whether both conditions hold."""
        return bool(self.compared) and self.median_error <= MEDIAN_MAX and not self.beaten


def _delayed(model: Model, row: Row, one: Compared) -> Iterator[Delayed]:
    for line in model.latency:
        delay = row.delay(line.load)
        expected = line.of(one.chain, one.predicted_cycles)
        if expected is not None and delay is not None and delay.p50s_ns:
            measured_ns = statistics.median(delay.p50s_ns)
            yield Delayed(one, line.load, measured_ns, expected, line.error)


def _noise(one: Compared, other: Compared) -> float:
    width = half_width(one.rounds, other.rounds, chance=DEVICES)
    return max(math.expm1(width) if width < 1 else math.inf, FLOOR_MIN)


def _choice(what: str, ways: Sequence[Compared]) -> Choice:
    advised = max(ways, key=lambda one: one.predicted_pps)
    best = max(ways, key=lambda one: one.measured_pps)
    ordered = combinations(sorted(ways, key=lambda one: -one.measured_pps), 2)
    pairs = [(a, b) for a, b in ordered if a.measured_pps / b.measured_pps - 1 > _noise(a, b)]
    turned = tuple((a, b) for a, b in pairs if a.predicted_pps < b.predicted_pps)
    return Choice(what, len(ways), advised, best, _noise(advised, best), len(pairs), turned)


def check(rows: Sequence[Row], held_out: Sequence[str] = HELD_OUT) -> Check:
    """Fit the model to all but the held-out scenarios and compare it with these."""
    fitted = models([row for row in rows if row.scenario not in held_out])
    by_kind = {model.kind: model for model in fitted}
    compared, refused = [], []
    delayed: list[Delayed] = []
    held = measured([row for row in rows if row.scenario in held_out])
    for kind, some in held.items():
        model = by_kind.get(kind)
        for row, one in some:
            name = f"{one.name}, {one.size} B, {kind.device}"
            if model is None:
                refused.append((name, f"{kind}: no parts were measured"))
                continue
            prediction = model.fit.predict(one.chain, one.size)
            if isinstance(prediction, Missing):
                refused.append((name, prediction.why))
                continue
            compared.append(
                Compared(
                    one.name,
                    kind,
                    one.chain,
                    one.size,
                    one.cycles,
                    cycles_of_rounds(row),
                    prediction.cycles,
                    prediction.error,
                    model.rate_pps(one.chain, one.cycles),
                    model.rate_pps(one.chain, prediction.cycles),
                )
            )
            delayed += _delayed(model, row, compared[-1])
    groups: dict[tuple[object, ...], list[Compared]] = {}
    for each in compared:
        chain = each.chain
        if chain.own:  # a part of a way
            continue
        key = (chain.parts, chain.form, chain.packets, chain.flows, each.size)
        groups.setdefault(key, []).append(each)
    choices = [
        _choice(f"{names(ways[0].chain.parts)}, {ways[0].chain.form}, {ways[0].size} B", ways)
        for ways in groups.values()
        if len(ways) > 1
    ]
    return Check(
        tuple(compared), tuple(choices), tuple(refused), left_out(rows), fitted, tuple(delayed)
    )
