# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Rows of results to fitted models, one for each device with its ports and options."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from convoy.advise.evidence import KINDS, NOT_A_HOME
from convoy.advise.fit import Fit, Measured
from convoy.advise.parts import CONVOYS, Chain, chain_of, link_of, on_own_cores
from convoy.errors import InputError
from convoy.report.row import Row

Basis = Literal["saturation", "PDR"]
SAME_TSC = 0.001  # by which runs on one machine may differ: each measures it
LATENCY_MIN = 4  # rows, at least, for a line through latencies
OWN = ("link",)  # options that the model knows by themselves
# Rounds of a row whose cycles differ by more than this factor say two things: the machine was
# disturbed in some of them, and their median may be of either.
UNSETTLED = 1.5


@dataclass(frozen=True)
class Kind:
    """What rows of one fit have in common."""

    device: str
    port_kind: str
    options: tuple[tuple[str, str], ...]
    basis: Basis  # at which load the cycles were measured
    run: str

    def __str__(self) -> str:
        """Return it as people read it."""
        parts = [KINDS.get(self.device, self.device), f"{self.port_kind} ports"]
        parts += [f"{name}={value}" for name, value in self.options]
        parts += ["by its PDR"] if self.basis == "PDR" else []
        return ", ".join(parts) + (f" [{self.run}]" if self.run else "")


@dataclass(frozen=True)
class Latency:
    """Median latency at a load: over cycles, functions and crossings.

    Packets that come one by one take longer in each function than its cycles in a burst say.
    Packets in convoys have costs of their own: they come together and leave together, so that the
    cycles of all count.
    """

    load: str
    in_convoys: bool
    fixed_ns: float
    per_cycle_ns: float
    per_function_ns: float
    per_crossing_ns: Mapping[str, float]  # by link
    error: float  # half of the 95 % interval, a share
    rows: int

    def of(self, chain: Chain, cycles: float) -> float | None:
        """Return the median of a chain, in nanoseconds; None: it is about others."""
        if (chain.form == CONVOYS) != self.in_convoys or chain.own is not None:
            return None
        between = 0.0
        if chain.crossings:
            if chain.link not in self.per_crossing_ns:
                return None
            between = self.per_crossing_ns[chain.link] * chain.crossings
        each = self.per_cycle_ns * _together(chain, cycles)
        return self.fixed_ns + each + self.per_function_ns * len(chain.parts) + between


@dataclass(frozen=True)
class Model:
    """The fitted model of a device, and what else was measured of it."""

    kind: Kind
    fit: Fit
    tsc_hz: float
    busy: Mapping[str, float]  # by link ("": one process): share of a core that is work at best
    latency: tuple[Latency, ...]

    def rate_pps(self, chain: Chain, cycles: float) -> float:
        """Return the packets a second of one core that is never idle."""
        return self.tsc_hz * self.busy.get(chain.link, 1.0) / cycles


def _cycles_of(row: Row, tsc_hz: float) -> tuple[Basis, float] | None:
    """Return the cycles of a core that a packet took where the core had no time to spare."""
    if row.saturation_cycles:
        each = [statistics.median(some) for some in row.saturation_cycles.values()]
        return "saturation", statistics.median(each)
    if row.saturation_pps:
        each = [statistics.median(some) for some in row.saturation_pps.values()]
        return "saturation", tsc_hz / statistics.median(each)
    if row.rate_pps and not row.lower_bound:
        return "PDR", tsc_hz / row.rate_pps
    return None


def cycles_of_rounds(row: Row) -> tuple[float, ...]:
    """Return what a packet took in each round; rates at saturation where that was not counted."""
    some = row.saturation_cycles or row.saturation_pps
    return tuple(statistics.median(each) for each in some.values())


def _spread(row: Row) -> float:
    """Return the factor by which a row's rounds differ; infinity: nothing passed in some."""
    rounds = cycles_of_rounds(row)
    least, most = min(rounds, default=1.0), max(rounds, default=1.0)
    return most / least if least > 0 else math.inf


def unsettled(row: Row) -> bool:
    """Return whether a row's rounds differ so much that it says nothing."""
    return _spread(row) > UNSETTLED


