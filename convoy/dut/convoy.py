# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our own node, convoyd, with the setup's functions as its chain."""

import dataclasses
import json
from typing import Any

from convoy import __version__
from convoy.chain.functions import FUNCTIONS
from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.dut.base import Ability, Cost, Device, Presence, Running, Setup
from convoy.dut.functions import LEFT_MAC, RIGHT_MAC
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.priority import prefer
from convoy.host.programs import find
from convoy.host.waited import waited_ns


def descriptor(setup: Setup) -> dict[str, Any]:
    """Return the chain descriptor for a setup."""
    names = [f"{function.type}{i}" for i, function in enumerate(setup.functions)]
    return {
        "ports": {
            "left": {setup.left.kind: setup.left.address, "mac": LEFT_MAC},
            "right": {setup.right.kind: setup.right.address, "mac": RIGHT_MAC},
        },
        "functions": {
            name: {function.type: dict(function.config)}
            for name, function in zip(names, setup.functions, strict=True)
        },
        "chains": {
            "bench": {
                "from": "left",
                "to": "right",
                "path": names,
                "deployment": setup.deployment,
            }
        },
        "workers": {"cores": list(setup.cores), "idle": "poll"},
        "memory": {"hugepages": "always" if setup.hugepages else "never"},
    }


class _Running(Running):
    def __init__(self, node: Node) -> None:
        self._node = node.__enter__()  # waits until it forwards
        prefer(node.process.pid)
        self.commands = (node.process.command,)

    def ready(self, deadline_s: float) -> None:
        pass  # it was when it started

    def alive(self) -> bool:
        return self._node.process.running()

    def counters(self) -> dict[str, Any] | None:
        return self._node.counts()

    def cost(self) -> Cost | None:
        counts = self._node.counts()
        return Cost(
            sum(worker["busy_cycles"] for worker in counts["workers"]),
            sum(port["rx_packets"] for port in counts["ports"].values()),
            "convoyd's workers",
        )

    def processes(self) -> tuple[int, ...]:
        return (self._node.process.pid,)

    def waited_ns(self) -> int:
        return waited_ns(self._node.process.pid)

    def stop(self) -> None:
        self._node.__exit__(None, None, None)


class Convoy(Device):
    """convoyd from this checkout or from PATH."""

    name = "convoy"
    ability = Ability(
        functions=frozenset(FUNCTIONS),
        port_kinds=frozenset({"vhost-user", "memif", "af_packet", "af_xdp", "dpdk"}),
        deployments=frozenset({"inline", "pipeline"}),
    )

    def presence(self) -> Presence:
        """Look for convoyd."""
        if find("convoyd") is None:
            return Presence("", "not installed: convoyd (in a checkout: make build)")
        return Presence(__version__)

    def plan(self, setup: Setup) -> dict[str, Any]:
        """Return the plan for a setup. Raises DescriptorError."""
        machine = dataclasses.replace(this_machine(), runtime_dir=setup.folder)
        loaded = loads(json.dumps(descriptor(setup)), machine, setup.folder, "benchmark")
        return make_plan(loaded, machine).data

    def start(self, setup: Setup) -> Running:
        """Start it and wait until it forwards."""
        return _Running(Node(self.plan(setup)))
