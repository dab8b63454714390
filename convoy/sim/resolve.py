# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A topology to the network that convoy-sim reads: instances, labels, links, routes, picoseconds.

The network's schema is convoy.sim.network/1; sim/model/network.hh says what each field means.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from convoy.errors import InputError
from convoy.sim import fabric, profile
from convoy.sim.load import Loaded
from convoy.sim.model import (
    Aggregation,
    CbrSource,
    Function,
    MaxRate,
    OnOffSource,
    ParetoOnOffSource,
    PcapSource,
    PoissonSource,
    Rate,
    Sink,
    Source,
    Topology,
)

PS_PER_S = 10**12
LABELS_MAX = 1 << 16

Json = dict[str, Any]


@dataclass(frozen=True)
class Network:
    """What convoy-sim reads, and what a person should know about it."""

    data: Json
    notes: tuple[str, ...]


@dataclass
class Building:
    """The network while it grows."""

    nodes: list[Json] = field(default_factory=list)
    links: list[Json] = field(default_factory=list)
    sources: list[Json] = field(default_factory=list)
    instances: dict[str, list[int]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)  # in order, each once

    def node(self, name: str, kind: str, **more: Any) -> int:
        """Add a node; return its index."""
        self.nodes.append({"name": name, "kind": kind, "next_hops": [], "routes": [], **more})
        return len(self.nodes) - 1


def ps(value: float, unit: float) -> int:
    """Return a time in picoseconds, at least 1."""
    return max(1, round(value * unit))


def resolve(loaded: Loaded, aggregated: bool = True, seed: int | None = None) -> Network:
    """Return the network. aggregated False: no node aggregates. Raises InputError."""
    topology = loaded.topology
    build = Building()
    for name, function in topology.functions.items():
        common = _function(function, topology, loaded.base, aggregated, build)
        build.instances[name] = [
            build.node(title, "function", **common) for title in _titles(name, function.instances)
        ]
    for name, sink in _sinks(topology).items():
        build.instances[name] = [
            build.node(title, "sink") for title in _titles(name, sink.instances)
        ]
    _chains(topology, build, loaded.base)
    pairs = sorted(
        {
            (i, choice["dst"])
            for i, node in enumerate(build.nodes)
            for next_hop in node["next_hops"]
            for choice in next_hop["choices"]
        }
    )
    link = _link(topology)
    if topology.fabric is None:
        for start, end in pairs:
            title = f"{build.nodes[start]['name']}-{build.nodes[end]['name']}"
            build.links.append({"name": title, "from": start, "to": end, **link})
            route = {"dst": end, "links": [len(build.links) - 1]}
            build.nodes[start]["routes"].append(route)
    else:
        fabric.join(topology, build.nodes, build.links, build.instances, pairs, link)
    data = {
        "schema": "convoy.sim.network/1",
        "name": loaded.name,
        "seed": topology.simulate.seed if seed is None else seed,
        "duration_ps": ps(topology.simulate.duration_s, PS_PER_S),
        "chunk_ps": ps(topology.simulate.chunk_ms, 1e9),
        "nodes": build.nodes,
        "links": build.links,
        "sources": build.sources,
    }
    return Network(data, tuple(build.notes))


def _titles(name: str, instances: int) -> list[str]:
    return [name] if instances == 1 else [f"{name}.{i}" for i in range(instances)]


def _sinks(topology: Topology) -> dict[str, Sink]:
    return topology.sinks or {chain.to: Sink() for chain in topology.chains.values()}


def _link(topology: Topology) -> Json:
    links = topology.links
    return {
        "rate_bps": max(1, round(links.gbps * 1e9)),
        "delay_ps": ps(links.delay_us, 1e6),
        "queue_frames": links.queue_frames,
    }


