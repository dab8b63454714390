# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A whole network on this machine: each node in a network namespace, the links between them.

Interfaces of links are veth pairs, joined by a bridge where a link has more than two nodes. Nodes
reach the controller by a network of its own, as they would in a data centre. Nothing leaves the
namespaces, and all of it goes with this process.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from convoy.base.yaml_text import Text
from convoy.chain.load import check_text
from convoy.chain.openflow import PORT
from convoy.chain.plan import make_plan
from convoy.chain.ports import AfPacket, AfXdp
from convoy.client import ClientError
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace, join
from convoy.host.node import Node
from convoy.host.scope import Scope
from convoy.network.controller import SILENT_S, Controller, Event
from convoy.network.descriptors import descriptor_of
from convoy.network.load import Loaded

HUB = "169.254.0.1"  # the controller's address
MEMORY = {"hugepages": "never", "mb": 128}
SILENT = """
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
"""


class LocalNetwork(Scope):
    """A network that runs here. Use it with `with`. Needs root, for the namespaces."""

    def __init__(
        self,
        loaded: Loaded,
        on_event: Callable[[Event], None] = lambda event: None,
        on_line: Callable[[str, str], None] = lambda node, line: None,
        silent_s: float = SILENT_S,
    ) -> None:
        """Prepare; on_event, silent_s: as the controller's. on_line: told what a node says."""
        self._loaded = loaded
        self._on_event = on_event
        self._on_line = on_line
        self._silent_s = silent_s
        self._stack = ExitStack()
        self._namespaces: dict[str, Namespace] = {}
        self._counts: dict[str, dict[str, Any]] = {}  # of nodes that have ended, the last known
        self.nodes: dict[str, Node] = {}  # that run
        self.controller: Controller | None = None

    def __enter__(self) -> Self:
        """Start everything. Raises InputError or ConvoyError; nothing is left then."""
        if os.geteuid() != 0:
            raise ConvoyError("network namespaces need root; the nodes themselves do not")
        try:
            plans = {node: self._plan(node) for node in self._loaded.network.nodes}
            hub = self._stack.enter_context(Namespace())
            hub.run(SILENT)
            for node in plans:
                self._namespaces[node] = self._stack.enter_context(Namespace())
                self._namespaces[node].run(SILENT)
            self._join(hub)
            self.controller = self._stack.enter_context(
                Controller(self._loaded, (HUB, PORT), self._on_event, hub.command(), self._silent_s)
            )
            for node in plans:
                self.start(node)
        except BaseException:
            self._stack.close()
            raise
        return self

    def start(self, node: str) -> None:
        """Start a node, also one that has ended. Raises InputError or ConvoyError."""
        running = Node(
            self._plan(node),
            wrapper=self._namespaces[node].command(),
            on_line=lambda line: self._on_line(node, line),
            name=f"node {node}",
        )
        running.__enter__()
        self._stack.push(running)
        self.nodes[node] = running
        assert self.controller is not None
        self.controller.watch(node, Path(running.ready["read"]))

    def step(self) -> None:
        """Steer for a moment. Raises ConvoyError where the controller is gone."""
        assert self.controller is not None, "used outside its with statement"
        self.controller.step()
        for node, running in list(self.nodes.items()):
            if not running.process.running():
                del self.nodes[node]
                self._on_line(node, f"convoyd ended: {running.process.last_words()}")

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return each node's counts; of one that has ended, the last that were asked for."""
        for node, running in self.nodes.items():
            try:
                self._counts[node] = running.counts()
            except ClientError:
                running.forget_client()  # it is ending
        return dict(self._counts)

    def stop(self) -> dict[str, dict[str, Any]]:
        """End nodes in the order that packets pass them; return each one's final counts."""
        for node in self._in_order():
            running = self.nodes.pop(node, None)
            if running is not None and running.process.running():
                self._counts[node] = running.stop()
        return dict(self._counts)

    def _in_order(self) -> list[str]:
        """Return nodes so that senders come first, as far as chains agree."""
        place: dict[str, int] = {}
        for way in self._loaded.ways:
            place[way.entry[0]] = max(place.get(way.entry[0], 0), 0)
            for stage, instances in enumerate(way.stages, 1):
                for one in instances:
                    place[one.node] = max(place.get(one.node, 0), stage)
        return sorted(self._loaded.network.nodes, key=lambda node: place.get(node, 0))

    def _plan(self, node: str) -> Mapping[str, Any]:
        machine = this_machine()
        network = self._loaded.network
        cores = sorted(machine.nodes)[1:] or list(machine.nodes)  # the first one is the tester's
        turn = list(network.nodes).index(node)
        override: dict[str, Any] = {"openflow": {"controllers": f"tcp:{HUB}:{PORT}"}}
        own = network.nodes[node]
        override["workers"] = {
            "cores": own.workers.cores or [cores[turn % len(cores)]], "idle": "sleep",
        }  # fmt: skip
        if own.memory.mb is None:
            override["memory"] = MEMORY
        descriptor = descriptor_of(self._loaded, node, override)
        text = Text.of_data(descriptor, f"{self._loaded.text.path}, node {node}")
        return make_plan(check_text(text, self._loaded.base, machine), machine).data

    def _join(self, hub: Namespace) -> None:
        hub.run(f"""
ip link set lo up
ip link add control type bridge
ip address add {HUB}/16 dev control
ip link set control up
""")
        for i, namespace in enumerate(self._namespaces.values()):
            join((hub, f"c{i}"), (namespace, "control"))
            hub.run(f"ip link set c{i} master control up")
            address = f"169.254.{1 + i // 250}.{1 + i % 250}"
            namespace.run(f"""
ip link set lo up
ip link set control up
ip address add {address}/16 dev control
""")
        for i, link in enumerate(self._loaded.network.links):
            self._join_link(hub, i, link)

    def _join_link(self, hub: Namespace, number: int, name: str) -> None:
        link = self._loaded.network.links[name]
        ends: list[tuple[str, str, str]] = []  # node, its interface, its MAC address
        for node, attached in link.nodes.items():
            if attached.port is None:
                ends.append((node, name, attached.mac))
            elif isinstance(attached.port, AfPacket | AfXdp):
                ends.append((node, attached.port.interface, attached.mac))
        if not ends:
            return  # sockets: the nodes find each other
        if len(ends) != len(link.nodes):
            raise InputError(
                f"{self._loaded.text.path}: links.{name}: has interfaces and sockets; on one "
                "machine it can have one of the two"
            )
        if len(ends) == 2:
            (one, first, _), (two, second, _) = ends
            pair = ((self._namespaces[one], first), (self._namespaces[two], second))
            join(*pair, mtu=link.mtu)
        else:
            bridge = f"l{number}"
            hub.run(f"ip link add {bridge} mtu {link.mtu} type bridge\nip link set {bridge} up")
            for i, (node, interface, mac) in enumerate(ends):
                end = f"{bridge}p{i}"
                join((hub, end), (self._namespaces[node], interface), mtu=link.mtu)
                # The bridge knows who is where: nothing has to be sent before it can arrive.
                hub.run(f"""
ip link set {end} mtu {link.mtu} master {bridge} up
bridge fdb replace {mac} dev {end} master static
""")
            hub.run(f"ip link set {bridge} mtu {link.mtu}")
        for node, interface, mac in ends:
            self._namespaces[node].run(f"ip link set {interface} address {mac} arp off up")

    def _leave(self) -> None:
        self._stack.close()
