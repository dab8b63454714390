# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""IPv6 hosts that nobody lists reach IPv4 hosts by one shared IPv4 address: stateful NAT64.

Two IPv6 hosts are addresses of one namespace. nat64 gives each an IPv4 address of its own, and nat
shares 192.0.2.50 among them.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, join
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from cores import CORES

from .links import host_up, ports_up
from .test_nat64_network import (
    DEADLINE_S,
    MTU,
    OTHER,
    OWN,
    ROUTER,
    SEEN,
    SERVER,
    TOOLS,
    Net,
    connect,
)

POOL = "192.0.2.50"
HOSTS = [OWN["six"], "2001:db8:a::6"]
ECHO = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("203.0.113.7", 7))
print("listening", flush=True)
while True:
    data, peer = server.recvfrom(2048)
    server.sendto(f"{peer[0]} {peer[1]}".encode(), peer)
"""
# Two packets to the echo server from one port of each of two hosts; what it saw of them.
ASK = """
import socket
for host in ("2001:db8:a::5", "2001:db8:a::6"):
    client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    client.bind((host, 5000))
    client.settimeout(1)
    answers = []
    for _ in range(60):
        client.sendto(b"who am I", ("2001:db8:64::cb00:7107", 7))
        try:
            answers.append(client.recv(2048).decode())
        except TimeoutError:
            continue
        if len(answers) == 2:
            break
    for answer in answers:
        print(answer)
"""


def _plan() -> dict[str, Any]:
    functions = {
        "translator": {
            "prefix": "2001:db8:64::/96",
            "clients": "100.64.0.0/16",
            "source": ROUTER["four"],
            "source_ipv6": ROUTER["six"],
            "ttl": "check",
        },
        "nat": {"outside": ["four"], "inside": ["100.64.0.0/16"], "pool": [POOL]},
        "rtr": {"addresses": {"six": [ROUTER["six"] + "/64"], "four": [ROUTER["four"] + "/24"]}},
    }
    paths = {
        "six": ["translator", "nat", "rtr"],
        "four": ["nat", "translator", "rtr"],
    }
    types = {"rtr": "router", "translator": "nat64", "nat": "nat"}
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": side, "kind": "af_packet", "interface": side, "mtu": MTU[side]} for side in MTU
        ],
        "functions": [
            {"name": name, "type": types[name], "config": config}
            for name, config in functions.items()
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in OTHER.items()],
        "stages": [
            {
                "worker": 0,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": paths[a],
                "sink": {"port": b},
            }
            for a, b in OTHER.items()
        ],
        "workers": [{"core": CORES[0], "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


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
            four.run("sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.conf.all.disable_ipv6=1")
            host_up(six, "six", [host + "/64" for host in HOSTS], ROUTER["six"])
            host_up(four, "four", [OWN["four"] + "/24"], ROUTER["four"])
            ports_up(node, MTU)
            with Node(_plan(), wrapper=node.command()) as running:
                yield Net(hosts, running)
                assert running.stop()["accounting"]["conserved"]
    except ConvoyError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("host", HOSTS)
def test_ping(net: Net, host: str):
    for _ in range(3):  # each by itself: of several, ping waits for a late one only briefly
        output = net.run("six", f"ping -I {host} -c 1 -W 60 {SEEN['four']}")
        assert "1 received" in output, output


def test_each_hop_answers(net: Net):
    output = net.run("six", f"traceroute -n -w 30 -q 1 -N 1 {SEEN['four']}")
    hops = re.findall(r"^ *\d+ +(\S+)", output, re.MULTILINE)
    assert hops == [ROUTER["six"], SEEN["four"]], output


def test_a_page_is_fetched(net: Net):
    server = net.hosts["four"].command("python3", "-c", SERVER, OWN["four"])
    with Process(list(server)) as listening:
        listening.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
        output = net.run(
            "six", f"curl -gsS -m 60 -o /dev/null -w '%{{size_download}}' http://[{SEEN['four']}]/"
        )
    assert output.strip() == str(1 << 20)


def test_who_does_not_listen_says_so(net: Net):
    assert "ConnectionRefusedError" in net.run("six", connect(SEEN["four"], 81))


def test_hosts_share_an_address(net: Net):
    server = net.hosts["four"].command("python3", "-c", ECHO)
    with Process(list(server)) as listening:
        listening.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
        seen = net.hosts["six"].run(f"python3 -c {shlex.quote(ASK)}").split("\n")[:4]
    assert seen[0] == seen[1]  # a mapping stays
    assert seen[2] == seen[3]
    assert {line.split()[0] for line in seen} == {POOL}
    assert seen[0] != seen[2]
    assert net.node.counts()["functions"]["translator"]["info"]["clients"] == len(HOSTS)


def test_ipv4_reaches_nobody_that_did_not_send(net: Net):
    def dropped() -> int:
        count: int = net.node.counts()["functions"]["nat"]["drops"]["no_mapping"]
        return count

    before = dropped()
    net.run("four", f"ping -c 1 -W 1 {POOL}")
    wait_for(lambda: dropped() > before, 60.0, "the request was dropped")
