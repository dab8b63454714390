# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a packet's cycles are made of: the unknowns of the cost model, and how often each counts.

    cycles = ports + [its path] + its functions + [flows' look-ups] + crossings

* Ports, by the form that packets come and leave in. In convoys of n: `packet + frame / n`.
* A path is paid once in each process that has a function: views, the first look at a packet.
* A function is paid each time it stands in the chain, by what it keeps (routes, rules).
* Functions that remember flows share one look-up where they stand behind each other.
* A crossing is paid from each process to the next, by the kind of link. Those behind the first cost
  more: the buffers of more processes share the cache.
* Where each function has a core of its own, a core pays its path, its function, and its ends: the
  port and the link to the next one (the first core), two links, or the link and a port (the last).
  They cost what they do by the NUMA nodes that the cores are of.

Cycles of functions in convoys are unknowns of their own: their packets lie beside each other.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from convoy.report.row import Row

Form = str
PLAIN, AGGREGATED, CONVOYS = "plain", "aggregated here", "convoys"
FLOW = frozenset({"stateful", "nat", "balancer", "policer"})  # share a look-up (docs/flows.md)
KEEPS = frozenset({"firewall", "router", "classifier", "ids", "balancer"})  # entries count
LOOK_UP = "flow look-up"
# Functions that compare what they keep one by one, and up to how many: CV_FIREWALL_SCAN_MAX of
# nf/firewall/scan.h, and few more, as a tree of that size costs as much.
SCANS = {"firewall": 100}
DEFAULT_LINK = "vhost-user"


@dataclass(frozen=True)
class Part:
    """A function of a chain, and how much it keeps."""

    function: str
    entries: int | None = None  # routes or rules; None: nothing, or not known

    def __str__(self) -> str:
        """Return it as results name it."""
        return self.function


@dataclass(frozen=True)
class OwnCore:
    """Which core of a chain whose functions have one each."""

    link: str  # between them
    placement: str  # same-node, other-node: of the cores, as scenarios name it
    end: str  # first, middle, last

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.end} core of several, {self.link}, {self.placement}"


@dataclass(frozen=True)
class Chain:
    """A chain as a row measured it, or as one is to be predicted."""

    parts: tuple[Part, ...]
    form: Form = PLAIN
    packets: float = 1  # in a frame that comes, on the mean
    link: str = ""  # between a process for each function; empty: one process
    flows: int | None = None
    own: OwnCore | None = None  # it is a core of a longer chain

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the functions' names."""
        return tuple(part.function for part in self.parts)

    @property
    def crossings(self) -> int:
        """Return how often a packet goes from a process to the next."""
        return len(self.parts) - 1 if self.link else 0

    def __str__(self) -> str:
        """Return it as people read it."""
        path = " → ".join(self.functions) or "no function"
        form = _form(self)
        own = f", {self.own}" if self.own else ""
        return f"{path}, {form}" + (f", a process each, {self.link}" if self.link else own)


@dataclass(frozen=True)
class Unknown:
    """One cost, in cycles. level: how much it keeps; None: that does not count."""

    name: str
    level: int | None = None

    def __str__(self) -> str:
        """Return it as people read it."""
        if self.level is None:
            return self.name
        return f"{self.name} ({self.level:,} {'flows' if LOOK_UP in self.name else 'entries'})"


def _form(chain: Chain) -> str:
    return f"convoys of {chain.packets:g}" if chain.form == CONVOYS else chain.form


