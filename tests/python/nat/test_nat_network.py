# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A NAT between two hosts with ordinary Linux stacks; Linux's own (nftables) in its place.

Three network namespaces: an internal host, the middlebox with its two ports, an external host. The
outer link's MTU is smaller. The external host has no route to internal addresses, only to the pool.
A gateway's pool is its router's one address outside. Every test holds for all middleboxes.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.offload import turn_off
from convoy.host.process import Process
from cores import CORES

DEADLINE_S = 30.0
MTU = {"inside": 1500, "outside": 1400}
HOST = {"inside": "10.1.0.2", "outside": "192.0.2.2"}
ROUTER = {"inside": "10.1.0.1", "outside": "192.0.2.1"}
POOL = "203.0.113.1"
LINKS = """
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
"""
LINUX = f"""
sysctl -qw net.ipv4.ip_forward=1
ip link set inside up
ip link set outside up
ip address add {ROUTER["inside"]}/24 dev inside
ip address add {ROUTER["outside"]}/24 dev outside
ip route add blackhole {POOL}
nft -f - <<END
table ip nat {{
  chain in {{
    type nat hook prerouting priority -100;
    ip daddr {POOL} tcp dport 80 dnat to {HOST["inside"]}:8080
  }}
  chain out {{
    type nat hook postrouting priority 100;
    oifname outside snat to {POOL}
  }}
}}
END
"""
# Accepts one connection, or one datagram, says who it was, and sends back what came.
SERVER = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", int(sys.argv[2])))
if sys.argv[1] == "tcp":
    s.listen()
print("listening", flush=True)
if sys.argv[1] == "tcp":
    c, peer = s.accept()
    while data := c.recv(65536):
        c.sendall(data)
else:
    data, peer = s.recvfrom(65536)
    s.sendto(data, peer)
print("peer", peer[0], flush=True)
"""
# Sends so many bytes; says whether they came back, or the error that it was told.
CLIENT = """
import socket, sys, threading
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.settimeout(20)
sent = bytes(i % 251 for i in range(int(sys.argv[4])))
try:
    s.connect((sys.argv[2], int(sys.argv[3])))
    if sys.argv[1] == "tcp":
        def send():
            s.sendall(sent)
            s.shutdown(socket.SHUT_WR)
        threading.Thread(target=send).start()
        back = b""
        while data := s.recv(65536):
            back += data
    else:
        s.send(sent)
        back = s.recv(65536)
    print("same" if back == sent else "other")
except OSError as error:
    print(type(error).__name__)
