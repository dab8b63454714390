# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ways to run a chain that nobody has measured, as the fitted models expect them.

Searched are, for each device: all functions in one process; a process for each, by each kind of
link that was measured; and servers with the chain cut between them, packets plain or in convoys on
the way. A way is offered only where the rows determine each of its costs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from convoy.advise.choose import HEADROOM
from convoy.advise.fit import Missing, Prediction
from convoy.advise.model import Latency, Model
from convoy.advise.parts import AGGREGATED, CONVOYS, PLAIN, Chain, Part, names
from convoy.advise.traffic import Traffic

SERVERS_MAX = 3
FCS, MTU, ETHER, OUTER, LENGTH = 4, 1500, 14, 32, 2  # of a convoy frame over IPv4


@dataclass(frozen=True)
class Node:
    """A server with some of the chain's functions."""

    chain: Chain
    prediction: Prediction
    rate_pps: float  # of one core
    low_pps: float
    high_pps: float
    cores: int


@dataclass(frozen=True)
class Planned:
    """A way to run a chain, as it is expected to do."""

    model: Model
    nodes: tuple[Node, ...]
    load_pps: float

    @property
    def cores(self) -> int:
        """Return the cores of all servers."""
        return sum(node.cores for node in self.nodes)

    @property
    def scaled(self) -> bool:
        """Return whether a server needs more cores than were measured: more than one."""
        return any(node.cores > 1 for node in self.nodes)

    @property
    def narrowest(self) -> Node:
        """Return the server that limits the chain."""
        return min(self.nodes, key=lambda node: node.rate_pps * node.cores)

    @property
    def error(self) -> float:
        """Return half of the interval, a share, of the server that limits it."""
        return self.narrowest.prediction.error

    def latency(self) -> list[tuple[str, float, float]]:
        """Return loads with the median latency, in ns, and half of its interval, a share."""
        result = []
        for line in self.model.latency:
            each = [_latency(line, node) for node in self.nodes]
            result.append((line.load, sum(each), line.error))
        return result

    def __str__(self) -> str:
        """Return the way as people read it."""
        if len(self.nodes) == 1:
            link = self.nodes[0].chain.link
            if self.model.kind.device != "convoy":
                return str(self.model.kind)
            how = f"a process for each function, joined by {link}" if link else "one process"
            return f"{self.model.kind}, {how}"
        between = "in full convoys" if self.nodes[-1].chain.form == CONVOYS else "one by one"
        cut = " | ".join(names(node.chain.parts) for node in self.nodes)
        return f"{self.model.kind}, {len(self.nodes)} servers ({cut}), packets {between} between"


def _latency(line: Latency, node: Node) -> float:
    return line.at(node.prediction.cycles, node.chain.crossings)


def fits(size: int) -> int:
    """Return how many packets of a size (with FCS) share a convoy frame of MTU 1500."""
    return max(1, (MTU - OUTER) // (size - FCS + LENGTH))


def _node(model: Model, chain: Chain, traffic: Traffic) -> Node | Missing:
    size = int(traffic.size)
    if chain.form == CONVOYS:
        many = model.fit.packets(size, chain)
        if many is None or not many[0] <= chain.packets <= many[1]:
            there = f"measured from {many[0]} to {many[1]}" if many else "none were measured"
            return Missing(f"convoys of {chain.packets} at {size} B: {there}")
    result = model.fit.predict(chain, size)
    if isinstance(result, Missing):
        return result
    rate = model.rate_pps(chain, result.cycles)
    cores = max(1, math.ceil(traffic.rate_pps / (rate * HEADROOM)))
    if chain.link and cores > 1:
        return Missing(f"{cores} cores; processes were measured on one")
    low, high = rate / (1 + result.error), rate * (1 + result.error)
    return Node(chain, result, rate, low, high, cores)


def _links(model: Model) -> list[str]:
    return sorted({row.chain.link for row in model.fit.rows if row.chain.link})


def _cuts(parts: Sequence[Part]) -> Iterator[tuple[tuple[Part, ...], ...]]:
    for servers in range(2, min(len(parts), SERVERS_MAX) + 1):
        for places in combinations(range(1, len(parts)), servers - 1):
            at = (0, *places, len(parts))
            yield tuple(tuple(parts[a:b]) for a, b in pairwise(at))


def _ways(model: Model, parts: tuple[Part, ...], traffic: Traffic, flows: int | None
          ) -> Iterator[tuple[Chain, ...]]:  # fmt: skip
    form, packets = (CONVOYS, traffic.convoys) if traffic.convoys > 1 else (PLAIN, 1)
    yield (Chain(parts, form, packets, "", flows),)
    if len(parts) > 1:
        for link in _links(model):
            yield (Chain(parts, form, packets, link, flows),)
    most = model.fit.most_packets(int(traffic.size))
    full = min(fits(int(traffic.size)), most)  # what was measured, if frames were not full
    for cut in _cuts(parts):
        yield tuple(Chain(some, form, packets, "", flows) for some in cut)
        if form == PLAIN and full > 1:
            first = Chain(cut[0], AGGREGATED, 1, "", flows)
            yield (first, *(Chain(some, CONVOYS, full, "", flows) for some in cut[1:]))


def plans(
    models: Sequence[Model], parts: tuple[Part, ...], traffic: Traffic, flows: int | None
) -> tuple[tuple[Planned, ...], tuple[str, ...]]:
    """Return the ways that are expected to carry a load, the best first, and why others are not."""
    if not traffic.size.isdigit():
        return (), (f"{traffic.size}: predictions are of frames of one size",)
    result, why = [], []
    for model in models:
        for way in _ways(model, parts, traffic, flows):
            nodes = []
            for chain in way:
                node = _node(model, chain, traffic)
                if isinstance(node, Missing):
                    if len(way) == 1:
                        how = f", {chain.link}" if chain.link else ""
                        why.append(f"{model.kind}{how}: {node.why}")
                    break
                nodes.append(node)
            else:
                result.append(Planned(model, tuple(nodes), traffic.rate_pps))
    result.sort(key=_order)
    return tuple(result), tuple(why)


def _order(one: Planned) -> tuple[int, int, float]:
    # Of as many cores: fewer servers, then the one whose cores are the least loaded.
    narrowest = one.narrowest
    return one.cores, len(one.nodes), -narrowest.rate_pps * narrowest.cores
