# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The graph of a plan: ports, functions, next hops, and the ways between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, order=True)
class Place:
    """A box of the graph. A port has two: packets come by one and leave by the other."""

    kind: str  # "rx", "function", "tx" or "next_hop"
    name: str


@dataclass(frozen=True)
class Graph:
    """Boxes by column from the left, and the ways between them with the chains that take them."""

    columns: dict[Place, int]
    ways: dict[tuple[Place, Place], list[str]]


def graph_of(plan: Mapping[str, Any]) -> Graph:
    """Return a plan's graph."""
    ways: dict[tuple[Place, Place], list[str]] = {}
    entries: dict[str, list[Place]] = {}
    for stage in plan["stages"]:
        if "handoff" in stage["source"]:
            continue  # the same functions on another worker
        path = [Place("function", name) for name in stage["path"]]
        if "ring" not in stage["source"]:
            first = path[:1] or _sink(stage["sink"])
            entries.setdefault(stage["chain"], first)
    rings = {
        stage["source"]["ring"]: Place("function", stage["path"][0])
        for stage in plan["stages"]
        if "ring" in stage["source"] and stage["path"]
    }
    for stage in plan["stages"]:
        if "handoff" in stage["source"]:
            continue
        places = [Place("rx", stage["source"]["port"])] if "port" in stage["source"] else []
        places += [Place("function", name) for name in stage["path"]]
        if "ring" in stage["sink"]:
            places += [rings[stage["sink"]["ring"]]] if stage["sink"]["ring"] in rings else []
        else:
            places += _sink(stage["sink"])
        for pair in pairwise(places):
            _add(ways, pair, stage["chain"])
    for function in plan["functions"]:
        for output in function.get("outputs") or []:
            for to in entries.get(output["chain"], []):
                _add(ways, (Place("function", function["name"]), to), output["chain"])
    for hop in plan.get("next_hops") or []:
        _add(ways, (Place("tx", hop["port"]), Place("next_hop", hop["name"])), "")
    all_places = {place for pair in ways for place in pair}
    all_places |= {Place("function", function["name"]) for function in plan["functions"]}
    return Graph(_columns(sorted(all_places), list(ways)), ways)


def _sink(sink: Mapping[str, Any]) -> list[Place]:
    return [Place("tx", sink["port"])] if "port" in sink else []


def _add(ways: dict[tuple[Place, Place], list[str]], pair: tuple[Place, Place], chain: str) -> None:
    chains = ways.setdefault(pair, [])
    if chain and chain not in chains:
        chains.append(chain)


def _columns(places: list[Place], ways: list[tuple[Place, Place]]) -> dict[Place, int]:
    """Return each box's column: right of all that lead to it, unless they go in a circle."""
    columns = dict.fromkeys(places, 0)
    limit = sum(place.kind == "function" for place in places)
    for _ in range(limit + 1):
        before = dict(columns)
        for one, to in ways:
            columns[to] = max(columns[to], min(columns[one] + 1, limit + 1))
        if columns == before:
            break
    last = max((columns[place] for place in places if place.kind == "tx"), default=0)
    for place in places:
        if place.kind in ("tx", "next_hop"):
            columns[place] = max(last, 1) + (place.kind == "next_hop")
    return columns
