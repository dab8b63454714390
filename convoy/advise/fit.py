# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The cost model, fitted to measured rows by least squares; predictions with their error.

One linear system for each frame size, so nothing is assumed about how costs grow with length; a
size between two that were measured is interpolated between their predictions, one a little longer
than the longest is on the line of the two longest. Rows count by their relative errors. The error
is the fit's own: that of each row where the others predict it (cross-validation), less what such a
prediction is uncertain by, of all sizes; at least the residuals and the noise floor. The interval
is Student's, 95 %, for one more measurement. A chain whose costs the rows do not determine (in
statistics: that is not estimable) is refused, with what is missing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from convoy.advise.parts import CONVOYS, Chain, Unknown, levels_of, unknowns, with_levels
from convoy.report.noise import FLOOR_MIN, critical

Array = NDArray[np.float64]
Mix = tuple[tuple[int, float], ...]  # frame sizes, and which share of the packets has each
ZERO = 1e-9  # of a row's costs: rounding
BEYOND = 1.1  # times the longest measured size: as far as the line is followed
MATTERS = 0.05  # share of a prediction from which a row is named


@dataclass(frozen=True)
class Measured:
    """One row, as the fit takes it."""

    chain: Chain
    size: int  # bytes with FCS
    cycles: float  # TSC ticks of a core for each packet
    name: str  # scenario: setup


@dataclass(frozen=True)
class Basis:
    """A row that a prediction rests on, and how much of it is this row's (signed share)."""

    row: Measured
    share: float

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.row.name} ({self.row.size} B) {self.row.cycles:.0f} cycles"


@dataclass(frozen=True)
class Prediction:
    """What a packet of a chain is expected to cost."""

    cycles: float
    error: float  # half of the 95 % interval, a share of the cycles; inf: not known
    sizes: tuple[int, ...]  # measured ones that it is of: its own, or two on whose line it lies
    basis: tuple[Basis, ...]  # the most important first
    parts: tuple[tuple[str, float], ...]  # cycles of each cost that the rows determine by itself

    @property
    def low(self) -> float:
        """Return the least cycles of the interval."""
        return self.cycles / (1 + self.error)

    @property
    def high(self) -> float:
        """Return the most cycles of the interval."""
        return self.cycles * (1 + self.error)


@dataclass(frozen=True)
class Missing:
    """Why there is no prediction."""

    why: str


class _System:
    """Rows of one frame size."""

    def __init__(self, size: int, rows: Sequence[Measured]) -> None:
        self.size, self.rows = size, tuple(rows)
        many = [row.chain.packets for row in rows]
        self.packets = min(many), max(many)  # in a convoy
        costs = [unknowns(row.chain) for row in rows]
        self.levels = levels_of(costs)
        # A number that is not known stands for the most that was measured.
        costs = [with_levels(one, self.levels)[0] for one in costs]
        self.columns = sorted({key for one in costs for key in one}, key=str)
        self.index = {unknown: i for i, unknown in enumerate(self.columns)}
        self.matrix: Array = np.array([self.vector(one) for one in costs])
        measured = np.array([row.cycles for row in rows])
        self.weighted: Array = self.matrix / measured[:, None]
        self.inverse: Array = np.linalg.pinv(self.weighted, rcond=1e-9)
        self.costs: Array = self.inverse @ np.ones(len(rows))
        self.residuals: Array = self.weighted @ self.costs - 1.0
        self.rank = int(np.linalg.matrix_rank(self.weighted, tol=1e-9))
        self.projection: Array = self.inverse @ self.weighted  # on what the rows determine

    def left_out(self) -> Array:
        """Return each row's error where the others predict it, a share of its cycles.

        That error is its residual over 1 - its leverage, and of the variance that predictions of
        its leverage have (a row that they hardly determine is far off by noise alone): divided by
        the root of both, what is left is the error of one measurement (studentized residuals).
        """
        own = np.einsum("ij,ji->i", self.weighted, self.inverse)
        can = own < 1 - 1e-6  # without it the rest do not determine it
        result: Array = self.residuals[can] / np.sqrt(1 - own[can])
        return result

    def vector(self, costs: Mapping[Unknown, float]) -> Array:
        result = np.zeros(len(self.columns))
        for unknown, times in costs.items():
            result[self.index[unknown]] += times
        return result

    def missing(self, wanted: Array) -> list[Unknown]:
        """Return costs that the rows do not determine, as far as they matter here."""
        rest = wanted - wanted @ self.projection
        if np.max(np.abs(rest), initial=0.0) <= 1e-6 * max(1.0, float(np.max(wanted))):
            return []
        return [self.columns[i] for i in np.flatnonzero(np.abs(rest) > 1e-6)]

    def determined(self, unknown: Unknown) -> bool:
        """Return whether the rows determine a cost by itself."""
        one = np.zeros(len(self.columns))
        one[self.index[unknown]] = 1.0
        return not self.missing(one)


