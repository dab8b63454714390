# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Hosts and nodes of a network in namespaces."""

from collections.abc import Iterable
from typing import Any

from convoy.host.namespace import Namespace
from cores import CORES

PORTS = """
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
for port in {}; do ip link set $port arp off up; done
"""


def ports_up(namespace: Namespace, ports: Iterable[str]) -> None:
    """Take a node's interfaces up; the kernel there says nothing on them."""
    namespace.run(PORTS.format(" ".join(ports)))


def host_up(namespace: Namespace, interface: str, addresses: Iterable[str], via: str) -> None:
    """Give a host its addresses and its default routes."""
    v6 = ":" in via
    namespace.run(f"""
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
ip link set lo up
ip link set {interface} up
""")
    for address in addresses:
        namespace.run(f"ip address add {address} dev {interface}{' nodad' if v6 else ''}")
    namespace.run(f"ip route add default via {via}")


def router_plan(config: dict[str, Any], memory_mb: int = 768) -> dict[str, Any]:
    """Return the plan of a node that is one router between the ports with addresses."""
    ports = list(config["addresses"])
    stages = [
        {
            "worker": 0,
            "chain": port,
            "source": {"port": port, "queue": 0},
            "path": ["rtr"],
            "sink": {"port": port},
        }
        for port in ports
    ]
    return {
        "schema": "convoy.plan/1",
        "ports": [{"name": port, "kind": "af_packet", "interface": port} for port in ports],
        "functions": [{"name": "rtr", "type": "router", "config": config}],
        "chains": [{"name": port, "match": {}, "in": port, "out": port} for port in ports],
        "stages": stages,
        "workers": [{"core": CORES[0], "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": memory_mb},
    }
