# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A fat tree around function instances: hosts, switches, links both ways, shortest routes."""

from collections import defaultdict, deque
from typing import Any

from convoy.sim.model import Topology

Json = dict[str, Any]


def join(
    topology: Topology,
    nodes: list[Json],
    links: list[Json],
    instances: dict[str, list[int]],
    pairs: list[tuple[int, int]],
    link: Json,
) -> None:
    """Add the fabric to nodes and links, and the routes that the pairs (from, to) need."""
    assert topology.fabric is not None
    k = topology.fabric.fat_tree.k

    def both(a: int, b: int) -> None:
        for start, end in ((a, b), (b, a)):
            if nodes[start]["kind"] == "sink":
                continue
            title = f"{nodes[start]['name']}-{nodes[end]['name']}"
            links.append({"name": title, "from": start, "to": end, **link})

    hosts = _switches(k, nodes, both)
    for name, place in places(topology, instances).items():
        for node, host in zip(instances[name], place, strict=True):
            both(node, hosts[host])
    _routes(nodes, links, pairs)


def _switches(k: int, nodes: list[Json], both: Any) -> list[int]:
    """Add switches and hosts; return the hosts' indexes."""

    def add(name: str) -> int:
        nodes.append({"name": name, "kind": "fabric", "next_hops": [], "routes": []})
        return len(nodes) - 1

    half = k // 2
    cores = [add(f"core.{i}") for i in range(half * half)]
    hosts: list[int] = []
    for pod in range(k):
        aggs = [add(f"agg.{pod}.{i}") for i in range(half)]
        for i, agg in enumerate(aggs):
            for core in cores[i * half : (i + 1) * half]:
                both(agg, core)
        for e in range(half):
            edge = add(f"edge.{pod}.{e}")
            for agg in aggs:
                both(edge, agg)
            for _ in range(half):
                hosts.append(add(f"host.{len(hosts)}"))
                both(edge, hosts[-1])
    return hosts


def places(topology: Topology, instances: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return each instance's host: as the file says, else over pods in turn or side by side."""
    assert topology.fabric is not None
    tree = topology.fabric.fat_tree
    per_pod = tree.k**2 // 4
    count = per_pod * tree.k
    given = {name: f.hosts for name, f in topology.functions.items()}
    given |= {name: s.hosts for name, s in topology.sinks.items()}
    result = {name: list(hosts) for name, hosts in given.items() if hosts is not None}
    rest = [
        (position / len(nodes), order, name)
        for order, (name, nodes) in enumerate(instances.items())
        if name not in result
        for position in range(len(nodes))
    ]
    if tree.place == "pack":
        rest.sort()  # first instances of all functions, then second ones
    each = -(-len(rest) // count) if tree.place == "pack" else 1
    for i, (_, _, name) in enumerate(rest):
        turn = i // each
        if tree.place == "spread":
            turn = (i % tree.k) * per_pod + (i // tree.k) % per_pod
        result.setdefault(name, []).append(turn % count)
    return result


def _routes(nodes: list[Json], links: list[Json], pairs: list[tuple[int, int]]) -> None:
    """Give every node on a shortest path its links towards the goal (several: equal cost)."""
    into: dict[int, list[int]] = defaultdict(list)
    out: dict[int, list[int]] = defaultdict(list)
    for index, link in enumerate(links):
        into[link["to"]].append(index)
        out[link["from"]].append(index)
    senders: dict[int, list[int]] = defaultdict(list)
    for start, goal in pairs:
        senders[goal].append(start)
    for goal, starts in senders.items():
        distance = _distances(goal, nodes, links, into)
        todo, seen = deque(starts), set(starts)
        while todo:
            at = todo.popleft()
            if at == goal:
                continue
            best = [i for i in out[at] if distance.get(links[i]["to"], 1 << 30) == distance[at] - 1]
            nodes[at]["routes"].append({"dst": goal, "links": best})
            for i in best:
                if links[i]["to"] not in seen:
                    seen.add(links[i]["to"])
                    todo.append(links[i]["to"])


def _distances(
    goal: int, nodes: list[Json], links: list[Json], into: dict[int, list[int]]
) -> dict[int, int]:
    """Return the hops to the goal. Frames pass through fabric nodes only."""
    distance = {goal: 0}
    todo = deque([goal])
    while todo:
        at = todo.popleft()
        if at != goal and nodes[at]["kind"] != "fabric":
            continue
        for i in into[at]:
            before = links[i]["from"]
            if before not in distance:
                distance[before] = distance[at] + 1
                todo.append(before)
    return distance