class Fit:
    """The model of one device with its ports and options.

    Packets in convoys share no cost with others: each of the two has an error of its own.
    """

    def __init__(self, rows: Sequence[Measured]) -> None:
        self.rows = tuple(rows)
        self._blocks = {
            aggregated: _Block([row for row in rows if (row.chain.form == CONVOYS) == aggregated])
            for aggregated in (False, True)
        }

    def _block(self, chain: Chain) -> "_Block":
        return self._blocks[chain.form == CONVOYS]

    def errors(self) -> list[tuple[str, int, int, float]]:
        """Return, of packets one by one and in convoys: rows, those beyond unknowns, error."""
        return [
            (
                "in convoys" if aggregated else "one by one",
                len(block.rows),
                block.freedom,
                block.sigma,
            )
            for aggregated, block in self._blocks.items()
            if block.rows
        ]

    def most_packets(self, size: int) -> int:
        """Return the most packets that were measured in a convoy at a size; 1: no convoys."""
        near = self._blocks[True].near(size)
        return int(min((one.packets[1] for one in near), default=1))

    def predict(self, chain: Chain, size: int | Mix) -> Prediction | Missing:
        """Return what a packet of a chain costs at a frame size, or why that is not known.

        Of a mix: on the mean.
        """
        if isinstance(size, int):
            return self._of_size(chain, size)
        each: list[tuple[Prediction, float]] = []
        for one, share in size:
            cost = self._of_size(chain, one)
            if isinstance(cost, Missing):
                return cost
            each.append((cost, share))
        return mixed(each)

    def _of_size(self, chain: Chain, size: int) -> Prediction | Missing:
        block = self._block(chain)
        below = [one for one in block.systems if one <= size][::-1]
        above = [one for one in block.systems if one >= size]
        if not above and below and size <= below[0] * BEYOND:
            below, above = below[1:], below[:1]  # the line through the longest two goes on
        if not below or not above:
            there = ", ".join(map(str, block.systems)) or "nothing"
            how = "in convoys" if chain.form == CONVOYS else "one by one"
            return Missing(f"{size} B {how}: measured at {there}")
        low = self._nearest(chain, below, block)
        high = self._nearest(chain, above, block)
        if isinstance(low, Missing):
            return low
        if isinstance(high, Missing):
            return high
        if low.sizes == high.sizes:
            return low
        weight = (size - low.sizes[0]) / (high.sizes[0] - low.sizes[0])
        between = mixed([(low, 1 - weight), (high, weight)])
        return replace(between, error=max(between.error, low.error, high.error))

    def _nearest(self, chain: Chain, sizes: Sequence[int], block: "_Block") -> Prediction | Missing:
        """Return a prediction at the first size at which all that it needs was measured.

        Where there is none: what the first one lacks.
        """
        missing = None
        for size in sizes:
            result = self._at(chain, block.systems[size], block)
            if isinstance(result, Prediction):
                return result
            missing = missing or result
        assert missing is not None  # there are sizes
        return missing

    def _at(self, chain: Chain, system: _System, block: "_Block") -> Prediction | Missing:
        few, many = system.packets
        if chain.form == CONVOYS and not few <= chain.packets <= many:
            there = f"measured from {few:g} to {many:g}"
            return Missing(f"convoys of {round(chain.packets, 1):g} at {system.size} B: {there}")
        costs, beyond = with_levels(unknowns(chain), system.levels)
        if beyond:
            return Missing("; ".join(beyond))
        lacks = [str(one) for one in costs if one not in system.index]
        if lacks:
            return Missing(f"not measured at {system.size} B: {'; '.join(lacks)}")
        wanted = system.vector(costs)
        if tied := system.missing(wanted):
            what = ", ".join(map(str, tied))
            return Missing(f"at {system.size} B these were not measured apart: {what}")
        cycles = float(wanted @ system.costs)
        if cycles <= 0:
            return Missing(f"at {system.size} B the rows contradict each other (noise)")
        shares = wanted / cycles @ system.inverse
        basis = [Basis(row, float(share)) for row, share in zip(system.rows, shares, strict=True)]
        basis = [one for one in basis if abs(one.share) >= MATTERS]
        basis.sort(key=lambda one: -abs(one.share))
        parts = [
            (str(unknown), times * float(system.costs[system.index[unknown]]))
            for unknown, times in costs.items()
        ]
        if not all(system.determined(unknown) for unknown in costs):
            parts = []
        error = block.error(float(shares @ shares))
        return Prediction(cycles, error, (system.size,), tuple(basis), tuple(parts))

    def cost(
        self, name: str, size: int, level: int | None = None, aggregated: bool = False
    ) -> float | None:
        """Return one cost by itself, in cycles; None: the rows do not determine it."""
        system = self._blocks[aggregated].systems.get(size)
        if system is None:
            return None
        costs, beyond = with_levels({Unknown(name, level): 1.0}, system.levels)
        if beyond or any(one not in system.index or not system.determined(one) for one in costs):
            return None
        return float(system.vector(costs) @ system.costs)

    def sizes(self, aggregated: bool = False) -> tuple[int, ...]:
        """Return the measured frame sizes."""
        return tuple(self._blocks[aggregated].systems)


