# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A router between two hosts with ordinary Linux stacks, and no MAC address configured anywhere.

Three network namespaces: a host, the node with its two ports, a host; a veth pair for each link.
The right link's MTU is smaller. The hosts know their addresses and a default route, the router its
addresses: everything else they find out by ARP, neighbour discovery and ICMP.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
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
MTU = {"left": 1500, "right": 1400}
ADDRESS = {
    "left": ("10.1.0.2", "2001:db8:1::2"),
    "right": ("10.2.0.2", "2001:db8:2::2"),
}
ROUTER = {
    "left": ("10.1.0.1", "2001:db8:1::1"),
    "right": ("10.2.0.1", "2001:db8:2::1"),
}
TOOLS = {
    "ping": "iputils-ping",
    "traceroute": "traceroute",
    "iperf3": "iperf3",
    "mtr": "mtr-tiny",
    "curl": "curl",
}
both = pytest.mark.parametrize("version", [4, 6])
HOST = """
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
ip link set lo up
ip link set {side} up
ip address add {v4}/24 dev {side}
ip address add {v6}/64 dev {side} nodad
ip route add default via {gw4}
ip route add default via {gw6}
"""
PORTS = """
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
for side in left right; do ip link set $side arp off up; done
"""


@dataclass(frozen=True)
class Net:
    """The hosts, and the node between them."""

    hosts: dict[str, Namespace]
    node: Node

    def run(self, side: str, command: str) -> str:
        """Run a command on a host; return what it printed. It may fail."""
        return self.hosts[side].run(f"{command} 2>&1 || true")

    def rtr(self, key: str) -> Any:
        """Return one of the router's numbers."""
        return self.node.counts()["functions"]["rtr"]["info"][key]


def _plan(workers: int) -> dict[str, Any]:
    config = {
        "addresses": {
            side: [f"{ROUTER[side][0]}/24", f"{ROUTER[side][1]}/64"] for side in ("left", "right")
        },
        "routes": [
            {"prefix": "198.51.100.0/24", "type": "unreachable"},
            {"prefix": "203.0.113.0/24", "type": "prohibit"},
        ],
    }
    ways = (("left", "right"), ("right", "left"))
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": side, "kind": "af_packet", "interface": side, "mtu": MTU[side]}
            for side in ("left", "right")
        ],
        "functions": [{"name": "rtr", "type": "router", "config": config}],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in ways],
        "stages": [
            {
                "worker": i % workers,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": ["rtr"],
                "sink": {"port": b},
            }
            for i, (a, b) in enumerate(ways)
        ],
        "workers": [{"core": core, "idle": "sleep"} for core in CORES[:workers]],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


def _links(node: Namespace, hosts: dict[str, Namespace]) -> None:
    """Make the veth pairs: here first, where their offloads are turned off."""
    for side, host in hosts.items():
        ends = [f"cv{os.getpid() % 10**6}{side[0]}{end}" for end in "nh"]
        shell(f"ip link add {ends[0]} mtu {MTU[side]} type veth peer {ends[1]} mtu {MTU[side]}")
        for end, namespace in zip(ends, (node, host), strict=True):
            turn_off(end)
            shell(f"ip link set {end} netns {namespace.pid} name {side}")


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def net(request: pytest.FixtureRequest) -> Iterator[Net]:
    workers: int = request.param
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    if len(CORES) < workers:
        pytest.skip(f"needs {workers} cores")
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    try:
        with Namespace() as node, Namespace() as left, Namespace() as right:
            hosts = {"left": left, "right": right}
            _links(node, hosts)
            for side, host in hosts.items():
                v4, v6 = ADDRESS[side]
                gw4, gw6 = ROUTER[side]
                host.run(HOST.format(side=side, v4=v4, v6=v6, gw4=gw4, gw6=gw6))
            node.run(PORTS)
            with Node(_plan(workers), wrapper=node.command()) as running:
                yield Net(hosts, running)
                counts = running.stop()
            assert counts["accounting"]["conserved"], counts["accounting"]
    except ConvoyError as error:
        pytest.skip(f"no such network here: {error}")


def _address(side: str, version: int) -> str:
    return ADDRESS[side][version == 6]


def _router(side: str, version: int) -> str:
    return ROUTER[side][version == 6]


def _received(text: str) -> int:
    match = re.search(r"(\d+) received", text)
    assert match, text
    return int(match[1])


@both
def test_neighbours_are_found(net: Net, version: int) -> None:
    """The first packets already arrive: they wait for their neighbour."""
    ping = net.run("left", f"ping -{version} -n -c 3 -i 0.2 -W 5 {_address('right', version)}")
    assert _received(ping) == 3, ping
    # One TTL less on each way.
    assert "ttl=63" in ping, ping
    assert net.rtr("neighbours_failed") == 0


@both
def test_router_answers_echo(net: Net, version: int) -> None:
    for side in ("left", "right"):
        ping = net.run("left", f"ping -{version} -n -c 2 -i 0.2 -W 5 {_router(side, version)}")
        assert _received(ping) == 2, ping
        assert "ttl=64" in ping, ping


