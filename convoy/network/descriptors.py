# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The descriptor of each node of a network: what a person would have written for it."""

from collections.abc import Mapping
from typing import Any

import yaml

from convoy.network.load import Instance, Loaded, Way, raw
from convoy.network.model import Attachment

Document = dict[str, Any]
OF_NODE = ("flows", "workers", "memory")  # keys that a node has as its descriptor


def datapath_ids(loaded: Loaded) -> dict[int, str]:
    """Return the nodes by their OpenFlow datapath ids: from 1, in the order of the file."""
    return dict(enumerate(loaded.network.nodes, 1))


def descriptor_of(loaded: Loaded, node: str, override: Mapping[str, Any] | None = None) -> Document:
    """Return a node's descriptor, as plain values.

    Until a controller says otherwise, chains go to the first instance of each function, and flows
    of those that are spread by flow to all of them.
    override: keys of the descriptor that stand in place of the network's.
    """
    ways = [way for way in loaded.ways if _is_on(way, node)]
    links = loaded.links_of(node)
    functions = [
        name
        for name in loaded.network.nodes[node].functions
        if any(name in way.chain.path for way in ways)
    ]
    # Links come first: their numbers are those of the node's OpenFlow tables.
    ports: Document = {link: _link_port(loaded, link, node) for link in links}
    ports |= raw(loaded, "nodes", node, "ports") or {}
    result: Document = {
        "ports": ports,
        "functions": {name: raw(loaded, "functions", name) for name in functions},
        "next-hops": _next_hops(loaded, node, ways),
        "chains": _chains(loaded, node, ways),
    }
    if loaded.network.controller is not None:
        result["openflow"] = {"controllers": loaded.network.controller}
    result |= {key: value for key in OF_NODE if (value := raw(loaded, "nodes", node, key))}
    result |= override or {}
    if "openflow" in result:
        number = next(n for n, name in datapath_ids(loaded).items() if name == node)
        result["openflow"] = {**result["openflow"], "datapath-id": f"{number:x}"}
    return {key: value for key, value in result.items() if value}


def as_yaml(loaded: Loaded, node: str, descriptor: Mapping[str, Any]) -> str:
    """Return a descriptor as a file has it."""
    text: str = yaml.dump(
        dict(descriptor), Dumper=yaml.SafeDumper, sort_keys=False, default_flow_style=None,
        width=100, allow_unicode=True,
    )  # fmt: skip
    return f"# Node {node} of {loaded.text.path}, made by convoy network: change it there.\n{text}"


def _is_on(way: Way, node: str) -> bool:
    return way.entry[0] == node or any(one.node == node for stage in way.stages for one in stage)


def _link_port(loaded: Loaded, link: str, node: str) -> Document:
    of_link = loaded.network.links[link]
    attached = of_link.nodes[node]
    port = raw(loaded, "links", link, "nodes", node, "port") or {"af_packet": link}
    others = [other.ip for name, other in of_link.nodes.items() if name != node]
    convoys: Document = {"ip": attached.ip}
    if len(others) <= 16:
        convoys["from"] = others
    return {**port, "mtu": of_link.mtu, "convoys": convoys}


def _next_hops(loaded: Loaded, node: str, ways: list[Way]) -> Document:
    """Return whom a node sends to, each with the SC-IDs that are its own for a start."""
    result: Document = {}
    for way in ways:
        for stage, instances in enumerate(way.stages):
            if node not in way.senders(stage):
                continue
            link = way.out[node]
            for instance in instances:
                next_hop = result.setdefault(instance.name, _next_hop(loaded, link, instance))
                if way.by_flow or instance == instances[0]:
                    next_hop["for"].append(way.chain.match.model_dump(exclude_none=True))
    return result


def _next_hop(loaded: Loaded, link: str, instance: Instance) -> Document:
    of_link = loaded.network.links[link]
    attached: Attachment = of_link.nodes[instance.node]
    return {
        "port": link,
        "mac": attached.mac,
        "ip": attached.ip,
        "nfi": instance.nfi,
        "mtu": of_link.mtu,
        "encapsulate": True,
        "for": [],
    }


def _chains(loaded: Loaded, node: str, ways: list[Way]) -> Document:
    result: Document = {}
    for way in ways:
        match = way.chain.match.model_dump(exclude_none=True)
        begin, port = way.entry
        chains = []
        if begin == node:
            chains.append({"match": match, "from": port, "to": way.out[node]})
        for stage, instances in enumerate(way.stages):
            if all(one.node != node for one in instances):
                continue
            last = stage == len(way.stages) - 1
            rest: Document = (
                {"to": instances[0].what}
                if last
                else {"to": way.out[node], "path": [way.chain.path[stage]]}
            )
            incoming = dict.fromkeys(way.out[sender] for sender in way.senders(stage))
            chains += [{"match": match, "from": link, **rest} for link in incoming]
        for i, chain in enumerate(chains):
            name = way.name if i == 0 else f"{way.name}-{i + 1}"
            result[name] = {**chain, "match": dict(match)}
    return result
