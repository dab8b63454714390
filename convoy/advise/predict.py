# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ways to run a chain that nobody has measured, as the fitted models expect them.

Searched are, for each device: all functions in one process; a process for each, by each kind of
link that was measured, on one core or on a core each; and servers with the chain cut between them,
packets plain or in convoys on the way, which may wait. A way is offered only where the rows
determine each of its costs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from convoy.advise.fit import Missing, Mix
from convoy.advise.model import Latency, Model
from convoy.advise.parts import AGGREGATED, CONVOYS, PLAIN, Chain, Part, names, on_own_cores
from convoy.advise.servers import Node, Way, full, limit_pps, placed
from convoy.advise.traffic import Traffic

SERVERS_MAX = 3
WAITS_US = (0.0, 5.0, 20.0)
NUMA = {"same-node": "on one NUMA node", "other-node": "in turn on two NUMA nodes"}


@dataclass(frozen=True)
class Planned:
    """A way to run a chain, as it is expected to do."""

    model: Model
    way: Way
    size: int | Mix
    nodes: tuple[Node, ...]
    load_pps: float

    @property
    def cores(self) -> int:
        """Return the cores of all servers."""
        return sum(node.cores for node in self.nodes)

    @property
    def servers(self) -> int:
        """Return the servers: a node is one, or a core of the only one."""
        return 1 if self.nodes[0].chain.own else len(self.nodes)

    @property
    def scaled(self) -> bool:
        """Return whether a server needs more cores than were measured: more than one."""
        return any(node.cores > 1 for node in self.nodes)

    @property
    def narrowest(self) -> Node:
        """Return the server, or the core, that limits the chain."""
        return max(self.nodes, key=lambda node: node.busy)

    @property
    def error(self) -> float:
        """Return half of the interval, a share, of the server that limits it."""
        return self.narrowest.prediction.error

    @property
    def limit_pps(self) -> float:
        """Return what these cores carry, the busiest of them with no time to spare."""
        return limit_pps(self.model, self.way, self.size, self.nodes, self.load_pps)

    def latency(self) -> list[tuple[str, float, float]]:
        """Return loads with the median latency, in ns, and half of its interval, a share.

        Of one size: the median of a mix is no mean of medians.
        """
        result: list[tuple[str, float, float]] = []
        if not isinstance(self.size, int):
            return result
        for load in dict.fromkeys(line.load for line in self.model.latency):
            lines = [line for line in self.model.latency if line.load == load]
            each = [_latency(lines, node) for node in self.nodes]
            known = [one for one in each if one is not None]
            if len(known) == len(each):
                result.append((load, sum(ns for ns, _ in known), max(by for _, by in known)))
        return result

    def __str__(self) -> str:
        """Return the way as people read it."""
        if len(self.nodes) == 1:
            link = self.nodes[0].chain.link
            if self.model.kind.device != "convoy":
                return str(self.model.kind)
            how = f"a process for each function, joined by {link}" if link else "one process"
            return f"{self.model.kind}, {how}"
        if own := self.nodes[0].chain.own:
            where = NUMA.get(own.placement, own.placement)
            return f"{self.model.kind}, a core for each function, joined by {own.link}, {where}"
        between = "one by one" if self.way.chains[-1].form == PLAIN else "in convoys"
        waits = f", waiting {self.way.wait_us:g} us at most" if self.way.wait_us else ""
        cut = " | ".join(names(node.chain.parts) for node in self.nodes)
        servers = f"{len(self.nodes)} servers ({cut})"
        return f"{self.model.kind}, {servers}, packets {between} between{waits}"


def _latency(lines: Iterable[Latency], node: Node) -> tuple[float, float] | None:
    """Return a server's median latency in ns, and half of its interval; None: not known."""
    for line in lines:
        ns = line.of(node.chain, node.prediction.cycles)
        if ns is not None:
            return ns, line.error
    return None


def _links(model: Model) -> list[str]:
    return sorted({row.chain.link for row in model.fit.rows if row.chain.link})


def _placed(model: Model) -> list[tuple[str, str]]:
    """Return the links and placements of functions with a core each that were measured."""
    owns = (row.chain.own for row in model.fit.rows)
    return sorted({(own.link, own.placement) for own in owns if own is not None})


def _cuts(parts: Sequence[Part]) -> Iterator[tuple[tuple[Part, ...], ...]]:
    for servers in range(2, min(len(parts), SERVERS_MAX) + 1):
        for places in combinations(range(1, len(parts)), servers - 1):
            at = (0, *places, len(parts))
            yield tuple(tuple(parts[a:b]) for a, b in pairwise(at))


def _ways(model: Model, parts: tuple[Part, ...], traffic: Traffic, flows: int | None
          ) -> Iterator[Way]:  # fmt: skip
    form, packets = (CONVOYS, traffic.convoys) if traffic.convoys > 1 else (PLAIN, 1)
    yield Way((Chain(parts, form, packets, "", flows),))
    if len(parts) > 1:
        for link in _links(model):
            yield Way((Chain(parts, form, packets, link, flows),))
        for link, placement in _placed(model):
            yield Way(on_own_cores(Chain(parts, form, packets, "", flows), link, placement))
    for cut in _cuts(parts):
        yield Way(tuple(Chain(some, form, packets, "", flows) for some in cut))
        one = traffic.frames
        if form == PLAIN and isinstance(one, int) and full(model.fit, one) > 1:
            yield from (
                Way(tuple(Chain(some, AGGREGATED, 1, "", flows) for some in cut), wait_us)
                for wait_us in WAITS_US
            )


def plan(model: Model, way: Way, size: int | Mix, load_pps: float) -> Planned | Missing:
    """Return a way with the cores that a load asks for."""
    nodes = placed(model, way, size, load_pps)
    return nodes if isinstance(nodes, Missing) else Planned(model, way, size, nodes, load_pps)


def plans(
    models: Sequence[Model], parts: tuple[Part, ...], traffic: Traffic, flows: int | None
) -> tuple[tuple[Planned, ...], tuple[str, ...]]:
    """Return the ways that are expected to carry a load, the best first, and why others are not.

    A way that waits is one of them where no way with the same cut and less of a wait has as few
    cores.
    """
    frames = traffic.frames
    if frames is None:
        return (), (f"{traffic.size}: predictions are of frames of one size, or of imix",)
    result: list[Planned] = []
    why: list[str] = []
    for model in models:
        for way in _ways(model, parts, traffic, flows):
            one = plan(model, way, frames, traffic.rate_pps)
            if isinstance(one, Missing):
                if len(way.chains) == 1:
                    link = way.chains[0].link
                    how = f", {link}" if link else ""
                    why.append(f"{model.kind}{how}: {one.why}")
            elif not way.wait_us or not _spared(one, result):
                result.append(one)
    result.sort(key=_order)
    return tuple(result), tuple(why)


def _spared(one: Planned, others: Sequence[Planned]) -> bool:
    """Return whether one's wait can be spared."""
    return any(
        other.way.chains == one.way.chains and other.model is one.model and other.cores <= one.cores
        for other in others
    )


def _order(one: Planned) -> tuple[int, int, float, float]:
    # Of as many cores: fewer servers, less of a wait, the one whose cores are the least loaded.
    return one.cores, one.servers, one.way.wait_us, one.narrowest.busy
