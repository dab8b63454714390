# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a run measured of a claim's quantity: a value for each round, median and extremes."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from convoy.report.ledger.model import APPLICATIONS, ProgramFigure, Quantity
from convoy.report.line_rate import line_gbps
from convoy.report.noise import confirmed_least, confirmed_most
from convoy.report.packets import Delay
from convoy.report.row import Row, median
from convoy.report.run_data import Run

UNITS = {
    "rate": "Mpps", "line-gbps": "Gb/s on the line", "saturation": "Mpps",
    "per-cpu-second": "M packets/CPU s", "cycles": "cycles/packet",
    "function-cycles": "cycles/packet", "latency-p50": "us", "latency-p99": "us",
    "latency-functions": "us", "latency-ports": "us",
    "lost": "% lost", "frames": "% frames/packets", "loss-period": "packets", "cpu": "% CPU",
    "core-busy": "% busy", "in-memory": "cycles/packet", "iperf3-tcp": "Mbit/s",
    "iperf3-udp": "Mbit/s", "http": "requests/s", "ftp": "Mbit/s",
}  # fmt: skip
SIMULATED_UNITS = {"mean_bytes": "bytes", "frames_per_packet": "frames/packet"}
# Of which others on a machine take, and which they add to. Not cycles: a device that gets fewer
# packets at a time spends more on each.
TAKEN = ("rate", "line-gbps", "saturation", "per-cpu-second", *APPLICATIONS)
ADDED = ("latency-p50",)
# Shares of a core's time, and a number of packets: not what the noise of rates is about.
QUIET = ("cpu", "core-busy", "loss-period")
UNPAIRED = ("cpu", "core-busy", "function-cycles")  # a row has them without their rounds
IN_TURN = "switch and VNFs share a core: each gets it"  # in a note of convoy/dut/switch_vnf.py
EMULATED = "not comparable"  # in the remark of a device that is no evidence


class NotMeasuredError(Exception):
    """A run lacks a quantity; the text says what and, where it is known, why."""


@dataclass(frozen=True)
class Measured:
    """A quantity's values. Of programs in memory there are no rounds, only the extremes."""

    unit: str
    rounds: Mapping[int, float]
    median: float
    least: float
    most: float
    lower_bound: bool = False  # the values are censored: at least so much
    upper_bound: bool = False  # at most so much; with lower_bound: nobody knows
    pairs: bool = True  # rounds of the same number were measured under the same conditions
    best: float | None = None  # of the rounds, if another one confirms it (noise.py)

    @property
    def text(self) -> str:
        """Return it as people read it: median [least .. most] unit."""
        middle, low, high = (f"{v:.4g}" for v in (self.median, self.least, self.most))
        spread = "" if low == high else f" [{low} .. {high}]"
        sign = "≥ " if self.lower_bound else "≤ " if self.upper_bound else ""
        sign = "? " if self.lower_bound and self.upper_bound else sign
        return f"{sign}{middle}{spread} {self.unit}"


def _of(
    unit: str,
    rounds: Mapping[int, float],
    metric: str = "",
    *,
    lower_bound: bool = False,
    pairs: bool = True,
) -> Measured:
    values = list(rounds.values())
    middle = statistics.median(values)
    least, most = min(values), max(values)
    best = None
    if metric in TAKEN:
        best = confirmed_most(values)
    elif metric in ADDED:
        best = confirmed_least(values)
    return Measured(unit, rounds, middle, least, most, lower_bound, pairs=pairs, best=best)


def words(quantity: Quantity) -> str:
    """Return which quantity it is, as people read it."""
    if quantity.part is not None:
        row = ", ".join(f"{k} {v}" for k, v in quantity.part.row.items())
        text = ", ".join(filter(None, (quantity.part.what, quantity.part.figure, row)))
    else:
        size = "" if quantity.size is None else str(quantity.size)
        device = " of ".join(filter(None, (quantity.side, quantity.device)))
        parts = [device, quantity.setup, f"{size} B" if size.isdigit() else size]
        parts += [_load(quantity)]
        parts += [f"{quantity.cpu_speed:.0%} of the core" if quantity.cpu_speed else ""]
        text = ", ".join(filter(None, parts))
    text = " + ".join((text, *map(words, quantity.plus)))
    return text if quantity.per is None else f"({text} per {words(quantity.per)})"


