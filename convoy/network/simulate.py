# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network file as a topology of the simulator: each instance a function, chains spread over them.

Chains go where a controller would send them with all nodes there and none known to be busy.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convoy.base.problem import Problem, known
from convoy.base.yaml_text import Text, read
from convoy.chain.functions import function_type
from convoy.network.load import Loaded, check, is_network, raw
from convoy.network.steering import Steering
from convoy.sim import load, profile


def open_topology(name: str, overrides: Mapping[str, Any]) -> load.Loaded:
    """Open a topology as convoy.sim.load does, or a network file as one. Raises InputError."""
    path = Path(name)
    text = read(path, load.BEGIN) if path.is_file() else None
    if text is None or not is_network(text):
        return load.open_topology(name, overrides)
    topology = topology_of(text, path.parent.absolute())
    for place, value in overrides.items():
        load.override(topology, place, value)
    return load.check(topology, path.parent.absolute())


def topology_of(text: Text, base: Path) -> Text:
    """Return the topology of a parsed network. Raises DescriptorError with every problem."""
    loaded = check(text, base)
    network = loaded.network
    costs = profile.load(network.simulation.profile, base).costs
    known_types = {} if costs is None else costs.functions
    problems = [
        Problem(("chains", name), "has no traffic", "add traffic: {cbr: {mpps: 0.1}} or another")
        for name, chain in network.chains.items()
        if chain.traffic is None
    ]
    problems += [
        Problem(
            ("functions", name),
            f"profile {network.simulation.profile} has no costs of it",
            f"give a profile that has; {known('functions', function_type(function), known_types)}",
            function_type(function),
        )
        for name, function in network.functions.items()
        if function_type(function) not in known_types
    ]
    problems += [
        Problem(
            ("chains", way.name, "spread"),
            "flows of one chain that take different ways are not simulated",
            "write chains",
            "'flows'",
        )
        for way in loaded.ways
        if way.by_flow
    ]
    if problems:
        raise text.error(problems)
    return Text.of_data(_topology(loaded), text.path)


def _topology(loaded: Loaded) -> dict[str, Any]:
    network = loaded.network
    steering = Steering(loaded)
    steering.spread(network.nodes, {})
    functions: dict[str, Any] = {}
    chains: dict[str, Any] = {}
    for way in loaded.ways:
        entry = f"{way.entry[1]}-{way.entry[0]}"  # the node that sends its packets on
        functions[entry] = {"like": "none"}
        path = [entry]
        for stage, function in enumerate(way.chain.path):
            ((instance, _),) = steering.chosen(way, stage)  # all nodes are there
            path.append(instance.name)
            functions[instance.name] = {"like": function_type(network.functions[function])}
        chains[way.name] = {"from": way.name, "path": path, "to": way.stages[-1][0].name}
    simulation = raw(loaded, "simulation") or {}
    return {
        "title": Path(loaded.text.path).stem,
        "profile": network.simulation.profile,
        "sources": {name: raw(loaded, "chains", name, "traffic") for name in network.chains},
        "functions": functions,
        "chains": chains,
        "aggregation": {"queue": {"burst": 32}},
        "links": {"gbps": network.simulation.gbps, "delay-us": network.simulation.delay_us},
        **({"simulate": simulation["simulate"]} if "simulate" in simulation else {}),
    }