"""


@dataclass(frozen=True)
class Net:
    """The hosts on both sides of a middlebox."""

    hosts: dict[str, Namespace]
    pool: str

    def run(self, side: str, command: str) -> str:
        """Run a command on a host; return what it printed. It may fail."""
        return self.hosts[side].run(f"{command} 2>&1 || true")

    def talk(self, side: str, proto: str, to: str, ports: tuple[int, int], size: int) -> str:
        """Let a host talk to a server on the other; return the address that the server saw.

        ports: that the client asks for, that the server has.
        """
        other = "outside" if side == "inside" else "inside"
        server = self.hosts[other].command("python3", "-c", SERVER, proto, str(ports[1]))
        with Process(list(server)) as listening:
            listening.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
            client = self.hosts[side].command(
                "python3", "-c", CLIENT, proto, to, str(ports[0]), str(size)
            )
            assert shell("", client).strip() == "same"
            peer: list[str] = []

            def is_peer(line: str) -> bool:
                peer.extend(line.split()[1:] if line.startswith("peer") else ())
                return bool(peer)

            listening.wait_line(is_peer, DEADLINE_S, "it had served")
        return peer[0]


def _plan(pool: str, workers: int = 1) -> dict[str, Any]:
    """Return a plan: with two workers each polls a port, and they share the flows."""
    functions = {
        "rtr": ("router", {"addresses": {side: [f"{ROUTER[side]}/24"] for side in HOST}}),
        "nat": (
            "nat",
            {
                "outside": ["outside"],
                "inside": ["10.1.0.0/24"],
                "pool": [pool],
                "share_address": pool == ROUTER["outside"],
                "forwards": [
                    {
                        "proto": "tcp",
                        "external": pool,
                        "port": 80,
                        "to": HOST["inside"],
                        "to_port": 8080,
                    }
                ],
            },
        ),
        "fw": (
            "firewall",
            {
                "stateful": True,
                "rules": [
                    {"action": "allow", "src": "10.1.0.0/24"},
                    {"action": "allow", "proto": "tcp", "dport": 8080},
                ],
            },
        ),
    }
    path = ["rtr", "nat"] if workers == 1 else ["rtr", "fw", "nat"]
    ways = (("inside", "outside", path), ("outside", "inside", path[::-1]))
    stages = [
        {
            "worker": way % workers,
            "chain": a,
            "source": {"port": a, "queue": 0},
            "path": path,
            "sink": {"port": b},
        }
        for way, (a, b, path) in enumerate(ways)
    ]
    if workers > 1:
        stages += [
            {**stage, "worker": worker, "source": {"handoff": True}}
            for stage in stages
            for worker in range(workers)
        ]
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": side, "kind": "af_packet", "interface": side, "mtu": MTU[side]}
            for side in HOST
        ],
        "functions": [
            {"name": name, "type": kind, "config": config}
            for name, (kind, config) in functions.items()
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b, _ in ways],
        "stages": stages,
        "workers": [{"core": CORES[i % len(CORES)], "idle": "sleep"} for i in range(workers)],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


def _links(middle: Namespace, hosts: dict[str, Namespace]) -> None:
    for side, host in hosts.items():
        ends = [f"cn{os.getpid() % 10**6}{side[0]}{end}" for end in "nh"]
        shell(f"ip link add {ends[0]} mtu {MTU[side]} type veth peer {ends[1]} mtu {MTU[side]}")
        for end, namespace in zip(ends, (middle, host), strict=True):
            turn_off(end)
            shell(f"ip link set {end} netns {namespace.pid} name {side}")


@pytest.fixture(scope="module", params=["convoy", "convoy-gateway", "two workers", "nftables"])
def net(request: pytest.FixtureRequest) -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    if request.param == "nftables" and shutil.which("nft") is None:
        pytest.skip("not installed: nftables")
    with ExitStack() as stack:
        try:
            middle, *both = (stack.enter_context(Namespace()) for _ in range(3))
            hosts = dict(zip(HOST, both, strict=True))
            for namespace in (middle, *both):
                namespace.run(LINKS)
            _links(middle, hosts)
            for side, host in hosts.items():
                host.run(f"ip link set {side} up; ip address add {HOST[side]}/24 dev {side}")
            hosts["inside"].run(f"ip route add default via {ROUTER['inside']}")
            hosts["outside"].run(f"ip route add {POOL} via {ROUTER['outside']}")
            if request.param == "nftables":
                middle.run(LINUX)
                yield Net(hosts, POOL)
                return
            middle.run("for side in inside outside; do ip link set $side arp off up; done")
            pool = ROUTER["outside"] if request.param == "convoy-gateway" else POOL
            workers = 2 if request.param == "two workers" else 1
            node = stack.enter_context(Node(_plan(pool, workers), wrapper=middle.command()))
        except ConvoyError as error:
            pytest.skip(f"no such network here: {error}")
        yield Net(hosts, pool)
        counts = node.stop()
        assert counts["accounting"]["conserved"], counts["accounting"]


def _received(text: str) -> int:
    answer = re.search(r"(\d+) received", text)
    assert answer, text
    return int(answer[1])


def test_ping(net: Net) -> None:
    ping = net.run("inside", f"ping -n -c 3 -i 0.2 -W 5 {HOST['outside']}")
    assert _received(ping) == 3 and "ttl=63" in ping, ping


def test_ping_in_fragments(net: Net) -> None:
    net.run("inside", f"ping -n -c 1 -W 5 {HOST['outside']}")  # Linux keeps 3 of 6 until it has ARP
    ping = net.run("inside", f"ping -n -s 8000 -M dont -c 3 -i 0.2 -W 5 {HOST['outside']}")
    assert _received(ping) == 3, ping


@pytest.mark.parametrize(("proto", "size"), [("tcp", 3_000_000), ("udp", 1000)])
def test_a_server_sees_the_pool(net: Net, proto: str, size: int) -> None:
    assert net.talk("inside", proto, HOST["outside"], (9000, 9000), size) == net.pool


def test_a_forward_leads_inside(net: Net) -> None:
    assert net.talk("outside", "tcp", net.pool, (80, 8080), 1_000_000) == HOST["outside"]


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_closed_port_is_refused(net: Net, proto: str) -> None:
    """By a reset, and by an ICMP error whose inner packet the NAT turned back."""
    client = net.hosts["inside"].command(
        "python3", "-c", CLIENT, proto, HOST["outside"], "9999", "10"
    )
    assert shell("", client).strip() == "ConnectionRefusedError"


def test_path_mtu_is_learned(net: Net) -> None:
    ping = net.run("inside", f"ping -n -s 1420 -M do -c 2 -i 0.2 -W 1 {HOST['outside']}")
    assert re.search(r"mtu ?[=:] ?1400", ping), ping


def test_a_route_shows_the_router(net: Net) -> None:
    ping = net.run("inside", f"ping -n -t 1 -c 1 -W 5 {HOST['outside']}")
    assert f"From {ROUTER['inside']}" in ping and "Time to live exceeded" in ping, ping


def test_nothing_comes_in_without_a_mapping(net: Net) -> None:
    ping = net.run("outside", f"ping -n -c 1 -W 1 {net.pool}")
    assert _received(ping) == 0, ping