def _function(
    function: Function,
    topology: Topology,
    base: Path,
    aggregated: bool,
    build: Building,
) -> Json:
    """Return what all instances of a function share."""
    chosen = function.aggregation or topology.aggregation
    known = _profile(chosen, topology, base)
    on = aggregated and (chosen.table is not None or chosen.queue is not None)
    service: Json = {"kind": function.service, "per_byte_ps": round(function.byte_ns * 1e3)}
    if on and chosen.table is not None:
        if not known.steps:
            raise InputError(
                f"profile {known.name} has no packets per frame by rate, which aggregation.table "
                "needs; use aggregation.queue"
            )
        build.notes[f"aggregation profile {known.name}: {known.source}"] = None
    if function.like is not None:
        service |= _measured_service(function, chosen, known, on)
        build.notes[f"costs of functions from profile {known.name}: {known.source}"] = None
    else:
        service["per_packet_ps"] = ps(1e6 / _rate_mpps(function, known, on, build), 1)
    if on and chosen.queue is not None and chosen.queue.burst_ns is not None:
        for each in ("per_frame_ps", "per_sent_ps", "per_single_ps"):
            service.pop(each, None)
        service["per_burst_ps"] = round(chosen.queue.burst_ns * 1e3)
    common: Json = {"service": service, "queue_packets": function.queue_packets}
    if on:
        common["aggregation"] = _aggregation(chosen, known)
    return common


def _rate_mpps(function: Function, known: profile.Profile, on: bool, build: Building) -> float:
    rate = function.max_mpps
    if rate is None:
        rate = MaxRate(plain=known.plain_pps / 1e6, aggregated=known.aggregated_pps / 1e6)
        build.notes[f"largest rates from profile {known.name}"] = None
    if isinstance(rate, MaxRate):
        rate = rate.aggregated if on else rate.plain
    if rate <= 0:
        raise InputError(f"max-mpps is {rate:g}; give a rate above zero")
    return rate


def _measured_service(
    function: Function, chosen: Aggregation, known: profile.Profile, on: bool
) -> Json:
    """Return the service that a function of the profile has. Raises InputError."""
    assert function.like is not None
    if function.max_mpps is not None or function.byte_ns:
        raise InputError(f"like: {function.like}: exclude max-mpps and byte-ns; remove them")
    if known.costs is None:
        raise InputError(
            f"like: {function.like}: profile {known.name} has no costs; give the file of "
            "convoy bench profile as profile:"
        )
    if on and chosen.table is not None:
        raise InputError(
            f"like: {function.like}: costs are per frame, so they need aggregation.queue"
        )
    return known.costs.service(function.like, on)


def _profile(aggregation: Aggregation, topology: Topology, base: Path) -> profile.Profile:
    of_table = aggregation.table.profile if aggregation.table is not None else None
    return profile.load(of_table or topology.profile, base)


def _aggregation(aggregation: Aggregation, known: profile.Profile) -> Json:
    frames = aggregation.frames
    data: Json = {
        "mtu": frames.mtu,
        "frame_overhead": frames.frame_overhead,
        "packet_overhead": frames.packet_overhead,
        "max_packets": frames.max_packets,
    }
    if aggregation.queue is not None:
        wait = {"flush_ps": ps(wait_us, 1e6)} if (wait_us := aggregation.queue.wait_us) else {}
        return {"mode": "queue", "burst": aggregation.queue.burst, **wait, **data}
    assert aggregation.table is not None
    return {
        "mode": "table",
        "window_ps": ps(aggregation.table.window_ms, 1e9),
        "weight_ppm": round(aggregation.table.weight * 1e6),
        "flush_ps": ps(aggregation.table.flush_us, 1e6),
        "steps": [{"from_pps": rate, "packets": n} for rate, n in known.steps],
        **data,
    }


