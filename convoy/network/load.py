# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network file to a checked network: what each node passes on to which others, by what link."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convoy.base.problem import Loc, Problem, known, shown
from convoy.base.validate import validate
from convoy.base.yaml_text import Text, parse, read
from convoy.chain.functions import is_stateful
from convoy.network.model import CHAINS_MAX, INSTANCES_MAX, Chain, Network

BEGIN = "begin with nodes: and links: (see examples/network/pa-flow.yaml)"


@dataclass(frozen=True)
class Instance:
    """Where a chain's packets may go: a function of a node, or, in the end, a port of one."""

    node: str
    what: str  # the function or the port
    nfi: int  # NFI-ID

    @property
    def name(self) -> str:
        """What next hops and messages call it."""
        return f"{self.what}-{self.node}"


@dataclass(frozen=True)
class Way:
    """A chain with the instances of its stages: the function's, and last the port it leaves by."""

    name: str
    chain: Chain
    stages: tuple[tuple[Instance, ...], ...]
    # By node that passes its packets on: the link that all instances of the next stage are on.
    out: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_flow(self) -> bool:
        """Return whether each flow goes to one of the instances, not the whole chain."""
        return self.chain.spread == "flows"

    @property
    def entry(self) -> tuple[str, str]:
        """The node and port that its packets come in by."""
        return _place(self.chain.from_)

    def senders(self, stage: int) -> tuple[str, ...]:
        """Return the nodes that send to a stage's instances."""
        if stage == 0:
            return (self.entry[0],)
        return tuple(instance.node for instance in self.stages[stage - 1])


@dataclass(frozen=True)
class Loaded:
    """A network that is right, and where it came from."""

    network: Network
    text: Text
    base: Path  # relative paths in it start here
    ways: tuple[Way, ...]

    def links_of(self, node: str) -> list[str]:
        """Return the links that a node is on, in the file's order."""
        return [name for name, link in self.network.links.items() if node in link.nodes]

    def instances(self) -> list[Instance]:
        """Return all instances, by their NFI-IDs."""
        by_nfi = {one.nfi: one for way in self.ways for stage in way.stages for one in stage}
        return [by_nfi[nfi] for nfi in sorted(by_nfi)]


def load(path: Path) -> Loaded:
    """Load a network from a file. Raises DescriptorError with every problem."""
    return check(read(path, BEGIN), path.parent.absolute())


def loads(content: str, base: Path | None = None, name: str = "<text>") -> Loaded:
    """Load a network from memory. Raises DescriptorError."""
    return check(parse(content.encode(), name, BEGIN), base or Path.cwd())


def is_network(text: Text) -> bool:
    """Tell whether a parsed file is a network, not a topology or a descriptor."""
    return isinstance(text.data, dict) and "nodes" in text.data and "links" in text.data


def check(text: Text, base: Path) -> Loaded:
    """Check a parsed network. Raises DescriptorError with every problem."""
    network = validate(text, Network)
    problems = [*_names(network), *_places(network)]
    if problems:
        raise text.error(problems)
    numbers = _Numbers()
    ways = [_way(network, name, chain, numbers) for name, chain in network.chains.items()]
    problems = [*_doubles(ways), *_on_links(network, ways), *_too_many(network, ways)]
    problems += _by_flow(network, ways)
    if problems:
        raise text.error(problems)
    return Loaded(network, text, base, tuple(_with_links(network, way) for way in ways))


def _place(text: str) -> tuple[str, str]:
    node, _, port = text.partition("/")
    return node, port


class _Numbers:
    """NFI-IDs: from 1, in the order of the file."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def of(self, node: str, what: str) -> Instance:
        return Instance(node, what, self._known.setdefault((node, what), len(self._known) + 1))


def _way(network: Network, name: str, chain: Chain, numbers: _Numbers) -> Way:
    stages = [
        tuple(
            numbers.of(node, function)
            for node, values in network.nodes.items()
            if function in values.functions
        )
        for function in chain.path
    ]
    return Way(name, chain, (*stages, (numbers.of(*_place(chain.to)),)))


def _with_links(network: Network, way: Way) -> Way:
    out = {
        node: links[0]
        for stage in range(len(way.stages))
        for node in way.senders(stage)
        if (links := _common(network, node, way.stages[stage]))
    }
    return Way(way.name, way.chain, way.stages, out)


def _common(network: Network, node: str, to: tuple[Instance, ...]) -> list[str]:
    """Return the links that a node shares with all of these instances' nodes."""
    return [
        name
        for name, link in network.links.items()
        if node in link.nodes and all(instance.node in link.nodes for instance in to)
    ]


def _names(network: Network) -> Iterator[Problem]:
    for link, values in network.links.items():
        seen: dict[str, str] = {}
        for node, attached in values.nodes.items():
            at: Loc = ("links", link, "nodes", node)
            if node not in network.nodes:
                yield Problem(at, "no such node", known("nodes", node, network.nodes), shown(node))
            elif link in network.nodes[node].ports:
                yield Problem(at, "has a port that is called as the link", "rename one of them")
            for key in (attached.ip, attached.mac):
                if key in seen:
                    yield Problem(at, f"is that of node {shown(seen[key])}", "give another", key)
                seen[key] = node
            if attached.port is not None and attached.port.convoys is not None:
                what = "has convoys of its own"
                yield Problem((*at, "port"), what, "remove them: the link's are made of its nodes")
    for node, of_node in network.nodes.items():
        for i, function in enumerate(of_node.functions):
            at = ("nodes", node, "functions", i)
            if function not in network.functions:
                fix = known("functions", function, network.functions)
                yield Problem(at, "no such function", fix, shown(function))
            elif function in of_node.functions[:i]:
                yield Problem(
                    at, "is there twice", "a node has one instance of it", shown(function)
                )


