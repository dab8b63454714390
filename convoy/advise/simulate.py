# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The fitted model as a profile for the simulator, and advised ways as topologies of a fat tree."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from convoy.advise.fit import Fit, Prediction
from convoy.advise.frames import BURST
from convoy.advise.model import Model
from convoy.advise.parts import AGGREGATED, CONVOYS, Chain, Part, unknowns
from convoy.advise.predict import Planned
from convoy.advise.servers import fits, full
from convoy.advise.traffic import Traffic
from convoy.errors import ConvoyError, InputError
from convoy.sim.costs import Costs, Cycles, Own, Port, line

Document = dict[str, Any]
FAT_TREE_K = 16
HOSTS = FAT_TREE_K**3 // 4  # 1,024
NAME_MAX = 31  # of a stage
MERGED = ("sources", "functions", "sinks", "chains")  # of chains that are simulated together
NO_AGGREGATION: Document = {"none": {}}
PACKETS_MAX = 1e6  # in one simulated run: seconds of the engine for networks with cycles
HEADER = """\
# Advice of `convoy advise`, as the simulator reads it:
#   convoy sim run {name} --report page.html
#   convoy sim sweep {name} --set fabric.fat-tree.place=spread,pack --seeds 1-5
"""


def node_of(fitted: Iterable[Model]) -> Model:
    """Return our node's model: the one with the most rows. Raises ConvoyError."""
    mine = [model for model in fitted if model.kind.device == "convoy"]
    if not mine:
        raise ConvoyError(
            "the simulator's nodes are ours, and the results have no parts of convoy; "
            "measure them: convoy bench run parts parts-convoys"
        )
    return max(mine, key=lambda model: len(model.fit.rows))


def _own(fit: Fit, parts: tuple[Part, ...], size: int, flows: int | None) -> Own | None:
    """Return the work of functions alone: what is predicted, less the ports."""

    def less_ports(chain: Chain) -> float | None:
        bare = Chain((), chain.form, chain.packets, "", chain.flows)
        whole, ports = fit.predict(chain, size), fit.predict(bare, size)
        if not isinstance(whole, Prediction) or not isinstance(ports, Prediction):
            return None
        return round(max(0.0, whole.cycles - ports.cycles), 2)

    plain = less_ports(Chain(parts, flows=flows))
    if plain is None:
        return None
    packets = full(fit, size)
    aggregated = less_ports(Chain(parts, CONVOYS, packets, flows=flows)) if packets > 1 else None
    return Own(cycles=plain, aggregated_cycles=aggregated)


def functions_of(fit: Fit) -> dict[str, tuple[tuple[Part, ...], int | None]]:
    """Return the chains of one function that were measured, by a name: `router-10000`."""
    result: dict[str, tuple[tuple[Part, ...], int | None]] = {"none": ((), None)}
    for row in fit.rows:
        chain = row.chain
        if len(chain.parts) != 1 or chain.form != "plain" or chain.own:
            continue
        part, flows = chain.parts[0], chain.flows
        levels = [one.level for one in unknowns(chain) if one.level is not None]
        name = part.function
        if name in result and result[name] != ((part,), flows) and levels:
            name = f"{name}-{max(levels)}"
        result.setdefault(name, ((part,), flows))
    return result


def costs_of(
    model: Model, size: int, chains: Mapping[str, tuple[tuple[Part, ...], int | None]]
) -> Costs:
    """Return the costs of our node as the simulator has them. Raises ConvoyError."""
    fit = model.fit
    ports = {s: fit.cost("ports, plain", s) for s in fit.sizes()}
    known = {s: cycles for s, cycles in ports.items() if cycles is not None}
    if len(known) < 2:
        raise ConvoyError(
            "the rows do not determine what ports cost at two frame sizes; "
            "measure them: convoy bench run parts parts-convoys"
        )
    fixed, per_byte = line(list(known.items()))
    per_byte = max(0.0, per_byte)
    bare = fit.predict(Chain(()), size)
    if isinstance(bare, Prediction):  # exact at the size that is asked for
        fixed = bare.cycles - per_byte * size
    fixed = max(0.0, fixed)
    at = min(fit.sizes(aggregated=True), default=0)
    each = fit.cost("ports, each packet in convoys", at, aggregated=True) if at else None
    frame = fit.cost("ports, each convoy", at, aggregated=True) if at else None
    if each is None or frame is None:
        raise ConvoyError(
            "the rows do not determine what convoys cost; "
            "measure them: convoy bench run parts-convoys"
        )
    aggregating = fit.cost(f"ports, {AGGREGATED}", size) if size in fit.sizes() else None
    own = {name: _own(fit, parts, size, flows) for name, (parts, flows) in chains.items()}
    return Costs(
        tsc_hz=model.tsc_hz,
        port=Port(cycles=round(fixed, 2), cycles_per_byte=round(per_byte, 4)),
        # What a convoy costs once is a frame in and out again, and more.
        frame=Cycles(cycles=round(max(0.0, frame - fixed), 2)),
        packet=Cycles(cycles=round(max(0.0, each - per_byte * at), 2)),
        aggregating=None
        if aggregating is None
        else Cycles(cycles=round(max(0.0, aggregating - per_byte * size), 2)),
        functions={name: one for name, one in own.items() if one is not None},
    )