def left_out(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return which rows the model does not take, as their rounds differ too much."""
    result = []
    for row in rows:
        if not usable(row) or not unsettled(row):
            continue
        spread = _spread(row)
        why = (
            f"its rounds differ by the factor {spread:.1f}"
            if math.isfinite(spread)
            else "nothing passed in some of its rounds"
        )
        name = f"{row.scenario}: {row.setup}, {row.size} B, {row.device}"
        result.append(f"{name}: {why}; measure it again")
    return tuple(result)


def usable(row: Row) -> bool:
    """Return whether the model knows what a row measured: one chain, evenly.

    On one core, or on one for each function.
    """
    under = row.conditions
    cores = len(row.functions) if under.placement else 1
    return (
        row.contends
        and row.device not in NOT_A_HOME
        and row.size.isdigit()
        and under.evenly
        and not under.connections
        and (under.chains, under.cores, under.queues) == (1, cores, 1)
        and not any("not comparable" in note for note in row.notes)
    )


def measured(rows: Iterable[Row]) -> dict[Kind, list[tuple[Row, Measured]]]:
    """Return the rows that the model knows, by what one fit has in common."""
    result: dict[Kind, list[tuple[Row, Measured]]] = {}
    for row in rows:
        chain = chain_of(row) if usable(row) and not unsettled(row) else None
        spent = _cycles_of(row, row.tsc_hz) if chain is not None and row.tsc_hz else None
        if chain is None or spent is None:
            continue
        basis, cycles = spent
        options = tuple(one for one in row.conditions.options if one[0] not in OWN)
        kind = Kind(row.device, row.port_kind, options, basis, row.run)
        name = f"{row.scenario}: {row.setup}"
        each = [(chain, cycles)] if not row.conditions.placement else _each_core(row, chain)
        for one, spent_here in each:
            measured_here = Measured(one, int(row.size), spent_here, name)
            result.setdefault(kind, []).append((row, measured_here))
    return result


def _each_core(row: Row, chain: Chain) -> list[tuple[Chain, float]]:
    """Return what each core of a row did, and its cycles; nothing where they were not counted."""
    each = [statistics.median(some) for some in row.part_cycles.values()]
    if not row.saturation_cycles or len(each) != len(chain.parts) or len(each) < 2:
        return []
    return list(zip(on_own_cores(chain, link_of(row), row.conditions.placement), each, strict=True))


def _busy(rows: Sequence[tuple[Row, Measured]]) -> dict[str, float]:
    result: dict[str, float] = {}
    for row, one in rows:
        if one.chain.link and row.saturation_busy:
            each = [statistics.median(some) for some in row.saturation_busy.values()]
            share = statistics.median(each)
            result[one.chain.link] = max(result.get(one.chain.link, 0.0), share)
    return result


def _together(chain: Chain, cycles: float) -> float:
    """Return the cycles of packets that come together."""
    return cycles * chain.packets if chain.form == CONVOYS else cycles


def _latency(rows: Sequence[tuple[Row, Measured]]) -> tuple[Latency, ...]:
    """Fit the medians at each load that was measured."""
    points: dict[tuple[str, bool], list[tuple[Measured, float]]] = {}
    for row, one in rows:
        for delay in row.delays if one.chain.own is None else ():
            if delay.p50s_ns:
                key = delay.load, one.chain.form == CONVOYS
                points.setdefault(key, []).append((one, statistics.median(delay.p50s_ns)))
    result = []
    for (load, in_convoys), some in points.items():
        links = sorted({one.chain.link for one, _ in some if one.chain.crossings})
        p50s = np.array([p50 for _, p50 in some])
        matrix = np.array([
            [1.0, _together(one.chain, one.cycles), len(one.chain.parts),
             *(one.chain.crossings * (one.chain.link == link) for link in links)]
            for one, _ in some
        ])  # fmt: skip
        freedom = len(some) - matrix.shape[1]
        if len(some) < LATENCY_MIN or freedom < 1:
            continue
        costs, *_ = np.linalg.lstsq(matrix / p50s[:, None], np.ones(len(some)), rcond=None)
        off = matrix @ costs / p50s - 1.0
        error = 2.0 * float(np.sqrt(off @ off / freedom))
        fixed, per_cycle, per_function, *crossings = map(float, costs)
        between = dict(zip(links, crossings, strict=True))
        result.append(
            Latency(load, in_convoys, fixed, per_cycle, per_function, between, error, len(some))
        )
    return tuple(result)


def _tsc_hz(kind: Kind, rows: Sequence[tuple[Row, Measured]]) -> float:
    """Return the clock that rows of one fit have in common. Raises InputError."""
    known = sorted(row.tsc_hz for row, _ in rows if row.tsc_hz)
    if known[-1] > known[0] * (1 + SAME_TSC):
        raise InputError(
            f"{kind}: rows of machines with TSCs of {known[0] / 1e9:.2f} and "
            f"{known[-1] / 1e9:.2f} GHz share no model: give the folders of one machine"
        )
    return statistics.median(known)


def models(rows: Iterable[Row]) -> tuple[Model, ...]:
    """Return a model for each device of a run, as far as its rows allow one. Raises InputError."""
    return tuple(
        Model(kind, Fit([one for _, one in some]), _tsc_hz(kind, some), _busy(some), _latency(some))
        for kind, some in measured(rows).items()
    )