def unknowns(chain: Chain) -> dict[Unknown, float]:
    """Return the costs of a chain, each with how often a packet pays it."""
    result: dict[Unknown, float] = {}

    def add(name: str, times: float = 1.0, level: int | None = None) -> None:
        key = Unknown(name, level)
        result[key] = result.get(key, 0.0) + times

    aggregated = chain.form == CONVOYS
    where = ", in convoys" if aggregated else ""
    if chain.own:
        add(f"ends of the {chain.own}, {_form(chain)}")
    elif aggregated:
        add("ports, each packet in convoys")
        add("ports, each convoy", 1 / chain.packets)
    else:
        add(f"ports, {chain.form}")
    if chain.parts:
        add(f"path{where}", len(chain.parts) if chain.link else 1)
    for part in chain.parts:
        level = part.entries if part.function in KEEPS else None
        add(f"{part.function}{where}", level=level)
    groups = [chain.parts] if not chain.link else [(part,) for part in chain.parts]
    for group in groups:
        for shares, _ in groupby(group, key=lambda part: part.function in FLOW):
            if shares:
                add(f"{LOOK_UP}{where}", level=chain.flows)
    if chain.crossings:
        add(f"crossing {chain.link}, {_form(chain)}")
        if chain.crossings > 1:
            add(f"further crossing {chain.link}, {_form(chain)}", chain.crossings - 1)
    return result


def between(
    levels: Iterable[int], wanted: int | None, scans: int = 0
) -> list[tuple[int, float]] | None:
    """Return levels that were measured, with weights, for one that was not; None: beyond them.

    Linear between two where so many are compared one by one (scans), else in their logarithm. Fewer
    than the fewest cost as much as these; where it is not known how many, the most count.
    """
    known = sorted(levels)
    if not known:
        return None
    if wanted is None:
        return [(known[-1], 1.0)]
    if wanted <= known[0]:
        return [(known[0], 1.0)]
    for low, high in pairwise(known):
        if wanted <= high:
            if high <= scans:
                weight = (wanted - low) / (high - low)
            else:
                weight = math.log(wanted / low) / math.log(high / low)
            return [(low, 1 - weight), (high, weight)] if weight < 1 else [(high, 1.0)]
    return None


def chain_of(row: Row) -> Chain | None:
    """Return what a row measured; None: nothing that the model knows."""
    under = row.conditions
    if under.aggregates:
        form, packets = (CONVOYS, under.convoys) if under.convoys > 1 else (AGGREGATED, 1)
    elif under.convoys <= 1:
        form, packets = PLAIN, 1
    else:
        return None
    link = ""
    if under.deployment == "process" and len(row.functions) > 1:
        link = link_of(row)
    elif under.deployment == "pipeline":
        return None
    parts = tuple(Part(name, under.entries if name in KEEPS else None) for name in row.functions)
    return Chain(parts, form, packets, link, under.flows)


def link_of(row: Row) -> str:
    """Return what joins the processes of a row."""
    return dict(row.conditions.options).get("link", DEFAULT_LINK)


def on_own_cores(chain: Chain, link: str, placement: str) -> tuple[Chain, ...]:
    """Return what each core does where each function of a chain has one."""
    last = len(chain.parts) - 1
    ends = ["first", *["middle"] * (last - 1), "last"]
    return tuple(
        replace(chain, parts=(part,), link="", own=OwnCore(link, placement, end))
        for part, end in zip(chain.parts, ends, strict=True)
    )


def levels_of(chains: Iterable[Mapping[Unknown, float]]) -> dict[str, set[int]]:
    """Return which levels of each cost were measured."""
    result: dict[str, set[int]] = {}
    for chain in chains:
        for unknown in chain:
            if unknown.level is not None:
                result.setdefault(unknown.name, set()).add(unknown.level)
    return result


def with_levels(
    wanted: Mapping[Unknown, float], levels: Mapping[str, set[int]]
) -> tuple[dict[Unknown, float], list[str]]:
    """Return a chain's costs in levels that were measured, and what lies beyond these."""
    result: dict[Unknown, float] = {}
    beyond: list[str] = []
    for unknown, times in wanted.items():
        known = levels.get(unknown.name)
        if known is None:
            result[unknown] = result.get(unknown, 0.0) + times
            continue
        weights = between(known, unknown.level, SCANS.get(unknown.name.split(",")[0], 0))
        if weights is None:
            beyond.append(f"{unknown}, measured up to {max(known):,}")
            continue
        for level, weight in weights:
            key = Unknown(unknown.name, level)
            result[key] = result.get(key, 0.0) + times * weight
    return result, beyond


def names(parts: Sequence[Part]) -> str:
    """Return functions as reports write them."""
    return " → ".join(part.function for part in parts) or "no function"
