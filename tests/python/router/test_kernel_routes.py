# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A router whose routes are those of a network namespace, changed with `ip route`.

Four namespaces: a host, the node with its ports, a host, and the one that has the routes, where the
router makes an interface for each port.
"""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, join
from convoy.host.node import Node
from convoy.host.process import wait_for

from .links import host_up, ports_up, router_plan

DEADLINE_S = 60.0
MANY = 100_000
SIDES = ("left", "right")
HOSTS = {"left": ("10.1.0.2", "2001:db8:1::2"), "right": ("10.2.0.2", "2001:db8:2::2")}
ROUTER = {"left": ("10.1.0.1", "2001:db8:1::1"), "right": ("10.2.0.1", "2001:db8:2::1")}
# Networks behind the right host, which has these addresses as its own.
BEHIND = ("10.99.0.1", "2001:db8:99::1")
both = pytest.mark.parametrize("version", [4, 6])


@dataclass(frozen=True)
class Net:
    """The hosts, the node between them, and the namespace that has its routes."""

    hosts: dict[str, Namespace]
    routes: Namespace
    node: Node

    def kernel(self, key: str) -> Any:
        """Return what the router says of the kernel."""
        return self.node.counts()["functions"]["rtr"]["info"][f"kernel_{key}"]

    def pings(self, to: str, wanted: str) -> str:
        """Ping from the left until the answer has some words; return it."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            output = self.hosts["left"].run(f"ping -n -c 1 -W 1 {to} 2>&1 || true")
            if wanted in output or time.monotonic() > deadline:
                assert wanted in output, output
                return output

    def wait_routes(self, wanted: int) -> float:
        """Wait until the router knows so many routes; return how long that took."""
        began = time.monotonic()
        while self.kernel("routes") != wanted:
            assert time.monotonic() < began + DEADLINE_S, self.node.counts()["functions"]
        return time.monotonic() - began


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    if shutil.which("ping") is None:
        pytest.skip("not installed: iputils-ping")
    config: dict[str, Any] = {
        "addresses": {s: [f"{ROUTER[s][0]}/24", f"{ROUTER[s][1]}/64"] for s in SIDES},
        "route_entries": 2 * MANY,
    }
    try:
        with Namespace() as node, Namespace() as routes, Namespace() as a, Namespace() as b:
            hosts = {"left": a, "right": b}
            for side, host in hosts.items():
                join((node, side), (host, side))
                for v in (0, 1):
                    own = f"{HOSTS[side][v]}/{(24, 64)[v]}"
                    host_up(host, side, [own], ROUTER[side][v])
            for v in (0, 1):
                b.run(f"ip address add {BEHIND[v]}/{(32, 128)[v]} dev lo")
            ports_up(node, SIDES)
            config["routes"] = {"kernel": f"/proc/{routes.pid}/ns/net"}
            with Node(router_plan(config, 2048), wrapper=node.command()) as running:
                net = Net(hosts, routes, running)
                for address in HOSTS["right"]:  # the routes of its own are there
                    net.pings(address, "1 received")
                yield net
                counts = running.stop()
            assert counts["accounting"]["conserved"], counts["accounting"]
    except ConvoyError as error:
        pytest.skip(f"no such network here: {error}")


def test_ports_have_interfaces(net: Net) -> None:
    for side in SIDES:
        text = net.routes.run(f"ip address show dev {side}")
        for v, length in ((0, 24), (1, 64)):
            assert f"{ROUTER[side][v]}/{length}" in text, text
        assert "NOARP" in text and "UP" in text, text
        mac = net.hosts["left" if side == "left" else "right"].run(
            f"ping -n -c 1 -W 5 {ROUTER[side][0]} >/dev/null; ip neighbour show {ROUTER[side][0]}"
        )
        match = re.search(r"lladdr (\S+)", mac)
        assert match and f"link/ether {match[1]}" in text, (mac, text)


@both
def test_addresses_of_the_namespace_are_its_own(net: Net, version: int) -> None:
    """BGP between loopback addresses sends with a TTL of 1; what has none is told so."""
    v = version == 6
    to, length = (("10.50.0.1", 32), ("2001:db8:50::1", 128))[v]
    net.routes.run(f"ip link set lo up; ip address add {to}/{length} dev lo")
    try:
        net.pings(f"-t 1 {to}", "1 received")
    finally:
        net.routes.run(f"ip address del {to}/{length} dev lo")
    net.pings(to, "Unreachable" if not v else "No route")


# Sends what no kernel does to every netlink socket for routes here: 10.66.0.0/16, a message whose
# length is no multiple of four at the end, one that is shorter than it says.
FORGER = """
import socket, struct
route = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 3, 0, 1, 0)
route += struct.pack("=HH4s", 8, 1, bytes((10, 66, 0, 0)))
def message(body, length=None):
    return struct.pack("=IHHII", length or 16 + len(body), 24, 0, 1, 0) + body
sent = 0
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as forger:
    forger.bind((0, 0))
    for line in open("/proc/net/netlink").read().splitlines()[1:]:
        protocol, port = int(line.split()[1]), int(line.split()[2])
        if protocol == 0 and port not in (0, forger.getsockname()[0]):
            for bytes_ in (message(route), message(b"x"), message(b"", 4096), b"x"):
                forger.sendto(bytes_, (port, 0))
                sent += 1
print(sent)
"""


def test_other_processes_are_no_kernel(net: Net) -> None:
    before = net.kernel("routes")
    sent = net.routes.run(f"python3 -c '{FORGER}'")
    assert int(sent) >= 8, "both sockets of the router are there"
    to, via = BEHIND[0], HOSTS["right"][0]
    net.routes.run(f"ip route add {to}/32 via {via}")
    net.wait_routes(before + 1)  # and not one more
    net.routes.run(f"ip route del {to}/32")
    net.wait_routes(before)


