# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which instances of each function a chain goes to: by what is there, and by how busy it is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from convoy.network.load import Instance, Loaded, Way

BUSY = 0.8  # share of a node's time, from which another instance takes some of its packets
LESS = 0.3  # that the other node must be less busy by
WHOLE = 8  # weight of an instance among which flows are spread; a busy one gives 1 away

# Instances with their weights: one of weight 1, several, or none: nobody is there.
Shares = tuple[tuple[Instance, int], ...]


@dataclass(frozen=True)
class Move:
    """A chain that goes to other instances of a function, or to the same by other weights."""

    way: Way
    stage: int
    before: Shares
    now: Shares  # empty: its packets go where they went, and are lost
    why: str  # "start", "gone", "back" or "busy"


def names(shares: Shares) -> str:
    """Return what people call instances: fw-a+fw-b, and by unequal weights 7*fw-a+9*fw-b."""
    equal = len({weight for _, weight in shares}) == 1
    return "+".join(one.name if equal else f"{weight}*{one.name}" for one, weight in shares)


@dataclass(frozen=True)
class Entry:
    """A line of a node's aggregation table: by SC-ID and the link, where packets go."""

    node: str
    table: int
    way: Way
    to: tuple[tuple[int, int], ...]  # NFI-IDs of instances with their weights


class Steering:
    """The instances that chains go to. Knows neither sockets nor time."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._chosen: dict[tuple[str, int], Shares] = {}
        # Of chains that nobody was there for, where they are; and where they were before that.
        self._lost: dict[tuple[str, int], Shares] = {}
        self._home: dict[tuple[str, int], Shares] = {}
        self._stages = [(way, stage) for way in loaded.ways for stage in range(len(way.stages))]
        # As the descriptors have it, before anything is known.
        for way, stage in self._stages:
            all_of_it = tuple((one, WHOLE) for one in way.stages[stage])
            self._chosen[way.name, stage] = (
                all_of_it if way.by_flow else ((way.stages[stage][0], 1),)
            )

    def chosen(self, way: Way, stage: int) -> Shares:
        """Return where a chain's packets go."""
        return self._chosen[way.name, stage]

    def follow(self, alive: Iterable[str], busy: Mapping[str, float]) -> list[Move]:
        """Lead what went to nodes that are gone to those that are there.

        A chain goes to the least busy one, the flows of one that is spread to all. One that nobody
        was there for goes back to where it was as soon as that is there.
        alive: the nodes that are there. busy: shares of their time, as far as they are known.
        """
        there = set(alive)
        load = self._expected(there, busy)
        share = self._share(load)
        moves = []
        for way, stage in self._stages:
            key = way.name, stage
            before, home = self._chosen[key], self._home.get(key, ())
            is_home_there = any(one.node in there for one, _ in home)
            if way.by_flow:
                now = self._all_there(way, stage, there)
            elif is_home_there and key in self._lost:
                now = home
            elif any(one.node in there for one, _ in before):
                if is_home_there:  # it has another one
                    del self._home[key]
                continue
            else:
                candidates = [one for one in way.stages[stage] if one.node in there]
                least = min(candidates, key=lambda one: load[one.node], default=None)
                now = () if least is None else ((least, 1),)
                for one, _ in now:
                    load[one.node] += share
            if now != before:
                self._chosen[key] = now
                gone = any(one.node not in there for one, _ in before)
                if gone:
                    self._home.setdefault(key, before)
                if not now:
                    self._lost[key] = before
                elif way.by_flow or now == home:
                    self._forget(key)
                moves.append(Move(way, stage, before, now, "gone" if gone else "back"))
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
            if way.by_flow:
                now = self._all_there(way, stage, there)
            else:
                candidates = [one for one in way.stages[stage] if one.node in there]
                stays = {one for one, _ in before}
                least = min(
                    candidates, key=lambda one: (load[one.node], one not in stays), default=None
                )
                now = () if least is None else ((least, 1),)
            for one, _ in now:
                load[one.node] += (1 + busy.get(one.node, 0.0)) / len(now)
            if now:
                self._forget((way.name, stage))
            if now and now != before:
                self._chosen[way.name, stage] = now
                moves.append(Move(way, stage, before, now, "start"))
        return moves

    def relieve(self, alive: Iterable[str], busy: Mapping[str, float]) -> Move | None:
        """Move one chain, or some flows, from a busy node to one that is less so, if that helps."""
        there = set(alive)
        best: tuple[float, Move] | None = None
        for way, stage in self._stages:
            before = self._chosen[way.name, stage]
            for full, weight in before:
                if busy.get(full.node, 0) < BUSY or (way.by_flow and weight == 1):
                    continue
                if not way.by_flow and self._chains_at(full.node) == 1:
                    continue  # only the place of it would change
                for one in way.stages[stage]:
                    gain = busy[full.node] - busy.get(one.node, 1.0)
                    if one.node in there and gain >= LESS and (best is None or gain > best[0]):
                        now = _shifted(before, full, one) if way.by_flow else ((one, 1),)
                        best = (gain, Move(way, stage, before, now, "busy"))
        if best is None:
            return None
        move = best[1]
        self._chosen[move.way.name, move.stage] = move.now
        self._forget((move.way.name, move.stage))
        return move

    def entries(self, node: str) -> Iterator[Entry]:
        """Return a node's table: every chain that it passes on, whether its packets come or not.

        So an instance that takes over knows already where to send.
        """
        links = self._loaded.links_of(node)
        for way, stage in self._stages:
            shares = self._chosen[way.name, stage] or self._lost.get((way.name, stage), ())
            if node in way.senders(stage) and shares:
                to = tuple((one.nfi, weight) for one, weight in shares)
                yield Entry(node, links.index(way.out[node]), way, to)

    def _forget(self, key: tuple[str, int]) -> None:
        """A chain is where it is to be now."""
        self._lost.pop(key, None)
        self._home.pop(key, None)

    def _all_there(self, way: Way, stage: int, there: set[str]) -> Shares:
        """Return the instances that are there: who was, with its weight."""
        weights = dict(self._chosen[way.name, stage])
        return tuple(
            (one, weights.get(one, WHOLE)) for one in way.stages[stage] if one.node in there
        )

    def _chains_at(self, node: str) -> int:
        return sum(one.node == node for shares in self._chosen.values() for one, _ in shares)

    def _expected(self, there: set[str], busy: Mapping[str, float]) -> dict[str, float]:
        """Return loads to compare: what was measured, and where nothing was, chains."""
        counts = Counter(one.node for shares in self._chosen.values() for one, _ in shares)
        most = max(counts.values(), default=1)
        return {node: busy.get(node, 0.0) + 1e-3 * counts[node] / most for node in there}

    def _share(self, load: Mapping[str, float]) -> float:
        """Return what one chain is expected to add."""
        chains = sum(one.node in load for shares in self._chosen.values() for one, _ in shares)
        return max(sum(load.values()) / chains if chains else 0.0, 1e-3)


def _shifted(shares: Shares, giver: Instance, taker: Instance) -> Shares:
    """Return weights of which one has gone from an instance to another."""
    change = {giver: -1, taker: 1}
    return tuple((one, weight + change.get(one, 0)) for one, weight in shares)
