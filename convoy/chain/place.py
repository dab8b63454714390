# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who runs what: a descriptor's chains become stages on workers.

Rules, all of them needed by the node (docs/plan.md):
 - a queue of a port is polled by one worker, so all chains that begin there share it;
 - inline is one stage per chain and queue; pipeline is one stage per function, joined by rings;
 - a function of a pipeline runs on one worker, whichever way its packets go;
 - so does a stateful function where it cannot be shared: answers must meet their flow;
 - a stateful function is shared if its chains are inline, some of their ports have several queues,
   one of their functions rewrites at most, and none is nat64: each worker that runs it has a stage
   of each of these chains, from "handoff", for packets of its flows that other workers received;
 - a chain with `spread: round-robin` has a stage from "handoff" on every worker, for bursts that
   others received and dealt out;
 - a chain that outputs lead to is a stage on each worker that runs a function which leads there.
 - with `scale: auto` a queue moves if all its stages are inline, not dealt out, and pass functions
   that remember nothing of packets; chains that their outputs lead to are stages on all workers.
Stages that must share a worker form a group; groups are dealt out to the cores in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from convoy.chain.descriptor import Chain, Descriptor
from convoy.chain.functions import (
    is_stateful,
    is_translator,
    outputs_of,
    remembers,
    rewrites,
)
from convoy.chain.machine import Machine


@dataclass(frozen=True)
class Way:
    """A chain in one direction: what the plan calls a chain."""

    name: str
    chain: Chain
    source: str | None  # None: functions' outputs
    sink: str
    path: tuple[str, ...]

    def as_plan(self) -> dict[str, Any]:
        """Return this chain as the plan has it."""
        return {
            "name": self.name,
            "match": self.chain.match.model_dump(exclude_none=True),
            **({} if self.source is None else {"in": self.source}),
            "out": self.sink,
            **({} if self.chain.spread == "rss" else {"spread": self.chain.spread}),
        }


def ways(descriptor: Descriptor) -> list[Way]:
    """Return all chains by direction; the way back of `web` is called web.back."""
    result = []
    for name, chain in descriptor.chains.items():
        result.append(Way(name, chain, chain.from_, chain.to, tuple(chain.path)))
        if chain.both_ways and chain.from_ is not None:
            back = tuple(reversed(chain.path))
            result.append(Way(f"{name}.back", chain, chain.to, chain.from_, back))
    return result


@dataclass(frozen=True)
class Placement:
    """Stages as the plan has them, and the core of each worker."""

    stages: tuple[dict[str, Any], ...]
    cores: tuple[int, ...]
    notes: tuple[str, ...]


