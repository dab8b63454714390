# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the page shows of a node at one moment: rates since the moment before, names, shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convoy.watch.graph import Graph, Place

Counts = Mapping[str, Any]


@dataclass(frozen=True)
class Moment:
    """Counts, and when they were read."""

    at_s: float  # of a monotonic clock
    counts: Counts


@dataclass(frozen=True)
class Flow:
    """What passes a place; None: the node does not count it there."""

    packets_per_s: float | None = None
    bits_per_s: float | None = None


class Rates:
    """Rates between two moments; a counter that is new or went back has none."""

    def __init__(self, now: Moment, before: Moment | None) -> None:
        self.now = now.counts
        self._before: Counts = before.counts if before else {}
        self._elapsed_s = now.at_s - before.at_s if before else 0.0

    def of(self, *path: str) -> float | None:
        """Return how much a counter grows per second."""
        now, before = _at(self.now, path), _at(self._before, path)
        if now is None or before is None or now < before or self._elapsed_s <= 0:
            return None
        return float(now - before) / self._elapsed_s

    def flow(self, place: Place, leaves: bool) -> Flow:
        """Return what comes to a place, or leaves it."""
        if place.kind == "function":
            at = ("functions", place.name)
            come = self.of(*at, "packets")
            if not leaves:
                return Flow(come, _bits(self.of(*at, "bytes")))
            less = [self.of(*at, "absorbed"), *self._drops(at)]
            made = self.of(*at, "originated")
            held = _at(self.now, (*at, "held")) or 0
            if come is None or made is None or None in less or held:
                return Flow()
            return Flow(max(0.0, come + made - sum(one or 0.0 for one in less)))
        if place.kind == "next_hop":
            return Flow(self.of("next_hops", place.name, "packets"))
        at = ("ports", place.name)
        return Flow(
            self.of(*at, f"{place.kind}_packets"), _bits(self.of(*at, f"{place.kind}_bytes"))
        )

    def _drops(self, at: tuple[str, str]) -> list[float | None]:
        return [self.of(*at, "drops", reason) for reason in _at(self.now, (*at, "drops")) or {}]

    def drops(self, *at: str) -> list[dict[str, Any]]:
        """Return the reasons with drops, the fastest first."""
        drops = _at(self.now, (*at, "drops")) or {}
        result = [
            {"reason": reason, "packets": packets, "per_s": self.of(*at, "drops", reason)}
            for reason, packets in drops.items()
            if packets
        ]
        return sorted(result, key=lambda one: (one["per_s"] or 0, one["packets"]), reverse=True)


def snapshot(graph: Graph, now: Moment, before: Moment | None) -> dict[str, Any]:
    """Return what the page draws."""
    rates, counts = Rates(now, before), now.counts
    dropped = [
        {"of": name, "kind": kind, **drop}
        for kind, part in (("port", "ports"), ("function", "functions"), ("flow table", "flows"))
        for name in counts[part]
        for drop in rates.drops(part, name)
    ]
    return {
        "places": [
            {"kind": place.kind, "name": place.name, "column": column, **_facts(place, counts)}
            for place, column in graph.columns.items()
        ],
        "ways": _ways(graph, rates),
        "drops": sorted(dropped, key=lambda one: one["per_s"] or 0, reverse=True),
        "workers": [
            {"core": worker["core"], "busy": _busy(rates, i), "longest_s": _longest(worker)}
            for i, worker in enumerate(counts["workers"])
        ],
        "tables": _tables(counts),
        "fill": [
            {"name": name, "packets_per_frame": _per_frame(hop)}
            for name, hop in counts["next_hops"].items()
        ],
        "totals": {key: rates.of("accounting", key) for key in ("received", "sent", "dropped")},
        "counts": counts["accounting"],
    }


def _at(counts: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(counts, Mapping) or key not in counts:
            return None
        counts = counts[key]
    return counts


def _bits(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else 8 * bytes_per_s


def _facts(place: Place, counts: Counts) -> dict[str, Any]:
    if place.kind == "function":
        return {"type": (_at(counts, ("functions", place.name, "type")) or "")}
    if place.kind == "next_hop":
        return {"type": "next hop"}
    return {"type": f"{_at(counts, ('ports', place.name, 'kind')) or ''} {place.kind}"}


def _ways(graph: Graph, rates: Rates) -> list[dict[str, Any]]:
    """Return the ways, with what passes them where one end has no other way."""
    out: dict[Place, int] = {}
    into: dict[Place, int] = {}
    for one, to in graph.ways:
        out[one] = out.get(one, 0) + 1
        into[to] = into.get(to, 0) + 1
    order = {place: i for i, place in enumerate(graph.columns)}
    result = []
    for (one, to), chains in graph.ways.items():
        flow = Flow()
        if into[to] == 1:
            flow = rates.flow(to, leaves=False)
        elif out[one] == 1:
            flow = rates.flow(one, leaves=True)
        ends = {"from": order[one], "to": order[to], "chains": chains}
        passes = {"packets_per_s": flow.packets_per_s, "bits_per_s": flow.bits_per_s}
        result.append({**ends, **passes})
    return result


def _busy(rates: Rates, i: int) -> float | None:
    """Return the share of cycles of a worker that had packets."""
    workers = rates.now["workers"]
    before = rates._before.get("workers", [])
    if i >= len(before):
        return None
    total = workers[i]["total_cycles"] - before[i]["total_cycles"]
    return (workers[i]["busy_cycles"] - before[i]["busy_cycles"]) / total if total > 0 else None


def _longest(worker: Counts) -> float:
    return float(worker["longest_iteration_ns"]) / 1e9


def _per_frame(hop: Counts) -> float | None:
    return hop["packets"] / hop["frames"] if hop["frames"] else None


def _tables(counts: Counts) -> list[dict[str, Any]]:
    tables = [
        {"name": name, "what": "flows", "used": one["flows_ipv4"] + one["flows_ipv6"],
         "max": one["max"]}
        for name, one in counts["flows"].items()
    ]  # fmt: skip
    for name, function in counts["functions"].items():
        info = function.get("info") or {}
        if "mappings" in info:
            limit = info.get("mappings_max")
            tables.append(
                {"name": name, "what": "NAT mappings", "used": info["mappings"], "max": limit}
            )
    return tables