def _load(quantity: Quantity) -> str:
    if quantity.pps is not None:
        return f"{quantity.pps / 1e6:g} Mpps"
    if quantity.load is None or quantity.load == "idle":
        return quantity.load or ""
    return f"{quantity.load:.0%} of PDR"


def measure(run: Run, scenario: str, which: str, quantity: Quantity) -> Measured:
    """Return a quantity; which: of several runs, whose. Raises NotMeasuredError."""
    result = _one(run, scenario, which, quantity)
    for more in quantity.plus:
        result = _sum(result, _one(run, scenario, which, more))
    if quantity.per is not None:
        result = _quotient(result, _one(run, scenario, which, quantity.per))
    return result


def _one(run: Run, scenario: str, which: str, quantity: Quantity) -> Measured:
    if quantity.part is not None:
        of = _simulated if quantity.metric == "simulated" else _in_memory
        return of(run, scenario, quantity.part)
    if quantity.metric in APPLICATIONS:
        return _served(run, scenario, which, quantity)
    row = _row(run, scenario, which, quantity)
    if quantity.side is not None and any(IN_TURN in note for note in row.notes):
        why = "it had the core in turn with others, whose time its counter has, too"
        raise NotMeasuredError(f"{words(quantity)}: {why}")
    every, bound = _values(row, quantity)
    values = {number: value for number, value in every.items() if value is not None}
    if not values:
        lost = quantity.metric == "loss-period"
        why = "no packet was lost" if lost else f"no {quantity.metric} was measured"
        raise NotMeasuredError(f"{words(quantity)}: {why}")
    without = quantity.side is not None or not row.saturation_cycles
    unpaired = (*UNPAIRED, "cycles") if without else UNPAIRED
    pairs = quantity.metric not in unpaired
    unit = UNITS[quantity.metric]
    return _of(unit, values, quantity.metric, lower_bound=bound, pairs=pairs)


def _sum(a: Measured, b: Measured) -> Measured:
    common = a.rounds.keys() & b.rounds.keys() if a.pairs and b.pairs else set()
    rounds = {number: a.rounds[number] + b.rounds[number] for number in sorted(common)}
    return Measured(
        a.unit, rounds, a.median + b.median, a.least + b.least, a.most + b.most,
        a.lower_bound or b.lower_bound, a.upper_bound or b.upper_bound, a.pairs,
        a.best + b.best if a.best and b.best else None,
    )  # fmt: skip


def _quotient(a: Measured, b: Measured) -> Measured:
    if b.least <= 0:
        raise NotMeasuredError("a quotient: what it is divided by is 0")
    common = a.rounds.keys() & b.rounds.keys() if a.pairs and b.pairs else set()
    rounds = {number: a.rounds[number] / b.rounds[number] for number in sorted(common)}
    at_least, at_most = a.lower_bound or b.upper_bound, a.upper_bound or b.lower_bound
    best = a.best / b.best if a.best and b.best else None
    if rounds and not (at_least or at_most):
        return replace(_of("x", rounds), best=best)
    low, high = a.least / b.most, a.most / b.least
    return Measured("x", rounds, a.median / b.median, low, high, at_least, at_most, a.pairs, best)


def _row(run: Run, scenario: str, which: str, quantity: Quantity) -> Row:
    mine = [row for row in run.of(scenario) if row.role == "device" and row.run == which]
    wanted = {
        "device": quantity.device,
        "setup": quantity.setup,
        "size": None if quantity.size is None else str(quantity.size),
        "cpu_speed": quantity.cpu_speed or 1.0,
    }
    for name, value in wanted.items():
        if value is not None:
            mine = [row for row in mine if getattr(row, name) == value]
        if not mine:
            lacks = f"{name.replace('_', ' ')} {value}"
            raise NotMeasuredError(_why(run, scenario, quantity, lacks))
    if len(mine) > 1:
        raise NotMeasuredError(f"{words(quantity)}: {len(mine)} rows; the claim must name one")
    emulated = next((note for note in mine[0].notes if EMULATED in note), "")
    if emulated:
        raise NotMeasuredError(f"{mine[0].device}: {emulated}")
    if mine[0].failed and not mine[0].trials:
        raise NotMeasuredError(f"{words(quantity)}: {mine[0].failed[0]}")
    return mine[0]


