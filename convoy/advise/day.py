# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Cores by load over a day: a profile of rates, and what each of its hours asks for."""

import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from convoy.advise.fit import Missing
from convoy.advise.predict import Planned, plan
from convoy.advise.sleep import Sleep
from convoy.base.problem import shown
from convoy.base.yaml_text import read
from convoy.errors import InputError

DAY_MIN = 24 * 60
MPPS_MAX = 1e6
BYTES_MAX = 1 << 20
NOT_MEASURED = Sleep()
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_EXAMPLE = "write a time and Mpps on each line, as 06:30,2.5"


@dataclass(frozen=True)
class Period:
    """From a time on, so much."""

    begin_min: int
    hours: float
    rate_pps: float

    @property
    def begin(self) -> str:
        """Return the time as people write it."""
        return f"{self.begin_min // 60:02}:{self.begin_min % 60:02}"


@dataclass(frozen=True)
class Step:
    """What a period asks of a way to run a chain."""

    period: Period
    cores: int
    load: float  # share of what these cores carry
    asleep: float  # share of these cores' time that workers with `idle: sleep` take


@dataclass(frozen=True)
class Day:
    """A way to run a chain, over a day."""

    way: Planned
    steps: tuple[Step, ...]
    sleeps: bool  # whether what workers take that sleep was measured; else it is the least

    @property
    def most(self) -> int:
        """Return the cores at the peak."""
        return max(step.cores for step in self.steps)

    @property
    def peak_hours(self) -> float:
        """Return the core-hours of a day with as many as the peak needs."""
        return 24.0 * self.most

    @property
    def core_hours(self) -> float:
        """Return the core-hours of a day with as many as each period needs."""
        return sum(step.cores * step.period.hours for step in self.steps)

    @property
    def changes(self) -> int:
        """Return how often a day the number changes."""
        cores = [step.cores for step in self.steps]
        return sum(a != b for a, b in pairwise([*cores, cores[0]]))

    @property
    def sleeping_hours(self) -> float:
        """Return the core-hours of workers that sleep without packets."""
        return sum(step.cores * step.asleep * step.period.hours for step in self.steps)


def _line(path: Path, number: int, value: str, what: str) -> InputError:
    return InputError(f"{path}:{number}: {shown(value)}: {what}; {_EXAMPLE}")


def _periods(path: Path, rows: Iterable[tuple[int, str, str]]) -> tuple[Period, ...]:
    begins: list[tuple[int, float]] = []
    for number, time, rate in rows:
        match = _TIME.fullmatch(time)
        if match is None:
            raise _line(path, number, time, "no time of a day")
        begin = int(match[1]) * 60 + int(match[2])
        try:
            mpps = float(rate)
        except ValueError:
            raise _line(path, number, rate, "no rate") from None
        if not 0 <= mpps <= MPPS_MAX:
            raise _line(path, number, rate, f"must be 0 to {MPPS_MAX:g} Mpps")
        if begins and begin <= begins[-1][0]:
            raise _line(path, number, time, "not after the time before it")
        if not begins and begin:
            raise _line(path, number, time, "a day begins at 00:00")
        begins.append((begin, mpps * 1e6))
    if not begins:
        raise InputError(f"{path}: has no rates; {_EXAMPLE}")
    if not any(rate for _, rate in begins):
        raise InputError(f"{path}: all rates are 0; {_EXAMPLE}")
    ends = [*(begin for begin, _ in begins[1:]), DAY_MIN]
    return tuple(
        Period(begin, (end - begin) / 60, rate)
        for (begin, rate), end in zip(begins, ends, strict=True)
    )


def _yaml(path: Path) -> tuple[Period, ...]:
    text = read(path, _EXAMPLE)
    if not isinstance(text.data, dict):
        raise InputError(f"{path}:1: must be a mapping of times to Mpps, as 06:30: 2.5")
    return _periods(
        path, ((text.line((time,)), time, str(rate)) for time, rate in text.data.items())
    )


def _csv(path: Path) -> tuple[Period, ...]:
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        content = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise InputError(f"{path}: {why}; {_EXAMPLE}") from None
    if len(data) > BYTES_MAX:
        raise InputError(f"{path}: longer than {BYTES_MAX >> 20} MiB; {_EXAMPLE}")
    rows: list[tuple[int, str, str]] = []
    try:
        reader = csv.reader(io.StringIO(content), strict=True)
        for row in reader:
            cells = [cell.strip() for cell in row]
            number = reader.line_num
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not rows and [cell.lower() for cell in cells] == ["time", "mpps"]:
                continue
            if len(cells) != 2:
                raise _line(path, number, ",".join(row), f"has {len(cells)} values, not 2")
            rows.append((number, cells[0], cells[1]))
    except csv.Error as error:
        raise InputError(f"{path}: {error}; {_EXAMPLE}") from None
    return _periods(path, rows)


def read_day(path: Path) -> tuple[Period, ...]:
    """Read a profile of rates: YAML by its name, else CSV. Raises InputError."""
    return _yaml(path) if path.suffix in (".yaml", ".yml") else _csv(path)


def _day(way: Planned, periods: Iterable[Period], most_hours: float, sleep: Sleep) -> Day | None:
    """Return a way over a day, in each period with what its load makes of it.

    None: of one of them that is not known, or all take more core-hours than most_hours.
    """
    steps: list[Step] = []
    known: dict[float, tuple[int, float, float]] = {}  # by rate
    hours = 0.0
    for period in periods:
        if period.rate_pps not in known:
            one = plan(way.model, way.way, way.size, period.rate_pps)
            if isinstance(one, Missing):
                return None
            # Each of a way's servers gets all packets, divided over its cores.
            each_pps = period.rate_pps * len(one.nodes) / one.cores
            load = one.narrowest.busy
            known[period.rate_pps] = one.cores, load, sleep.share(each_pps, load)
        steps.append(Step(period, *known[period.rate_pps]))
        hours += steps[-1].cores * period.hours
        if hours > most_hours:
            return None
    return Day(way, tuple(steps), sleep.measured)


def over(
    ways: Iterable[Planned], periods: Iterable[Period], sleep: Sleep = NOT_MEASURED
) -> Day | None:
    """Return which of the ways takes the fewest core-hours; None: of none all is known."""
    some = tuple(periods)
    best: Day | None = None

    def order(day: Day) -> tuple[float, int, float]:
        return day.core_hours, day.way.servers, day.way.narrowest.busy

    for way in ways:
        day = _day(way, some, best.core_hours if best else math.inf, sleep)
        if day is not None and (best is None or order(day) < order(best)):
            best = day
    return best
