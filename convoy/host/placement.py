# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which cores, on which NUMA node, of which server: computed from hwloc's view of a machine.

hwloc's own tool, lstopo, writes that view as XML, of this machine or of one that a text describes
("numa:2 core:8"): so placements are tested for machines that are not here.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from convoy.errors import ConvoyError, InputError
from convoy.host.command import CommandError, run

LSTOPO = "lstopo-no-graphics"
Where = Literal["same-node", "other-node", "other-server"]


@dataclass(frozen=True)
class Cpu:
    """A hardware thread."""

    number: int
    core: int  # physical core, counted over the machine
    node: int


@dataclass(frozen=True)
class Topology:
    """A machine as hwloc sees it."""

    cpus: tuple[Cpu, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """Return the NUMA nodes that have CPUs."""
        return tuple(sorted({cpu.node for cpu in self.cpus}))


@dataclass(frozen=True)
class Placement:
    """Who polls where. Two servers: the second half of the functions is on another machine."""

    tester: int
    functions: tuple[int, ...]  # one CPU for each
    remote: tuple[int, ...] = ()  # CPUs of the other server, for its functions
    notes: tuple[str, ...] = ()


def read(synthetic: str | None = None) -> Topology:
    """Ask hwloc about this machine, or about one that a text describes. Raises ConvoyError."""
    command = [LSTOPO, "--of", "xml"]
    if synthetic is not None:
        # The last level must be hardware threads; people leave it out.
        text = synthetic if "pu:" in synthetic.lower() else f"{synthetic} pu:1"
        command += ["--input", text]
    try:
        ended = run(command)
    except CommandError as error:
        raise ConvoyError(f"{error} (Debian: apt-get install hwloc-nox)") from None
    if ended.exit_code != 0 or "<topology" not in ended.stdout:
        raise InputError(f"topology '{synthetic or 'this machine'}': {ended.lines()[-1]}")
    return parse(ended.stdout)


def parse(xml: str) -> Topology:
    """Read hwloc's XML."""
    result: list[Cpu] = []
    cores = 0

    def walk(element: ElementTree.Element, node: int, core: int) -> None:
        nonlocal cores
        children = element.findall("object")
        for child in children:
            if child.get("type") == "NUMANode":
                node = int(child.get("os_index", "0"))  # its CPUs are its brothers
        for child in children:
            kind, here = child.get("type"), core
            if kind == "Core":
                here, cores = cores, cores + 1
            if kind == "PU":
                result.append(Cpu(int(child.get("os_index", "0")), here, node))
            walk(child, node, here)

    walk(ElementTree.fromstring(xml), 0, -1)
    return Topology(tuple(sorted(result, key=lambda cpu: cpu.number)))


def _spread(topology: Topology, node: int, allowed: Collection[int] | None) -> list[int]:
    """Return a node's CPUs, one of each physical core before any second one."""
    seen: set[int] = set()
    first: list[int] = []
    second: list[int] = []
    for cpu in topology.cpus:
        if cpu.node == node and (allowed is None or cpu.number in allowed):
            (second if cpu.core in seen else first).append(cpu.number)
            seen.add(cpu.core)
    return [*first, *second]


def place(
    topology: Topology, functions: int, where: Where, allowed: Collection[int] | None = None
) -> Placement:
    """Place a tester and so many functions. Raises InputError where there are too few CPUs.

    same-node: all beside the tester. other-node: every second function on another node, so that
    each hop crosses. other-server: the second half on another machine like this one.
    """
    by_node = {node: _spread(topology, node, allowed) for node in topology.nodes}
    home = max(by_node, key=lambda node: (len(by_node[node]), -node))
    near = by_node[home]
    if where == "same-node":
        wanted = near[: functions + 1]
        _enough(wanted, functions + 1, f"node {home}")
        return Placement(wanted[0], tuple(wanted[1:]), (), _shared(topology, wanted))
    if where == "other-node":
        others = [cpu for node in by_node if node != home for cpu in by_node[node]]
        if not others:
            raise InputError("placement other-node: this machine has one NUMA node")
        far = functions // 2
        wanted = near[: functions - far + 1]
        _enough(wanted, functions - far + 1, f"node {home}")
        _enough(others[:far], far, "the other nodes")
        chosen = [others[i // 2] if i % 2 else wanted[1 + i // 2] for i in range(functions)]
        return Placement(wanted[0], tuple(chosen), (), _shared(topology, [wanted[0], *chosen]))
    there = functions // 2
    here = near[: functions - there + 1]
    _enough(here, functions - there + 1, f"node {home}")
    return Placement(here[0], tuple(here[1:]), tuple(near[1 : there + 1]), _shared(topology, here))


def _enough(cpus: list[int], wanted: int, what: str) -> None:
    if len(cpus) < wanted:
        raise InputError(f"placement: {wanted} CPUs are needed on {what}, there are {len(cpus)}")


def _shared(topology: Topology, chosen: list[int]) -> tuple[str, ...]:
    cores = [cpu.core for cpu in topology.cpus if cpu.number in chosen]
    if len(cores) == len(set(cores)):
        return ()
    return ("two hardware threads of one core poll: each is slower than alone",)
