# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which instance of each function a chain goes to: by what is there, and by how busy it is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from convoy.network.load import Instance, Loaded, Way

BUSY = 0.8  # share of a node's time, from which another instance takes one of its chains
LESS = 0.3  # that the other node must be less busy by


@dataclass(frozen=True)
class Move:
    """A chain that goes to another instance of a function."""

    way: Way
    stage: int
    before: Instance | None  # None: it had none
    now: Instance | None  # None: there is none; its packets go where they went, and are lost
    why: str  # "start", "gone", "back" or "busy"


@dataclass(frozen=True)
class Entry:
    """A line of a node's aggregation table: by SC-ID and the link, the instance (NFI-ID)."""

    node: str
    table: int
    way: Way
    nfi: int


class Steering:
    """The instances that chains go to. Knows neither sockets nor time."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._chosen: dict[tuple[str, int], Instance | None] = {}
        self._stages = [(way, stage) for way in loaded.ways for stage in range(len(way.stages))]
        # As the descriptors have it, before anything is known.
        for way, stage in self._stages:
            self._chosen[way.name, stage] = way.stages[stage][0]

    def chosen(self, way: Way, stage: int) -> Instance | None:
        """Return where a chain's packets go; None: no instance is there."""
        return self._chosen[way.name, stage]

    def follow(self, alive: Iterable[str], busy: Mapping[str, float]) -> list[Move]:
        """Move what went to nodes that are gone to the least busy of those that are there.

        alive: the nodes that are there. busy: shares of their time, as far as they are known.
        """
        there = set(alive)
        load = self._expected(there, busy)
        share = self._share(load)
        moves = []
        for way, stage in self._stages:
            before = self._chosen[way.name, stage]
            if before is not None and before.node in there:
                continue
            candidates = [one for one in way.stages[stage] if one.node in there]
            now = min(candidates, key=lambda one: load[one.node], default=None)
            if now is None and before is None:
                continue
            self._chosen[way.name, stage] = now
            if now is not None:
                load[now.node] += share
            moves.append(Move(way, stage, before, now, "back" if before is None else "gone"))
        return moves

    def spread(self, alive: Iterable[str], busy: Mapping[str, float]) -> list[Move]:
        """Spread all chains anew over what is there: equally many to each, if nothing is known.

        A chain that may stay where it is does not move.
        """
        there = set(alive)
        load: dict[str, float] = {node: 0.0 for node in there}
        moves = []
        for way, stage in self._stages:
            before = self._chosen[way.name, stage]
            candidates = [one for one in way.stages[stage] if one.node in there]
            now = min(candidates, key=lambda one: (load[one.node], one != before), default=None)
            if now is not None:
                load[now.node] += 1 + busy.get(now.node, 0.0)
            if now is not None and now != before:
                self._chosen[way.name, stage] = now
                moves.append(Move(way, stage, before, now, "start"))
        return moves

    def relieve(self, alive: Iterable[str], busy: Mapping[str, float]) -> Move | None:
        """Move one chain from a busy node to one that is less so. None: nothing is to be gained."""
        there = set(alive)
        best: tuple[float, Move] | None = None
        for way, stage in self._stages:
            before = self._chosen[way.name, stage]
            if before is None or busy.get(before.node, 0) < BUSY:
                continue
            for one in way.stages[stage]:
                gain = busy[before.node] - busy.get(one.node, 1.0)
                if one.node not in there or gain < LESS or (best and gain <= best[0]):
                    continue
                if self._chains_at(before.node) > 1:  # else only the place of it would change
                    best = (gain, Move(way, stage, before, one, "busy"))
        if best is None:
            return None
        move = best[1]
        self._chosen[move.way.name, move.stage] = move.now
        return move

    def entries(self, node: str) -> Iterator[Entry]:
        """Return a node's table: every chain that it passes on, whether its packets come or not.

        So an instance that takes over knows already where to send.
        """
        links = self._loaded.links_of(node)
        for way, stage in self._stages:
            to = self._chosen[way.name, stage]
            if node in way.senders(stage) and to is not None:
                yield Entry(node, links.index(way.out[node]), way, to.nfi)

    def _chains_at(self, node: str) -> int:
        return sum(one is not None and one.node == node for one in self._chosen.values())

    def _expected(self, there: set[str], busy: Mapping[str, float]) -> dict[str, float]:
        """Return loads to compare: what was measured, and where nothing was, chains."""
        counts = Counter(one.node for one in self._chosen.values() if one is not None)
        most = max(counts.values(), default=1)
        return {node: busy.get(node, 0.0) + 1e-3 * counts[node] / most for node in there}

    def _share(self, load: Mapping[str, float]) -> float:
        """Return what one chain is expected to add."""
        chains = sum(one is not None and one.node in load for one in self._chosen.values())
        return max(sum(load.values()) / chains if chains else 0.0, 1e-3)