@both
def test_route_comes_and_goes(net: Net, version: int) -> None:
    v = version == 6
    to, via = BEHIND[v], HOSTS["right"][v]
    prefix = f"{to}/{(32, 128)[v]}"
    net.pings(to, "Unreachable" if not v else "No route")
    net.routes.run(f"ip route add {prefix} via {via}")
    net.pings(to, "1 received")
    net.routes.run(f"ip route del {prefix}")
    net.pings(to, "Unreachable" if not v else "No route")
    # The better of two, and the other one when it goes.
    net.routes.run(f"ip -{version} route add unreachable {prefix} metric 20")
    net.routes.run(f"ip -{version} route add {prefix} via {via} metric 10")
    net.pings(to, "1 received")
    net.routes.run(f"ip -{version} route del {prefix} metric 10")
    net.pings(to, "Host Unreachable" if not v else "Address unreachable")
    net.routes.run(f"ip -{version} route del {prefix} metric 20")


@both
def test_kinds_of_routes(net: Net, version: int) -> None:
    v = version == 6
    prefix, to = (("10.77.0.0/16", "10.77.1.1"), ("2001:db8:77::/48", "2001:db8:77::1"))[v]
    run = net.routes.run
    run(f"ip -{version} route add prohibit {prefix}")
    net.pings(to, "Packet filtered" if not v else "Administratively prohibited")
    run(f"ip -{version} route replace unreachable {prefix}")
    net.pings(to, "Host Unreachable" if not v else "Address unreachable")
    without = net.kernel("routes") - 1
    run(f"ip -{version} route flush {prefix}")
    net.wait_routes(without)
    next_hops = f"nexthop via {HOSTS['right'][v]} weight 2 nexthop via {HOSTS['left'][v]}"
    run(f"ip -{version} route add {prefix} {next_hops}")
    wait_for(lambda: net.kernel("routes") > without, DEADLINE_S, "the route by two next hops")
    run(f"ip -{version} route flush {prefix}")
    net.pings(to, "Unreachable" if not v else "No route")


@both
def test_the_kernel_answers_what_the_router_does_not(net: Net, version: int) -> None:
    to = ROUTER["left"][version == 6]
    # Fragments to an own address: the kernel reassembles them, and replies.
    before = net.kernel("packets_up")
    output = net.hosts["left"].run(f"ping -{version} -n -s 8000 -c 2 -i 0.2 -W 5 {to} 2>&1 || true")
    assert "2 received" in output, output
    assert net.kernel("packets_up") >= before + 12
    # And from there, to a host.
    output = net.routes.run(f"ping -{version} -n -c 2 -i 0.2 -W 5 {HOSTS['right'][version == 6]}")
    assert "2 received" in output, output


def test_routes_go_with_an_interface(net: Net) -> None:
    """The kernel says nothing of each: all are read again."""
    known = net.kernel("routes")
    net.routes.run(f"ip route add 10.55.0.0/16 via {HOSTS['right'][0]}")
    net.wait_routes(known + 1)
    net.routes.run("ip link set right down")
    net.pings("10.55.1.1", "Unreachable")
    net.routes.run("ip link set right up")
    net.routes.run("ip address add 2001:db8:2::1/64 dev right nodad || true")


def _batches(net: Net, verb: str) -> None:
    """Add or delete all of many routes, so many with one `ip` that it ends in time."""
    via = HOSTS["right"][0]
    lines = [
        f"route {verb} 11.{i >> 16}.{i >> 8 & 255}.{i & 255}/32 via {via}\n" for i in range(MANY)
    ]
    for i in range(0, MANY, 10_000):
        net.routes.run(f"ip -batch - <<END\n{''.join(lines[i : i + 10_000])}END")


def test_many_routes_in_bounded_time(net: Net, capsys: pytest.CaptureFixture[str]) -> None:
    """Learned and lost one by one; what is lost on the way is read again."""
    known = net.kernel("routes")
    began = time.monotonic()
    _batches(net, "add")
    added = time.monotonic()
    rest = net.wait_routes(known + MANY)
    net.hosts["right"].run("ip address add 11.1.134.159/32 dev lo")  # the last one
    net.pings("11.1.134.159", "1 received")
    gone = time.monotonic()
    _batches(net, "del")
    flushed = time.monotonic()
    net.wait_routes(known)
    net.pings("11.1.134.159", "Unreachable")
    assert net.kernel("refused") == 0
    with capsys.disabled():
        print(
            f"\n{MANY} routes: `ip` added them in {added - began:.2f} s, the router had them "
            f"{rest:.2f} s later; deleted in {flushed - gone:.2f} s, "
            f"{time.monotonic() - flushed:.2f} s later; overruns {net.kernel('overruns')}, "
            f"dumps {net.kernel('dumps')}"
        )


def test_changes_that_are_lost_are_read_again(net: Net) -> None:
    """The node stands still while routes come and some go: the socket overflows."""
    known, overruns = net.kernel("routes"), net.kernel("overruns")
    pid = net.node.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        _batches(net, "add")
        net.routes.run("ip route del 11.1.134.159/32")
    finally:
        os.kill(pid, signal.SIGCONT)
    net.wait_routes(known + MANY - 1)
    assert net.kernel("overruns") > overruns
    net.pings("11.1.134.159", "Unreachable")
    net.routes.run(f"ip route add 11.1.134.159/32 via {HOSTS['right'][0]}")
    _batches(net, "del")
    net.wait_routes(known)