class _Block:
    """Rows that share costs, at all frame sizes."""

    def __init__(self, rows: Sequence[Measured]) -> None:
        self.rows = tuple(rows)
        by_size: dict[int, list[Measured]] = {}
        for row in rows:
            by_size.setdefault(row.size, []).append(row)
        self.systems = {size: _System(size, some) for size, some in sorted(by_size.items())}
        self.freedom = sum(len(one.rows) - one.rank for one in self.systems.values())
        self.sigma = self._sigma() if self.freedom else math.inf

    def _sigma(self) -> float:
        squares = sum(float(one.residuals @ one.residuals) for one in self.systems.values())
        left_out = [one.left_out() for one in self.systems.values()]
        each = np.concatenate(left_out)
        unseen = float(np.mean(each**2)) if len(each) else 0.0
        return max(math.sqrt(max(squares / self.freedom, unseen)), FLOOR_MIN)

    def near(self, size: int) -> list[_System]:
        """Return the rows of a size, or of the two between which it lies."""
        if size in self.systems:
            return [self.systems[size]]
        below = [one for one in self.systems if one < size]
        above = [one for one in self.systems if one > size]
        return [self.systems[max(below)], self.systems[min(above)]] if below and above else []

    def error(self, leverage: float) -> float:
        """Return half of the 95 % interval of one more measurement, a share; inf: not known."""
        if not self.freedom:
            return math.inf
        half = critical(self.freedom) * self.sigma * math.sqrt(1 + leverage)
        return math.expm1(half) if half < 1 else math.inf


def mixed(some: Sequence[tuple[Prediction, float]]) -> Prediction:
    """Return what packets cost of which so many (a share, all together 1) cost so much."""
    cycles = sum(weight * one.cycles for one, weight in some)
    parts: dict[str, float] = {}
    shares: dict[Measured, float] = {}
    for one, weight in some:
        for name, each in one.parts:
            parts[name] = parts.get(name, 0.0) + weight * each
        for row in one.basis:
            shares[row.row] = shares.get(row.row, 0.0) + weight * row.share
    basis = [Basis(row, share) for row, share in shares.items()]
    basis.sort(key=lambda one: -abs(one.share))
    return Prediction(
        cycles,
        sum(abs(weight) * one.cycles * one.error for one, weight in some if weight) / cycles,
        tuple(sorted({size for one, _ in some for size in one.sizes})),
        tuple(basis),
        tuple(parts.items()) if all(one.parts for one, _ in some) else (),
    )