def _places(network: Network) -> Iterator[Problem]:
    ids: dict[str, str] = {}
    for name, chain in network.chains.items():
        at: Loc = ("chains", name)
        for key, place in (("from", chain.from_), ("to", chain.to)):
            node, port = _place(place)
            if node not in network.nodes:
                fix = known("nodes", node, network.nodes)
                yield Problem((*at, key), "no such node", fix, shown(node))
            elif port not in network.nodes[node].ports:
                fix = known("ports", port, network.nodes[node].ports)
                yield Problem((*at, key), f"{node} has no such port", fix, shown(port))
        scid = str(chain.match)
        if scid == "everything":
            yield Problem((*at, "match"), "has no SC-ID", "give it {vlan: …} or {vni: …}")
        elif scid in ids:
            what = f"is that of chain {shown(ids[scid])}"
            yield Problem((*at, "match"), what, "give each chain an SC-ID of its own", scid)
        ids.setdefault(scid, name)
        for i, function in enumerate(chain.path):
            if function not in network.functions:
                fix = known("functions", function, network.functions)
                yield Problem((*at, "path", i), "no such function", fix, shown(function))
            elif all(function not in node.functions for node in network.nodes.values()):
                fix = f"add it to a node: functions: [{function}]"
                yield Problem((*at, "path", i), "runs on no node", fix, shown(function))


def _doubles(ways: list[Way]) -> Iterator[Problem]:
    """A node passes a chain's packets on to one next stage: SC-ID and port are all it goes by."""
    names: dict[str, tuple[str, str]] = {}
    for way in ways:
        seen: dict[str, str] = {}
        for stage in range(len(way.stages)):
            what = "its beginning" if stage == 0 else f"its function {way.chain.path[stage - 1]}"
            for node in way.senders(stage):
                if node in seen:
                    fix = "run them on different nodes (one machine may have several)"
                    words = f"node {node} has {seen[node]} and {what}"
                    yield Problem(("chains", way.name, "path"), words, fix)
                seen[node] = what
        for instance in (one for stage in way.stages for one in stage):
            other = names.setdefault(instance.name, (instance.node, instance.what))
            if other != (instance.node, instance.what):
                words = f"{'/'.join(other)} and {instance.node}/{instance.what} are both called"
                yield Problem(("nodes", instance.node), words, "rename one", shown(instance.name))
            elif len(instance.name) > 31:
                yield Problem(
                    ("nodes", instance.node), "is too long a name", "31 characters are the most",
                    shown(instance.name),
                )  # fmt: skip


def _on_links(network: Network, ways: list[Way]) -> Iterator[Problem]:
    for way in ways:
        for stage, instances in enumerate(way.stages):
            for node in way.senders(stage):
                here = [one for one in instances if one.node == node]
                if here:
                    words = f"node {node} would send to its own {here[0].what}"
                    fix = "run them on different nodes (one machine may have several)"
                    yield Problem(("chains", way.name, "path"), words, fix)
                elif not _common(network, node, instances):
                    nodes = ", ".join(one.node for one in instances)
                    words = f"no link joins {node} with all of: {nodes}"
                    yield Problem(("chains", way.name, "path"), words, "add them to one link")


def _too_many(network: Network, ways: list[Way]) -> Iterator[Problem]:
    for node in network.nodes:
        chains = sum(_begin_at(network, way, node) for way in ways)
        if chains > CHAINS_MAX:
            words = f"has {chains} chains, by the links they come from; {CHAINS_MAX} are the most"
            yield Problem(("nodes", node), words, "spread them over more nodes")


def _by_flow(network: Network, ways: list[Way]) -> Iterator[Problem]:
    for way in (way for way in ways if way.by_flow):
        for function, instances in zip(way.chain.path, way.stages, strict=False):
            if is_stateful(network.functions[function]):
                yield Problem(
                    ("chains", way.name, "spread"),
                    f"{function} remembers flows, and answers would reach another instance of it",
                    "write chains",
                    "'flows'",
                )
            elif len(instances) > INSTANCES_MAX:
                yield Problem(
                    ("chains", way.name, "spread"),
                    f"{function} has {len(instances)} instances; {INSTANCES_MAX} are the most",
                    "write chains, or run it on fewer nodes",
                    "'flows'",
                )


def _begin_at(network: Network, way: Way, node: str) -> int:
    count = int(way.entry[0] == node)
    for stage, instances in enumerate(way.stages):
        if any(one.node == node for one in instances):
            count += len({
                link
                for sender in way.senders(stage)
                for link in _common(network, sender, instances)[:1]
            })  # fmt: skip
    return count


def raw(loaded: Loaded, *place: str) -> Any:
    """Return what the file itself has at a place; None: nothing."""
    at = loaded.text.data
    for key in place:
        at = at.get(key) if isinstance(at, dict) else None
    return at
