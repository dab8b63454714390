# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A host that has IPv6 only and one that has IPv4 only, and a node that translates between them.

Three network namespaces, as of the router: nobody but the node knows both versions. The link with
IPv4 has a smaller MTU. The IPv6 host is 192.0.2.5 by the table; the IPv4 host is in the prefix.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, join
from convoy.host.node import Node
from convoy.host.process import Process
from cores import CORES

from .links import host_up, ports_up

DEADLINE_S = 30.0
MTU = {"six": 1500, "four": 1400}
OWN = {"six": "2001:db8:a::5", "four": "203.0.113.7"}  # of the hosts
SEEN = {"six": "192.0.2.5", "four": "2001:db8:64::cb00:7107"}  # by the other
ROUTER = {"six": "2001:db8:a::1", "four": "203.0.113.1"}
OTHER = {"six": "four", "four": "six"}
TOOLS = {"ping": "iputils-ping", "traceroute": "traceroute", "curl": "curl"}
from_each = pytest.mark.parametrize("side", ["six", "four"])
SERVER = """
import http.server, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(i % 251 for i in range(1 << 20)))
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = Server((sys.argv[1], 80), Handler)
print("listening", flush=True)
server.serve_forever()
"""


def connect(to: str, port: int) -> str:
    """Return a command that connects, and says why it could not."""
    return f"python3 -c 'import socket; socket.create_connection((\"{to}\", {port}), {DEADLINE_S})'"


def _plan() -> dict[str, Any]:
    functions = {
        "translator": {
            "prefix": "2001:db8:64::/96",
            "eam": [{"ipv4": "192.0.2.5", "ipv6": OWN["six"]}],
            "source": ROUTER["four"],
            "source_ipv6": ROUTER["six"],
            "ttl": "check",
        },
        "rtr": {"addresses": {"six": [ROUTER["six"] + "/64"], "four": [ROUTER["four"] + "/24"]}},
    }
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": side, "kind": "af_packet", "interface": side, "mtu": MTU[side]} for side in MTU
        ],
        "functions": [
            {"name": name, "type": {"rtr": "router"}.get(name, "nat64"), "config": config}
            for name, config in functions.items()
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in OTHER.items()],
        "stages": [
            {
                "worker": 0,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": ["translator", "rtr"],
                "sink": {"port": b},
            }
            for a, b in OTHER.items()
        ],
        "workers": [{"core": CORES[0], "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


@dataclass(frozen=True)
class Net:
    """The hosts, and the node between them."""

    hosts: dict[str, Namespace]
    node: Node

    def run(self, side: str, command: str) -> str:
        """Run a command on a host; return what it printed. It may fail."""
        return self.hosts[side].run(f"{command} 2>&1 || true")


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    try:
        with Namespace() as node, Namespace() as six, Namespace() as four:
            hosts = {"six": six, "four": four}
            for side, host in hosts.items():
                join((node, side), (host, side))
                for namespace in (node, host):
                    namespace.run(f"ip link set {side} mtu {MTU[side]}")
            six.run("sysctl -qw net.ipv6.icmp.ratelimit=0")
            four.run("sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.conf.all.disable_ipv6=1")
            for side, host in hosts.items():
                host_up(host, side, [OWN[side] + ("/64" if side == "six" else "/24")], ROUTER[side])
            ports_up(node, MTU)
            with Node(_plan(), wrapper=node.command()) as running:
                yield Net(hosts, running)
                assert running.stop()["accounting"]["conserved"]
    except ConvoyError as error:
        pytest.skip(str(error))


@from_each
def test_ping(net: Net, side: str):
    output = net.run(side, f"ping -c 3 -i 0.1 -W 5 {SEEN[OTHER[side]]}")
    assert "3 received" in output, output


@from_each
def test_is_one_hop(net: Net, side: str):
    to = SEEN[OTHER[side]]
    output = net.run(side, f"traceroute -n -w 5 -q 1 -N 1 {to}")
    hops = re.findall(r"^ *\d+ +(\S+)", output, re.MULTILINE)
    assert hops == [ROUTER[side], to], output


def test_packets_are_fragmented_for_ipv6(net: Net):
    output = net.run("four", f"ping -M dont -s 1300 -c 2 -i 0.1 -W 5 {SEEN['six']}")
    assert "2 received" in output, output
    assert net.node.counts()["functions"]["translator"]["info"]["fragments"] >= 2


def test_the_sender_learns_what_fits(net: Net):
    output = net.run("six", f"ping -M do -s 1440 -c 2 -i 0.1 -W 2 {SEEN['four']}")
    assert "mtu=1420" in output.replace(" ", "").lower(), output
    output = net.run("six", f"ip -6 route get {SEEN['four']}")
    assert "mtu 1420" in output, output


@from_each
def test_a_page_is_fetched(net: Net, side: str):
    other = OTHER[side]
    server = net.hosts[other].command("python3", "-c", SERVER, OWN[other])
    with Process(list(server)) as listening:
        listening.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
        to = f"[{SEEN[other]}]" if ":" in SEEN[other] else SEEN[other]
        output = net.run(side, f"curl -gsS -m 20 -o /dev/null -w '%{{size_download}}' http://{to}/")
    assert output.strip() == str(1 << 20)


@from_each
def test_who_does_not_listen_says_so(net: Net, side: str):
    assert "ConnectionRefusedError" in net.run(side, connect(SEEN[OTHER[side]], 81))