def _chains(topology: Topology, build: Building, base: Path) -> None:
    """Give each stage of each chain a label, and the sources theirs."""
    label = 0
    for chain in topology.chains.values():
        stages = [build.instances[name] for name in [*chain.path, chain.to]]
        first = label
        for stage, (here, there) in enumerate(pairwise(stages)):
            last = stage == len(chain.path) - 1
            function = topology.functions[chain.path[stage]]
            if function.weights is not None and len(function.weights) != len(there):
                raise InputError(
                    f"function {chain.path[stage]}: {len(function.weights)} weights for "
                    f"{len(there)} next instances; give as many"
                )
            for position, node in enumerate(here):
                choices = [
                    {
                        "dst": there[k],
                        "label": 0 if last else label + 1,
                        "weight": 1 if function.weights is None else function.weights[k],
                    }
                    for k in _share(chain.spread, position, len(here), len(there))
                ]
                next_hop = {"label": label, "policy": function.next_hop, "choices": choices}
                build.nodes[node]["next_hops"].append(next_hop)
            label += 1
        if label > LABELS_MAX:
            raise InputError(f"more than {LABELS_MAX} stages in all chains; use fewer chains")
        source = topology.sources[chain.from_]
        build.sources += _sources(chain.from_, source, stages[0], first, base, len(build.sources))


def _share(spread: str, position: int, here: int, there: int) -> range:
    """Return which of the next stage's instances an instance sends to."""
    if spread == "mesh":
        return range(there)
    start = position * there // here
    return range(start, max(start + 1, (position + 1) * there // here))


def _sources(
    name: str, source: Source, nodes: list[int], label: int, base: Path, first: int
) -> Iterator[Json]:
    """Yield the sources of a name; they feed the first stage's instances in equal blocks.

    Where there are fewer sources than instances, each feeds a block of instances: as so many
    sources, numbered from first, with one generator, each of which gives its share.
    """
    common = _traffic(source, base)
    by_flow = (source.split or ("flow" if isinstance(source, PcapSource) else "round-robin")) == (
        "flow"
    )
    for i, title in enumerate(_titles(name, source.count)):
        start = i * len(nodes) // source.count
        fed = nodes[start : max(start + 1, (i + 1) * len(nodes) // source.count)]
        generator = first
        for share, node in enumerate(fed):
            made = {"name": title, "node": node, "label": label, **common}
            if len(fed) > 1:
                made["name"] = f"{title}/{share}"
                made |= {"shares": len(fed), "share": share, "by_flow": by_flow}
                made["generator"] = generator
            yield made
            first += 1


def _traffic(source: Source, base: Path) -> Json:
    match source:
        case PcapSource(pcap=capture):
            return {"kind": "pcap", "path": str(base / capture.file), "loop": capture.loop}
        case CbrSource(cbr=cbr):
            return _rate("cbr", cbr, 1.0)
        case PoissonSource(poisson=poisson):
            return _rate("poisson", poisson, 1.0)
        case OnOffSource(on_off=on_off):
            off = sum(on_off.off_ms) / 2
            return {
                **_rate("on-off", on_off, on_off.on_ms / (on_off.on_ms + off)),
                "on_ps": ps(on_off.on_ms, 1e9),
                "off_min_ps": ps(on_off.off_ms[0], 1e9),
                "off_max_ps": ps(on_off.off_ms[1], 1e9),
            }
        case ParetoOnOffSource(pareto_on_off=pareto):
            return {
                **_rate("pareto-on-off", pareto, pareto.on_ms / (pareto.on_ms + pareto.off_ms)),
                "on_ps": ps(pareto.on_ms, 1e9),
                "off_min_ps": ps(pareto.off_ms, 1e9),
                "shape": pareto.shape,
            }


def _rate(kind: str, rate: Rate, duty: float) -> Json:
    """Return what all but captures have; duty: share of the time that packets come."""
    return {
        "kind": kind,
        "gap_ps": ps(duty * 1e6 / rate.mpps, 1),
        "flows": rate.flows,
        "random_phase": rate.phase == "random",
        "sizes": [{"bytes": size.bytes, "weight": size.weight} for size in rate.sizes],
    }
