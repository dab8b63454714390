# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which way to run a chain carries its load with the fewest cores, by measured rates alone.

Ways are what was measured: rules of the switch (ovs-dpdk), our node inline, as a pipeline or as
processes, a container's kernel (linux), a VM, other dataplanes. A chain that was not measured whole
is bounded by its functions measured alone: their times per packet, each with its ports, add up to
more than the chain takes. Where several rows measured the same, the lowest counts: advice must hold
in each. Without a measurement of a function there is no advice.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from convoy.advise.bound import Bound, bound
from convoy.advise.evidence import NOT_A_HOME, SERVERS, Rate, Way, evidence
from convoy.advise.traffic import Traffic
from convoy.report.row import Row

HEADROOM = 0.8  # of a rate that was found, that a core is loaded with


@dataclass(frozen=True)
class Option:
    """A way to run a chain."""

    way: Way
    capacity_pps: float  # of one core
    whole: bool  # the chain was measured as it is; else bounded by its parts
    cores: int
    measured_cores: bool  # so many cores were measured; else at least so many, by those that were
    used: tuple[Rate, ...]  # on one core
    several: tuple[Rate, ...] = ()  # the chain on more cores, the fewest first

    def clock_share(self, load_pps: float) -> float:
        """Return the share of this machine's clock at which one core would still do, or more."""
        return load_pps / (self.capacity_pps * HEADROOM)


@dataclass(frozen=True)
class Advice:
    """What is advised for one chain; or why nothing is."""

    chain: str
    functions: tuple[str, ...]
    traffic: Traffic
    options: tuple[Option, ...]  # the best first
    passed_over: tuple[str, ...]  # measured, and why it is no option
    refusal: str  # empty: there is advice
    each: Mapping[str, tuple[tuple[Way, Rate], ...]]  # type -> measured alone, fastest first
    bounds: Mapping[str, Bound] = field(default_factory=dict)  # type -> what its cycles grow with
    servers: tuple[Rate, ...] = ()  # the chain with its functions on servers of their own


def _lowest(rates: Sequence[Rate], functions: tuple[str, ...], cores: int = 1) -> Rate | None:
    """Return the lowest of the rates of these functions on so many cores."""
    mine = [rate for rate in rates if (rate.functions, rate.cores) == (functions, cores)]
    return min(mine, key=lambda rate: rate.rate_pps, default=None)


def _cores(load_pps: float, one_pps: float, several: Sequence[Rate]) -> tuple[int, bool]:
    """Return how many cores a load needs, and whether so many were measured."""
    measured = [(1, one_pps), *((rate.cores, rate.rate_pps) for rate in several)]
    for cores, rate_pps in measured:
        if load_pps <= rate_pps * HEADROOM:
            return cores, True
    # No core of many does more than the best of these did.
    each = max(rate_pps / cores for cores, rate_pps in measured)
    least = math.ceil(load_pps / (each * HEADROOM))
    return max(least, measured[-1][0] + 1), False


def _option(way: Way, path: tuple[str, ...], mine: Sequence[Rate], load: Traffic) -> Option | None:
    whole = _lowest(mine, path)
    if whole is not None:
        used: tuple[Rate, ...] = (whole,)
    elif not path:
        return None
    else:
        parts = [_lowest(mine, (function,)) for function in path]
        if any(part is None for part in parts):
            return None
        used = tuple(part for part in parts if part is not None)
    capacity = 1 / sum(1 / rate.rate_pps for rate in used)
    many = sorted({rate.cores for rate in mine if rate.functions == path and rate.cores > 1})
    several = tuple(r for cores in many if (r := _lowest(mine, path, cores)) is not None)
    cores, measured = _cores(load.rate_pps, capacity, several)
    return Option(way, capacity, whole is not None, cores, measured, used, several)


def _refusal(
    path: tuple[str, ...], missing: Sequence[str], traffic: Traffic, rows: Sequence[Row]
) -> str:
    """Return what was not measured, and what was instead."""
    load = f"{traffic.size} in {traffic.arrival}" if traffic.convoys else traffic.size
    what = f"{', '.join(missing)} at {load}" if missing else " → ".join(path) or "a wire"
    known = [row for row in rows if row.rate_pps and row.device not in NOT_A_HOME]
    here = {row.path for row in known if row.size == traffic.size and row.conditions.plain}
    if here and not traffic.convoys:
        return (
            f"nothing was measured for {what}; at that size there are {', '.join(sorted(here))}. "
            "Measure it (convoy bench run)"
        )
    if traffic.convoys:
        counts = sorted({row.conditions.convoys for row in known if row.conditions.aggregates})
        there = f"convoys of {', '.join(map(str, counts))}" if counts else "no convoys"
        return (
            f"nothing was measured for {what}; with other functions or sizes there are {there}. "
            "Measure it (convoy bench run), or ask for plain packets"
        )
    # By number, names last.
    sizes = sorted(
        {row.size for row in known if row.conditions.plain},
        key=lambda size: (not size.isdigit(), len(size), size),
    )
    return (
        f"nothing was measured for {what}; measured sizes: {', '.join(sizes) or 'none'}. "
        "Measure it (convoy bench run), or ask for a size that was"
    )


def _alone(result: Mapping[Way, Sequence[Rate]], function: str) -> tuple[tuple[Way, Rate], ...]:
    """Return a function's rates on one core, the fastest way first."""
    each = [(way, rate) for way, mine in result.items() if (rate := _lowest(mine, (function,)))]
    return tuple(sorted(each, key=lambda one: -one[1].rate_pps))


def advise(chain: str, path: tuple[str, ...], traffic: Traffic, rows: Sequence[Row]) -> Advice:
    """Return advice for a chain of functions (types, in order) under a load."""
    result = evidence(rows, traffic)
    servers = tuple(
        rate for way, mine in result.items() if SERVERS in way.options
        for rate in mine if rate.functions == path
    )  # fmt: skip
    each = {function: _alone(result, function) for function in dict.fromkeys(path)}
    options, passed_over = [], []
    for way, mine in result.items():
        option = _option(way, path, mine, traffic)
        if option is None:
            lacks = [f for f in path if _lowest(mine, (f,)) is None]
            what = ", ".join(dict.fromkeys(lacks)) or "forwarding"
            passed_over.append(f"{way}: {what} was not measured on one core of it")
        elif any(rate.emulated for rate in option.used):
            passed_over.append(f"{way}: {option.used[0].emulated}")
        else:
            options.append(option)
    refusal = ""
    if not options:
        refusal = _refusal(path, [function for function, some in each.items() if not some],
                           traffic, rows)  # fmt: skip
    options.sort(key=lambda option: (option.cores, -option.capacity_pps))
    bounds = {function: bound(function, rows) for function in each}
    return Advice(
        chain, path, traffic, tuple(options), tuple(passed_over), refusal, each, bounds, servers
    )
