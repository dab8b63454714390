# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The servers that a chain is cut into, and what a load makes of them: cycles, frames, cores.

Frames between servers are as full as the cores that send them are busy (convoy/advise/frames.py).
What comes in fuller frames costs the next server less. So a server follows from the one before it,
and, as each core of the next server gets frames of its own, from the cores behind it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from convoy.advise.choose import HEADROOM
from convoy.advise.fit import Fit, Missing, Mix, Prediction, mixed
from convoy.advise.frames import SINGLE, Core, Frames, leave
from convoy.advise.model import Model
from convoy.advise.parts import AGGREGATED, CONVOYS, PLAIN, Chain

FCS, MTU, ETHER, OUTER, LENGTH = 4, 1500, 14, 32, 2  # of a convoy frame over IPv4
NEAR = 1e-4  # of a limit: near enough
TRIES = 50


@dataclass(frozen=True)
class Way:
    """A chain, cut into servers, or into functions with a core each."""

    chains: tuple[Chain, ...]
    wait_us: float = 0.0  # of frames between servers that are not full

    @property
    def fills(self) -> bool:
        """Return whether packets come one by one, and go in frames from server to server."""
        return self.chains[0].form == AGGREGATED


@dataclass(frozen=True)
class Node:
    """A server, or a core of its own, with some of the chain's functions, under a load."""

    chain: Chain
    prediction: Prediction
    rate_pps: float  # of one core, if frames are as full as under this load
    low_pps: float
    high_pps: float
    cores: int
    busy: float  # share of the time of each core

    @property
    def wanted(self) -> int:
        """Return the cores that it should have."""
        if self.busy <= HEADROOM:
            return self.cores
        return max(self.cores + 1, math.ceil(self.cores * self.busy / HEADROOM))


def fits(size: int) -> int:
    """Return how many packets of a size (with FCS) share a convoy frame of MTU 1500."""
    return max(1, (MTU - OUTER) // (size - FCS + LENGTH))


def full(fit: Fit, size: int) -> int:
    """Return the packets of a full frame, or the most that were measured in one."""
    return min(fits(size), fit.most_packets(size))


def _filling(
    model: Model, chain: Chain, size: int, come: Frames, load_pps: float, hops: int, wait_s: float,
    busy_before: float | None,
) -> tuple[Prediction, Frames] | Missing:  # fmt: skip
    """Return what a packet costs that comes and leaves in frames, and the frames that leave.

    A packet that leaves as it came, alone, costs more than one that leaves in company: by what a
    frame costs to be sent. In what a convoy costs, one that is sent is included. busy_before: of
    the one core that they come from; None: they come at random. What one core sends reaches a core
    with less to do frame by frame.
    """
    costs: list[Prediction] = []
    for form, packets in ((PLAIN, 1.0), (AGGREGATED, 1.0), (CONVOYS, come.convoy)):
        if form == CONVOYS and packets == 1:
            continue
        cost = model.fit.predict(replace(chain, form=form, packets=packets), size)
        if isinstance(cost, Missing):
            return cost
        costs.append(cost)
    alone, company, in_convoys = costs[0].cycles, costs[1].cycles, costs[-1].cycles
    convoys = (1 - come.single) / come.convoy  # for each packet
    sent = max(0.0, alone - company)
    work = come.single * company + (1 - come.single) * in_convoys - convoys * sent
    cycles_hz = model.rate_pps(chain, 1.0)
    core = Core(work / cycles_hz, sent / cycles_hz, hops, full(model.fit, size), wait_s)
    leaves = leave(come, load_pps, replace(core, spaced=True))
    busy = load_pps / cycles_hz * (work + sent / leaves.mean)
    if busy_before is None or busy > busy_before:
        leaves = leave(come, load_pps, core)
    more = 1 / leaves.mean - convoys if sent else 0.0  # frames to send, beyond those in convoys
    weights = (more, come.single - more, 1 - come.single)
    return mixed(list(zip(costs, weights, strict=False))), leaves


def loaded(
    model: Model, way: Way, size: int | Mix, load_pps: float, cores: Sequence[int]
) -> tuple[Node, ...] | Missing:
    """Return the servers with so many cores each, under a load."""
    if way.fills and not isinstance(size, int):
        return Missing("a mix of sizes: only frames of one size are known to be filled")
    nodes: list[Node] = []
    come = SINGLE
    for i, chain in enumerate(way.chains):
        here = chain
        result: Prediction | Missing
        if way.fills and isinstance(size, int):
            last = i == len(cores) - 1
            hops = 1 if last else -(-cores[i + 1] // cores[i])
            wait_s = 0.0 if last else way.wait_us / 1e6
            one = i > 0 and cores[i] >= cores[i - 1]
            before = nodes[-1].busy if one else None
            both = _filling(model, chain, size, come, load_pps / cores[i], hops, wait_s, before)
            if isinstance(both, Missing):
                return both
            if come.mean > 1:
                here = replace(chain, form=CONVOYS, packets=come.mean)
            result, come = both
        else:
            result = model.fit.predict(chain, size)
            if isinstance(result, Missing):
                return result
        rate = model.rate_pps(chain, result.cycles)
        low, high = rate / (1 + result.error), rate * (1 + result.error)
        busy = load_pps / (rate * cores[i])
        nodes.append(Node(here, result, rate, low, high, cores[i], busy))
    return tuple(nodes)


def placed(model: Model, way: Way, size: int | Mix, load_pps: float) -> tuple[Node, ...] | Missing:
    """Return the servers with as many cores as a load asks for, from one each up."""
    cores = [1] * len(way.chains)
    while True:
        nodes = loaded(model, way, size, load_pps, cores)
        if isinstance(nodes, Missing):
            return nodes
        small = next((i for i, node in enumerate(nodes) if node.wanted > node.cores), None)
        if small is None:
            return nodes
        cores[small] = nodes[small].wanted
        if way.chains[small].link or way.chains[small].own:
            return Missing(f"{cores[small]} cores; processes were measured on one")


def limit_pps(
    model: Model, way: Way, size: int | Mix, nodes: Sequence[Node], load_pps: float
) -> float:
    """Return the load under which the first of the servers has no time to spare."""
    cores = [node.cores for node in nodes]
    busiest = max(node.busy for node in nodes)
    for _ in range(TRIES):
        load_pps /= busiest
        under = loaded(model, way, size, load_pps, cores)
        if isinstance(under, Missing):
            break
        busiest = max(node.busy for node in under)
        if abs(busiest - 1) < NEAR:
            break
    return load_pps
