# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which deployment carries a chain's load with the fewest cores, by measured rates alone.

Options are what was measured: rules of the switch (ovs-dpdk), our node inline, a container's kernel
(linux), a VM, other dataplanes. A chain that was not measured whole is bounded by its functions
measured alone: their times per packet, each with its ports, add up to more than the chain takes.
A function that nobody measured has no number, and no advice is given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convoy.advise.traffic import Traffic
from convoy.report.row import Row

HEADROOM = 0.8  # of a rate that was found, that a core is loaded with
IO_BOUND = frozenset({"firewall", "router", "l2fwd"})  # as the papers class them
KINDS = {
    "ovs-dpdk": "rules of the switch",
    "convoy": "convoy, inline",
    "linux": "a container (kernel)",
    "vm": "a virtual machine",
}
NOT_A_HOME = frozenset({"dummy", "testpmd"})  # a curve; and what forwards and nothing else


@dataclass(frozen=True)
class Number:
    """A rate that advice rests on."""

    arm: str
    setup: str
    functions: tuple[str, ...]
    size: str
    rate_pps: float
    emulated: str  # a remark that makes it no candidate; empty: none


@dataclass(frozen=True)
class Option:
    """A way to run a chain."""

    arm: str
    what: str
    capacity_pps: float  # of one core
    whole: bool  # the chain was measured as it is; else bounded by its parts
    cores: int
    used: tuple[Number, ...]

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
    each: Mapping[str, tuple[Number, ...]]  # function type -> where it was measured, fastest first


def _numbers(rows: Sequence[Row], size: str) -> list[Number]:
    found = []
    for row in rows:
        known = row.rate_pps is not None and row.device not in NOT_A_HOME
        if not known or not row.contends or row.size != size:
            continue
        emulated = next((note for note in row.notes if "not comparable" in note), "")
        what = (row.name, row.setup, row.functions, row.size)
        found.append(Number(*what, row.rate_pps or 0.0, emulated))
    return found


def _option(
    arm: str, path: tuple[str, ...], mine: Sequence[Number], load: Traffic
) -> Option | None:
    whole = [number for number in mine if number.functions == path]
    if whole:
        used: tuple[Number, ...] = (max(whole, key=lambda number: number.rate_pps),)
        capacity = used[0].rate_pps
    elif not path:
        return None
    else:
        parts = []
        for function in path:
            alone = [number for number in mine if number.functions == (function,)]
            if not alone:
                return None
            parts.append(max(alone, key=lambda number: number.rate_pps))
        used = tuple(parts)
        capacity = 1 / sum(1 / number.rate_pps for number in used)
    cores = max(1, math.ceil(load.rate_pps / (capacity * HEADROOM)))
    return Option(arm, KINDS.get(arm, arm), capacity, bool(whole), cores, used)


def _refusal(
    path: tuple[str, ...], missing: Sequence[str], traffic: Traffic, rows: Sequence[Row]
) -> str:
    """Return what was not measured, and what was instead."""
    what = f"{', '.join(missing)} at {traffic.size}" if missing else " → ".join(path) or "a wire"
    known = [row for row in rows if row.rate_pps]
    here = {row.path for row in known if row.size == traffic.size}
    if here:
        return (
            f"nothing was measured for {what}; at that size there are {', '.join(sorted(here))}. "
            "Measure it (convoy bench run)"
        )
    # By number, names last.
    sizes = sorted(
        {row.size for row in known}, key=lambda size: (not size.isdigit(), len(size), size)
    )
    return (
        f"nothing was measured for {what}; measured sizes: {', '.join(sizes) or 'none'}. "
        "Measure it (convoy bench run), or ask for a size that was"
    )


def advise(chain: str, path: tuple[str, ...], traffic: Traffic, rows: Sequence[Row]) -> Advice:
    """Return advice for a chain of functions (types, in order) under a load."""
    numbers = _numbers(rows, traffic.size)
    each = {
        function: tuple(
            sorted(
                (number for number in numbers if number.functions == (function,)),
                key=lambda number: -number.rate_pps,
            )
        )
        for function in dict.fromkeys(path)
    }
    options, passed_over = [], []
    for arm in dict.fromkeys(number.arm for number in numbers):
        mine = [number for number in numbers if number.arm == arm]
        option = _option(arm, path, mine, traffic)
        if option is None:
            lacks = [f for f in path if not any(n.functions == (f,) for n in mine)]
            passed_over.append(f"{arm}: {', '.join(dict.fromkeys(lacks))} was not measured on it")
        elif any(number.emulated for number in option.used):
            passed_over.append(f"{arm}: {option.used[0].emulated}")
        else:
            options.append(option)
    refusal = ""
    if not options:
        refusal = _refusal(path, [function for function, some in each.items() if not some],
                           traffic, rows)  # fmt: skip
    options.sort(key=lambda option: (option.cores, -option.capacity_pps))
    return Advice(chain, path, traffic, tuple(options), tuple(passed_over), refusal, each)
