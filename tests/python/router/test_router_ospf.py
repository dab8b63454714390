# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two nodes and BIRD on each: routes are learned by OSPF, and traffic follows a link that fails.

    client - host [a] first,  second - [b] host - server
                       two links between the nodes

Each node has its ports in one namespace and its routes, with BIRD, in another.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, join
from convoy.host.node import Node
from convoy.host.process import Process

from .links import host_up, ports_up, router_plan

DEADLINE_S = 60.0
PING_S = 0.02
PORTS = ("host", "first", "second")
HOSTS = {"a": ("10.1.0.2", "2001:db8:1::2"), "b": ("10.2.0.2", "2001:db8:2::2")}
ADDRESSES = {
    "a": {
        "host": ("10.1.0.1/24", "2001:db8:1::1/64"),
        "first": ("10.11.0.1/24", "2001:db8:11::1/64"),
        "second": ("10.12.0.1/24", "2001:db8:12::1/64"),
    },
    "b": {
        "host": ("10.2.0.1/24", "2001:db8:2::1/64"),
        "first": ("10.11.0.2/24", "2001:db8:11::2/64"),
        "second": ("10.12.0.2/24", "2001:db8:12::2/64"),
    },
}
AREA = """
    interface "first" { type ptp; cost 10; hello 1; dead 4; bfd yes; };
    interface "second" { type ptp; cost 20; hello 1; dead 4; bfd yes; };
    interface "host" { stub yes; };
"""
BIRD = """
router id 192.0.2.%d;
protocol device { scan time 1; }
protocol bfd {
  interface "*" { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; };
}
protocol kernel { ipv4 { import none; export all; }; }
protocol kernel { ipv6 { import none; export all; }; }
protocol ospf v2 { tick 1; ipv4; area 0 {%s}; }
protocol ospf v3 { tick 1; ipv6; area 0 {%s}; }
"""


@dataclass(frozen=True)
class Net:
    """Two hosts, and the nodes and their routes by name."""

    hosts: dict[str, Namespace]
    ports: dict[str, Namespace]
    routes: dict[str, Namespace]
    folder: Path

    def bird(self, name: str, command: str) -> str:
        """Return what a node's BIRD says to a command."""
        return self.routes[name].run(f"birdc -r -s {self.folder}/{name}.ctl {command} 2>&1 || true")

    def wait_quiet(self, ospf: str) -> None:
        """Wait until failures are noticed at once, and nothing has been told for 5 s.

        RFC 2328 lets a router tell of itself once in MinLSInterval, 5 s.
        """
        deadline = time.monotonic() + DEADLINE_S
        while True:
            sessions = "".join(self.bird(name, "show bfd sessions") for name in self.routes)
            database = "".join(
                self.bird(name, f"show ospf lsadb type 1 {ospf}") for name in self.routes
            )
            ages = [int(age) for age in re.findall(r" [0-9a-f]{8} +(\d+) ", database)] or [0]
            up = len(re.findall(r" Up .* 0\.100", sessions))
            if up == 8 and min(ages) >= 6:
                return
            assert time.monotonic() < deadline, f"{sessions}\n{database}"
            time.sleep(0.2)

    def ping(self, version: int, count: int, more: str = "") -> Process:
        """Start pinging from one host to the other."""
        to = HOSTS["b"][version == 6]
        ping = f"ping -{version} -n -i {PING_S} -c {count} -W 1 {more} {to}"
        return Process(list(self.hosts["a"].command(*ping.split())))

    def wait_for_route(self, version: int) -> None:
        """Wait until the hosts reach each other."""
        to = HOSTS["b"][version == 6]
        deadline = time.monotonic() + DEADLINE_S
        while "1 received" not in self.hosts["a"].run(f"ping -n -c 1 -W 1 {to} 2>&1 || true"):
            assert time.monotonic() < deadline, self.routes["a"].run(f"ip -{version} route")


def _node(stack: ExitStack, folder: Path, name: str, number: int, net: Net) -> None:
    """Start a node, and BIRD on its routes."""
    routes = net.routes[name]
    config = {
        "addresses": {port: list(own) for port, own in ADDRESSES[name].items()},
        "routes": {"kernel": f"/proc/{routes.pid}/ns/net"},
    }
    ports_up(net.ports[name], PORTS)
    stack.enter_context(Node(router_plan(config), wrapper=net.ports[name].command()))
    file = folder / f"{name}.conf"
    file.write_text(BIRD % (number, AREA, AREA))
    bird = ("bird", "-f", "-c", str(file), "-s", str(folder / f"{name}.ctl"))
    stack.enter_context(Process(list(routes.command(*bird))))


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if shutil.which("bird", path=path) is None:
        pytest.skip("not installed: bird; install it with: apt-get install bird2")
    folder = tmp_path_factory.mktemp("ospf")
    with ExitStack() as stack:
        try:
            made = [
                {name: stack.enter_context(Namespace()) for name in ("a", "b")} for _ in range(3)
            ]
            net = Net(*made, folder)
            for name, host in net.hosts.items():
                join((net.ports[name], "host"), (host, "net"))
                for v in (0, 1):
                    own = f"{HOSTS[name][v]}/{(24, 64)[v]}"
                    host_up(host, "net", [own], ADDRESSES[name]["host"][v].partition("/")[0])
            for port in ("first", "second"):
                join((net.ports["a"], port), (net.ports["b"], port))
        except ConvoyError as error:
            pytest.skip(f"no such network here: {error}")
        for i, name in enumerate(("a", "b")):
            _node(stack, folder, name, i + 1, net)
        yield net


@pytest.mark.parametrize("version", [4, 6])
def test_routes_are_learned(net: Net, version: int) -> None:
    net.wait_for_route(version)
    via = net.routes["a"].run(
        f"ip -{version} route show {('10.2.0.0/24', '2001:db8:2::/64')[version == 6]}"
    )
    assert "proto bird" in via, via


@pytest.mark.parametrize("version", [4, 6])
def test_traffic_follows_a_link_that_fails(
    net: Net, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    net.wait_for_route(version)
    prefix = ("10.2.0.0/24", "2001:db8:2::/64")[version == 6]
    show = f"ip -{version} route show {prefix}"
    deadline = time.monotonic() + DEADLINE_S
    while "dev first" not in net.routes["a"].run(show):  # the better link
        assert time.monotonic() < deadline, net.routes["a"].run(show)
    net.wait_quiet(("ospf1", "ospf2")[version == 6])
    with net.ping(version, 250) as pinging:
        pinging.wait_line(lambda line: "icmp_seq=50 " in line, DEADLINE_S, "it pinged")
        net.ports["a"].run("ip link set first down")
        last = pinging.wait_line(lambda line: "transmitted" in line, DEADLINE_S, "it ended")
    try:
        match = re.search(r"(\d+) packets transmitted, (\d+) received", last)
        assert match, last
        lost = int(match[1]) - int(match[2])
        assert "dev second" in net.routes["a"].run(show)
        # BIRD computes its routes once a second at most ("tick"), BFD needs 0.3 s.
        assert lost * PING_S < 2.0, last
        with capsys.disabled():
            print(f"\nIPv{version}: without a way for {lost * PING_S:.2f} s")
    finally:
        net.ports["a"].run("ip link set first up")