class _Groups:
    """Union-find over what must share a worker."""

    def __init__(self) -> None:
        self.parent: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def find(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        self.parent.setdefault(key, key)
        while self.parent[key] != key:
            key = self.parent[key]
        return key

    def join(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
        self.parent[self.find(b)] = self.find(a)


def place(
    descriptor: Descriptor, machine: Machine, running: dict[str, Any] | None = None
) -> Placement:
    """Decide stages and workers of a checked descriptor; running: the plan that it comes after."""
    shared = _shared(descriptor)
    in_turn = any(chain.spread != "rss" for chain in descriptor.chains.values())
    groups, stages = _grouped(descriptor, shared)
    keys = list(dict.fromkeys(groups.find(key) for key, _ in stages))
    if running is not None:
        cores = [worker["core"] for worker in running["workers"]]
        notes: tuple[str, ...] = ()
        worker = _as_before(keys, groups, stages, running)
        used = tuple(cores)
    else:
        wanted = max(len(keys), len(descriptor.workers.cores or ()) if in_turn else 0)
        cores, notes = choose_cores(wanted, descriptor.workers.cores, machine)
        worker = {key: i % len(cores) for i, key in enumerate(keys)}
        used = tuple(cores if in_turn else cores[: max(worker.values()) + 1])
    if in_turn and len(used) == 1:
        why = "spread: round-robin has nothing to do: there is one worker; give workers: cores"
        notes = (*notes, why)
    if len(keys) > len(used):
        what = "queues and functions" if _has_pipeline(descriptor) else "queues"
        notes = (*notes, f"{len(keys)} {what} share {len(used)} worker{'s' * (len(used) > 1)}")
    placed = [{"worker": worker[groups.find(key)], **stage} for key, stage in stages]
    everywhere: list[dict[str, Any]] = []
    if descriptor.workers.scale == "auto":
        moving = [stage for stage in placed if _moves(descriptor, stage, placed)]
        notes = (*notes, *_scale_notes(placed, moving, len(used)))
        for stage in moving:
            stage["moves"] = True
            everywhere += [{**stage, "worker": other} for other in range(len(used))]
    placed += _handoff_stages(descriptor, placed, shared, len(used))
    outputs = _output_stages(descriptor, [*placed, *everywhere])
    return Placement((*placed, *outputs), used, notes)


def places_on(descriptor: Descriptor) -> int:
    """Return how many workers a checked descriptor can use, if it is given as many cores."""
    groups, stages = _grouped(descriptor, _shared(descriptor))
    return len({groups.find(key) for key, _ in stages})


def _grouped(
    descriptor: Descriptor, shared: dict[str, frozenset[str]]
) -> tuple[_Groups, list[tuple[tuple[Any, ...], dict[str, Any]]]]:
    """Return all stages by what must share a worker; shared: chains whose flows several share."""
    groups = _Groups()
    stages: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for way in ways(descriptor):
        if way.source is None:
            continue
        queues = descriptor.ports[way.source].rx_queues
        for queue in range(queues):
            for key, stage in _stages(way, queue, queues):
                if "port" in stage["source"]:
                    groups.join(("queue", way.source, queue), key)
                for function in reached(descriptor, stage["path"]):
                    if is_stateful(descriptor.functions[function]) and way.name not in shared:
                        groups.join(("flows", function), key)
                stages.append((key, stage))
    return groups, stages


def _moves(descriptor: Descriptor, stage: dict[str, Any], placed: Sequence[dict[str, Any]]) -> bool:
    """Return whether other workers may poll a stage's queue as well, whatever chains it has."""
    dealt = {way.name for way in ways(descriptor) if way.chain.spread != "rss"}
    return "port" in stage["source"] and all(
        "port" in other["sink"]
        and other["chain"] not in dealt
        and not any(
            remembers(descriptor.functions[name]) for name in reached(descriptor, other["path"])
        )
        for other in placed
        if other["source"] == stage["source"]
    )


def _scale_notes(
    placed: Sequence[dict[str, Any]], moving: Sequence[dict[str, Any]], workers: int
) -> list[str]:
    """Say what `scale: auto` leaves where it is."""
    if workers < 2:
        return ["scale: auto has nothing to do: there is one worker"]
    stay = dict.fromkeys(
        f"{stage['source']['port']} (worker {stage['worker']})"
        for stage in placed
        if "port" in stage["source"] and stage not in moving
    )
    if not stay:
        return []
    return [
        "scale: auto: packets are remembered, dealt out or in a pipeline, queues stay: "
        + ", ".join(stay)
    ]


def _as_before(
    keys: Sequence[tuple[Any, ...]],
    groups: _Groups,
    stages: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    running: dict[str, Any],
) -> dict[tuple[Any, ...], int]:
    """Return the worker of each group: the one that has its sources, else the next in turn."""
    before = {str(stage["source"]): stage["worker"] for stage in running["stages"]}
    result: dict[tuple[Any, ...], int] = {}
    for key, stage in stages:
        group = groups.find(key)
        if str(stage["source"]) in before:
            result.setdefault(group, before[str(stage["source"])])
    count = len(running["workers"])
    for i, key in enumerate(key for key in keys if key not in result):
        result[key] = i % count
    return result


def reached(descriptor: Descriptor, path: Sequence[str]) -> dict[str, None]:
    """Return the functions that packets of a path may come to, outputs followed."""
    result: dict[str, None] = {}
    waiting = list(path)
    while waiting:
        name = waiting.pop(0)
        if name not in result and name in descriptor.functions:
            result[name] = None
            for chain in outputs_of(descriptor.functions[name]).values():
                waiting += descriptor.chains[chain].path if chain in descriptor.chains else []
    return result


def _shared(descriptor: Descriptor) -> dict[str, frozenset[str]]:
    """Return the chains whose flows several workers may share, each with those of its flows.

    Chains that pass the same stateful function are shared together, or not at all.
    """
    groups = _Groups()
    stateful: dict[str, list[str]] = {}
    single: list[str] = []  # that must be on one worker
    rewriters: dict[str, frozenset[str]] = {}
    for way in ways(descriptor):
        functions = reached(descriptor, way.path)
        keep = [name for name in functions if is_stateful(descriptor.functions[name])]
        if way.source is None or not keep:
            continue
        stateful[way.name] = keep
        rewriters[way.name] = frozenset(n for n in keep if rewrites(descriptor.functions[n]))
        for name in keep:
            groups.join(("flows", name), ("chain", way.name))
        translated = any(is_translator(descriptor.functions[name]) for name in functions)
        if way.chain.deployment != "inline" or len(rewriters[way.name]) > 1 or translated:
            single.append(way.name)
    together: dict[tuple[Any, ...], list[str]] = {}
    for chain in stateful:
        together.setdefault(groups.find(("chain", chain)), []).append(chain)
    queues = {way.name: _queues(descriptor, way) for way in ways(descriptor)}
    return {
        chain: frozenset(chains)
        for chains in together.values()
        if any(queues[chain] > 1 for chain in chains)
        and not any(chain in single for chain in chains)
        and len({rewriters[chain] for chain in chains}) == 1
        for chain in chains
    }


def _queues(descriptor: Descriptor, way: Way) -> int:
    return 0 if way.source is None else descriptor.ports[way.source].rx_queues


def _handoff_stages(
    descriptor: Descriptor,
    stages: Sequence[dict[str, Any]],
    shared: dict[str, frozenset[str]],
    workers_count: int,
) -> list[dict[str, Any]]:
    """Return the stages of shared chains, and of those dealt out, for what others received."""
    result = []
    for way in ways(descriptor):
        chains = shared.get(way.name, frozenset())
        workers = sorted({stage["worker"] for stage in stages if stage["chain"] in chains})
        if way.source is not None and way.chain.spread != "rss":
            workers = list(range(workers_count))
        if len(workers) > 1:
            result += [
                {
                    "worker": worker,
                    "chain": way.name,
                    "source": {"handoff": True},
                    "path": list(way.path),
                    "sink": {"port": way.sink},
                }
                for worker in workers
            ]
    return result


def _output_stages(
    descriptor: Descriptor, stages: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the stages of the chains that outputs of these stages' functions lead to."""
    result: list[dict[str, Any]] = []
    there: set[tuple[int, str]] = set()
    waiting = list(stages)
    while waiting:
        stage = waiting.pop(0)
        functions = [descriptor.functions[name] for name in stage["path"]]
        for name in [to for function in functions for to in outputs_of(function).values()]:
            if (stage["worker"], name) in there:
                continue
            there.add((stage["worker"], name))
            chain = descriptor.chains[name]
            result.append(
                {
                    "worker": stage["worker"],
                    "chain": name,
                    "source": {"outputs": True},
                    "path": list(chain.path),
                    "sink": {"port": chain.to},
                }
            )
            waiting.append(result[-1])
    return result


def _has_pipeline(descriptor: Descriptor) -> bool:
    return any(c.deployment == "pipeline" for c in descriptor.chains.values())


def _stages(way: Way, queue: int, queues: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    source: dict[str, Any] = {"port": way.source, "queue": queue}
    sink: dict[str, Any] = {"port": way.sink}
    if way.chain.deployment == "inline" or len(way.path) < 2:
        stage = {"chain": way.name, "source": source, "path": list(way.path), "sink": sink}
        return [(("queue", way.source, queue), stage)]
    result = []
    prefix = way.name if queues == 1 else f"{way.name}.q{queue}"
    for i, function in enumerate(way.path):
        after = sink if i == len(way.path) - 1 else {"ring": f"{prefix}.{i + 1}"}
        stage = {"chain": way.name, "source": source, "path": [function], "sink": after}
        result.append((("function", function, queue), stage))
        source = after
    return result


def choose_cores(
    wanted: int, given: Sequence[int] | None, machine: Machine
) -> tuple[list[int], tuple[str, ...]]:
    """Return up to `wanted` cores: the given ones, else chosen; and what to say about them.

    Chosen cores leave the lowest core to the system, take one hardware thread per physical core
    first, and stay on one NUMA node as long as it has enough.
    """
    notes: tuple[str, ...] = ()
    if given:
        cores = list(given[:wanted])
    else:
        spare = sorted(machine.nodes)[1:] or sorted(machine.nodes)
        seen: set[int] = set()
        first: list[int] = []
        second: list[int] = []
        for core in spare:
            (second if core in seen else first).append(core)
            seen |= set(machine.siblings.get(core, (core,)))
        by_node: dict[int, list[int]] = {}
        for core in [*first, *second]:
            by_node.setdefault(machine.nodes[core], []).append(core)
        enough = [cores for _, cores in sorted(by_node.items()) if len(cores) >= wanted]
        cores = (enough[0] if enough else [*first, *second])[:wanted]
    nodes = {machine.nodes[core] for core in cores}
    if len(nodes) > 1:
        notes = (
            f"workers span NUMA nodes {', '.join(map(str, sorted(nodes)))}: "
            "packets between them cost more; choose workers: cores on one node",
        )
    return cores, notes