def _why(run: Run, scenario: str, quantity: Quantity, lacks: str) -> str:
    """Return why there is no row: what the run says that it could not do, or that it did not."""
    for one in run.cannot:
        same = one.scenario == scenario and one.setup in ("", quantity.setup)
        if same and one.device in ("", quantity.device):
            return f"{one.device or 'all devices'}: {one.why}"
    return f"{words(quantity)}: {lacks} was not measured"


def _values(row: Row, quantity: Quantity) -> tuple[Mapping[int, float | None], bool]:
    """Return a row's values by round, and whether they are lower bounds."""
    metric = quantity.metric
    if metric == "rate":
        return {i: rate / 1e6 for i, rate in row.rounds.items()}, row.lower_bound
    if metric == "line-gbps":
        frame = row.frame_bytes or 0
        return {i: line_gbps(rate, frame) for i, rate in row.rounds.items()}, row.lower_bound
    if quantity.side is not None:
        return dict(enumerate(row.part_cycles.get(quantity.side, ()))), False
    if metric == "cycles":
        return _medians(row.saturation_cycles) or dict(enumerate(row.node_cycles)), False
    if metric == "function-cycles":
        return dict(enumerate(row.function_cycles)), False
    if metric in ("saturation", "per-cpu-second"):
        of = row.saturation_pps if metric == "saturation" else row.per_cpu_s
        return {i: value / 1e6 for i, value in _medians(of).items()}, False
    if metric in ("cpu", "core-busy"):
        shares = row.cpu_shares if metric == "cpu" else row.core_shares
        return {i: 100 * share for i, share in enumerate(shares)}, False
    delay = _delay(row, quantity)
    return {i: one.value(metric) for i, one in delay.rounds.items()}, False


def _medians(rounds: Mapping[int, Iterable[float]]) -> dict[int, float]:
    return {i: median(list(values)) or 0.0 for i, values in rounds.items()}


def _delay(row: Row, quantity: Quantity) -> Delay:
    for delay in row.delays:
        if quantity.pps is not None:
            if abs(delay.rate_pps / quantity.pps - 1) < 0.001:
                return delay
        elif delay.load == _load(quantity):
            return delay
    raise NotMeasuredError(f"{words(quantity)}: this load was not measured")


def _served(run: Run, scenario: str, which: str, quantity: Quantity) -> Measured:
    for row in run.served(scenario):
        same = (row.application, row.setup, row.device, row.run) == (
            quantity.metric, quantity.setup, quantity.device, which
        )  # fmt: skip
        if same and (quantity.size is None or row.frame_bytes == quantity.size):
            emulated = next((note for note in row.notes if EMULATED in note), "")
            if emulated:
                raise NotMeasuredError(f"{row.device}: {emulated}")
            rounds = {i: f[row.figure] for i, f in row.rounds.items() if row.figure in f}
            if rounds:
                unit = UNITS[quantity.metric]
                return _of(unit, rounds, quantity.metric, lower_bound=row.hosts_full)
            raise NotMeasuredError(f"{words(quantity)}: {'; '.join(row.failed[:1])}")
    raise NotMeasuredError(_why(run, scenario, quantity, quantity.metric))


def _in_memory(run: Run, scenario: str, part: ProgramFigure) -> Measured:
    for one in run.memory:
        if (one.scenario, one.what) != (scenario, part.what):
            continue
        for row in one.rows():
            value = row.get(part.figure)
            same = all(row.get(key) == wanted for key, wanted in part.row.items())
            if same and isinstance(value, dict):
                middle, least, most = (float(value[name]) for name in ("median", "min", "max"))
                return Measured(UNITS["in-memory"], {}, middle, least, most)
    raise NotMeasuredError(f"{part.what}, {part.figure}: not measured in memory")


def _simulated(run: Run, scenario: str, part: ProgramFigure) -> Measured:
    """Return a figure of a simulation; its rounds are the seeds."""
    for one in run.simulated:
        if (one.scenario, one.what) != (scenario, part.what):
            continue
        for row in one.rows():
            same = all(row.get(key) == wanted for key, wanted in part.row.items())
            if same and part.figure in SIMULATED_UNITS:
                rounds = dict(enumerate(map(float, row[part.figure])))
                return _of(SIMULATED_UNITS[part.figure], rounds)
    raise NotMeasuredError(f"{part.what}, {part.figure}: not simulated")