def test_link_local_address_answers(net: Net) -> None:
    net.run("left", f"ping -6 -n -c 1 -W 5 {_router('left', 6)}")
    mac = net.hosts["left"].run("ip -6 neighbour show 2001:db8:1::1 dev left")
    match = re.search(r"lladdr ([0-9a-f:]+) router", mac)
    assert match, mac
    first, *rest = (int(byte, 16) for byte in match[1].split(":"))
    eui = bytes([first ^ 2, *rest[:2], 0xFF, 0xFE, *rest[2:]])
    address = "fe80::" + ":".join(eui[i : i + 2].hex() for i in range(0, 8, 2))
    ping = net.run("left", f"ping -6 -n -c 2 -i 0.2 -W 5 {address}%left")
    assert _received(ping) == 2, ping


@both
def test_large_datagrams(net: Net, version: int) -> None:
    """IPv4: the router fragments the host's fragments again, for the smaller link."""
    to = _address("right", version)
    before = net.rtr("fragmented")
    ping = net.run("left", f"ping -{version} -n -s 8000 -M dont -c 3 -i 0.2 -W 5 {to}")
    # IPv6: the sender is told about the MTU first; Linux then fragments to it.
    assert _received(ping) >= (3 if version == 4 else 2), ping
    assert (net.rtr("fragmented") > before) == (version == 4)


@both
def test_path_mtu_is_told(net: Net, version: int) -> None:
    to = _address("right", version)
    net.run("left", f"ip -{version} route flush cache")
    ping = net.run("left", f"ping -{version} -n -s 1420 -M do -c 2 -i 0.2 -W 1 {to}")
    assert re.search(r"mtu ?[=:] ?1400", ping), ping
    route = net.run("left", f"ip -{version} route get {to}")
    assert "mtu 1400" in route, route


@both
def test_traceroute(net: Net, version: int) -> None:
    to = _address("right", version)
    lines = net.run("left", f"traceroute -{version} -n -q 1 -w 2 {to}").splitlines()[1:]
    hops = [line.split()[1] for line in lines]
    assert hops == [_router("left", version), to], lines


@both
def test_mtr(net: Net, version: int) -> None:
    to = _address("right", version)
    report = net.run("left", f"mtr -{version} --no-dns --json --report-cycles 2 {to}")
    hops = json.loads(report)["report"]["hubs"]
    assert [hop["host"] for hop in hops] == [_router("left", version), to], report
    assert all(hop["Loss%"] == 0 for hop in hops), report


@both
def test_curl(net: Net, version: int) -> None:
    """More than a window of data, through the smaller link; and nobody listens at the router."""
    to = _address("right", version)
    host = f"[{to}]" if version == 6 else to
    make = "head -c 3000000 /dev/urandom > data && sha256sum data"
    folder = net.hosts["right"].run("mktemp -d").strip()
    want = net.hosts["right"].run(f"cd {folder} && {make}").split()[0]
    server = ["python3", "-u", "-m", "http.server", "8080", "--bind", to, "--directory", folder]
    with Process(list(net.hosts["right"].command(*server))) as serving:
        serving.wait_line(lambda line: "Serving" in line, DEADLINE_S, "it served")
        got = net.run("left", f"curl -sg --max-time 20 http://{host}:8080/data | sha256sum")
    net.hosts["right"].run(f"rm -r {folder}")
    assert got.split()[0] == want, got
    for side in ("left", "right"):
        own = _router(side, version)
        refused = net.run("left", f"timeout 20 bash -c 'echo > /dev/tcp/{own}/80'")
        assert "Connection refused" in refused, refused


def test_senders_are_told(net: Net) -> None:
    for to, words in (
        ("192.88.99.9", "Destination Net Unreachable"),
        ("198.51.100.9", "Destination Host Unreachable"),
        ("203.0.113.9", "Packet filtered"),
        ("10.2.0.77", "Destination Host Unreachable"),  # nobody answers for it
    ):
        ping = net.run("left", f"ping -4 -n -c 1 -W 6 {to}")
        assert words in ping and "From 10.1.0.1" in ping, ping
    for to, words in (
        ("2001:db8:9::9", "No route"),
        ("2001:db8:2::77", "Address unreachable"),
    ):
        ping = net.run("left", f"ping -6 -n -c 1 -W 6 {to}")
        assert words in ping and "From 2001:db8:1::1" in ping, ping


@both
def test_iperf(net: Net, version: int) -> None:
    to = _address("right", version)
    server = net.hosts["right"].command("iperf3", "--server", "--one-off", "--forceflush")
    for udp in ("", "--udp --bitrate 20M --length 1200"):
        with Process(list(server)) as listening:
            listening.wait_line(lambda line: "listening" in line, DEADLINE_S, "it listened")
            output = net.run("left", f"iperf3 -{version} --client {to} --time 2 {udp} --json")
        end = json.loads(output)["end"]
        total = end["sum"] if udp else end["sum_received"]
        # Beside other tests it waits for a core most of its time.
        assert total["bytes"] > 200_000, output


@both
def test_a_neighbour_that_moves_is_found(net: Net, version: int) -> None:
    """Its MAC address changes: as soon as it says so, packets go to the new one."""
    to = _address("right", version)
    right = net.hosts["right"]
    right.run("ip link set right address 02:00:00:00:77:77")
    # Its address resolution forgets: it asks for the router, which learns by that.
    right.run("ip neighbour flush dev right")
    right.run(f"ping -{version} -n -c 1 -W 5 {_router('right', version)}")
    ping = net.run("left", f"ping -{version} -n -c 2 -i 0.2 -W 5 {to}")
    assert _received(ping) == 2, ping