def profile_document(model: Model, costs: Costs, name: str, source: str, size: int) -> Document:
    """Return the profile, schema convoy.sim.profile/1."""
    errors = "; ".join(f"packets {how}: {rows} rows, standard error {sigma:.1%}"
                       for how, rows, _, sigma in model.fit.errors())  # fmt: skip
    if "none" not in costs.functions:
        raise ConvoyError("the rows do not determine what ports cost by themselves")
    return {
        "schema": "convoy.sim.profile/1",
        "name": name,
        "source": f"convoy advise, fitted to measured parts, {size} B: {source} ({errors})",
        "max_rate_pps": {
            "plain": round(costs.rate_pps("none", 1, size)),
            "aggregated": round(costs.rate_pps("none", max(2, fits(size)), size)),
        },
        "costs": costs.model_dump(exclude_none=True),
    }


def function_name(parts: Sequence[Part]) -> str:
    """Return the name that functions in one process have in a profile."""
    return "-".join(part.function for part in parts) or "none"


def _behind(before: int, wanted: int) -> int:
    """Return the fewest instances, at least those wanted, that so many before feed evenly."""
    if wanted > before:
        return -(-wanted // before) * before
    return next(n for n in range(wanted, before + 1) if before % n == 0)


def instances_of(way: Planned) -> list[int]:
    """Return how many hosts each server's functions get: at least the cores, and evenly fed.

    Behind so many instances stands a divisor or a multiple of them: each gets as much as the rest.
    """
    wanted = [node.cores for node in way.nodes]
    best: list[int] = []
    for first in range(wanted[0], 2 * wanted[0]):
        counts = [first]
        for each in wanted[1:]:
            counts.append(_behind(counts[-1], each))
        if not best or sum(counts) < sum(best):
            best = counts
    return best


def topology(way: Planned, traffic: Traffic, name: str) -> Document:
    """Return an advised way on a fat tree of 1,024 hosts, one core each. Raises InputError."""
    if traffic.convoys > 1:
        raise InputError(
            "--simulate: sources of the simulator send packets one by one; give --traffic without "
            f"'in convoys of {traffic.convoys}'"
        )
    instances = instances_of(way)
    if sum(instances) > HOSTS:
        raise InputError(
            f"--simulate: {sum(instances)} cores, and the fat tree has {HOSTS} hosts of one core "
            "each; give a lower rate"
        )
    stages = []
    for i, node in enumerate(way.nodes, 1):
        server = f"s{i}-" if len(way.nodes) > 1 else ""
        title = f"{server}{function_name(node.chain.parts)}"[:NAME_MAX].rstrip("-")
        stages.append((title, node))
    first, last = instances[0], instances[-1]
    queue = {"burst": BURST}
    frames = {"frames": {"max-packets": max(2, full(way.model.fit, int(traffic.size)))}}
    waits = {"aggregation": {"queue": queue | {"wait-us": way.way.wait_us}} | frames}
    duration = min(0.01, PACKETS_MAX / way.load_pps)
    return {
        "title": f"{name}: {way}"[:200],
        "profile": "profile.json",
        "sources": {
            "users": {
                "poisson": {
                    "mpps": round(way.load_pps / 1e6 / first, 6),
                    "sizes": int(traffic.size),
                    "flows": 1000,
                },
                "count": first,
            }
        },
        "functions": {
            stage: {
                "like": function_name(node.chain.parts),
                "instances": count,
                "queue-packets": 1024,
                "next-hop": "hash",
                **(waits if way.way.wait_us and stage != stages[-1][0] else {}),
            }
            for (stage, node), count in zip(stages, instances, strict=True)
        },
        "sinks": {"exits": {"instances": last}},
        "chains": {
            name: {
                "from": "users",
                "path": [stage for stage, _ in stages],
                "to": "exits",
                "spread": "tree",
            }
        },
        "aggregation": {"queue": queue} | frames if way.way.fills else NO_AGGREGATION,
        "links": {"gbps": 100, "delay-us": 1, "queue-frames": 1000},
        "fabric": {"fat-tree": {"k": FAT_TREE_K, "place": "spread"}},
        "simulate": {"duration-s": float(f"{duration:.3g}")},
    }


def together(chains: Mapping[str, Planned], traffic: Traffic) -> Document:
    """Return chains, each by its way, on one fat tree that they share. Raises InputError.

    Hosts have one core, so that chains share links and switches.
    """
    result: Document = {}
    fills = any(way.way.fills for way in chains.values())
    for number, (name, way) in enumerate(chains.items(), 1):
        one = topology(way, traffic, name)
        begin = f"c{number}-"
        (chain,) = one["chains"].values()
        chain |= {
            "from": f"{begin}users", "to": f"{begin}exits",
            "path": [_named(begin, stage) for stage in chain["path"]],
        }  # fmt: skip
        if fills and not way.way.fills:
            for function in one["functions"].values():
                function["aggregation"] = NO_AGGREGATION
        if not result or way.way.fills:
            result = one | {part: result.get(part, {}) for part in MERGED}
        for part in MERGED:
            result[part] = result[part] | {
                name if part == "chains" else _named(begin, key): value
                for key, value in one[part].items()
            }
    hosts = sum(one["instances"] for one in result["functions"].values())
    if hosts > HOSTS:
        raise InputError(
            f"--simulate: all chains together: {hosts} cores, and the fat tree has {HOSTS} hosts "
            "of one core each; give a lower rate"
        )
    duration = min(0.01, PACKETS_MAX / sum(way.load_pps for way in chains.values()))
    return result | {
        "title": f"{', '.join(chains)}, together"[:200],
        "simulate": {"duration-s": float(f"{duration:.3g}")},
    }


def _named(begin: str, name: str) -> str:
    return f"{begin}{name}"[:NAME_MAX].rstrip("-")


def text(document: Document, name: str) -> str:
    """Return a topology as a file has it."""
    return HEADER.format(name=name) + yaml.safe_dump(document, sort_keys=False, width=100)
