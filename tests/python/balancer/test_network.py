# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Real TCP through a balancer to Linux hosts that take their tunnels off.

Network namespaces: a client, the node, a switch, two backends with the service's address. Backends
take tunnels off with the kernel's ipip and fou devices where it has them, and with a program behind
a tun device. Answers go by the node as by any router.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.offload import turn_off
from convoy.host.process import Process, wait_for
from cores import CORES

DEADLINE_S = 30.0
SERVICE = {4: "203.0.113.10", 6: "2001:db8:99::10"}
CLIENT = {4: "10.1.0.2", 6: "2001:db8:1::2"}
ROUTER = {"clients": ("10.1.0.1", "2001:db8:1::1"), "servers": ("10.2.0.1", "2001:db8:2::1")}
BACKENDS = {4: ["10.2.0.11", "10.2.0.12"], 6: ["2001:db8:2::11", "2001:db8:2::12"]}
GUE_PORT = 6080
BASE = """
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
ip link set lo up
"""
# Takes packets out of their tunnels; writes them into a tun device.
DECAPSULATE = """
import fcntl, os, select, socket, struct, subprocess, sys
mode, port = sys.argv[1], int(sys.argv[2])
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"inner", 0x1001))
subprocess.run("ip link set inner mtu 9000 up", shell=True, check=True)
sockets = []
for family in (socket.AF_INET, socket.AF_INET6):
    if mode == "gue":
        s = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(("", port))
        sockets.append((s, family))
        continue
    for proto in (4, 41):
        sockets.append((socket.socket(family, socket.SOCK_RAW, proto), family))
print("ready", flush=True)
while True:
    for ready in select.select([s for s, _ in sockets], [], [])[0]:
        data = ready.recv(65536)
        if mode == "ipip" and ready.family == socket.AF_INET:
            data = data[(data[0] & 15) * 4 :]
        os.write(tun, data)
"""
KERNEL = {
    ("ipip", 4): "ip link add t0 type ipip local {to} remote {source} mode any",
    ("ipip", 6): "ip link add t0 type ip6tnl local {to} remote {source} mode any",
    ("gue", 4): f"ip fou add port {GUE_PORT} gue",
    ("gue", 6): f"ip fou add port {GUE_PORT} gue -6",
}
# Says who it is to whoever connects, after it has read everything.
SERVER = """
import socket, sys, threading
s = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
print("listening", flush=True)
def serve(c):
    count = 0
    while data := c.recv(65536):
        count += len(data)
    c.sendall(f"{sys.argv[1]} {count}".encode())
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""
ASK = """
import socket, sys
for i in range(int(sys.argv[2])):
    s = socket.create_connection((sys.argv[1], 80), timeout=20)
    s.sendall(bytes(int(sys.argv[3])))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(100).decode())
"""


@dataclass
class Net:
    """The hosts around a balancer."""

    client: Namespace
    backends: list[Namespace]
    node: Node | None = None
    servers: list[Process] = field(default_factory=list)

    def ask(self, version: int, times: int, size: int) -> list[str]:
        """Connect so often; return the answers."""
        words = ("python3", "-c", ASK, SERVICE[version], str(times), str(size))
        return shell("", self.client.command(*words)).splitlines()


def _plan(mode: str, outer: int, **more: Any) -> dict[str, Any]:
    balancer = {
        "mode": mode,
        "source": ROUTER["servers"][0],
        "source_ipv6": ROUTER["servers"][1],
        "gue_port": GUE_PORT,
        "services": [{"address": address} for address in SERVICE.values()],
        "backends": [{"address": address} for address in BACKENDS[outer]],
        **more,
    }
    networks = {port: [f"{four}/24", f"{six}/64"] for port, (four, six) in ROUTER.items()}
    ways = (("clients", "servers"), ("servers", "clients"))
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": port, "kind": "af_packet", "interface": port, "mtu": 1500} for port in ROUTER
        ],
        "functions": [
            {"name": "lb", "type": "balancer", "config": balancer},
            {"name": "rtr", "type": "router", "config": {"addresses": networks}},
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in ways],
        "stages": [
            {
                "worker": 0,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": ["lb", "rtr"],
                "sink": {"port": b},
            }
            for a, b in ways
        ],
        "workers": [{"core": CORES[0], "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


def _join(one: Namespace, one_name: str, other: Namespace, other_name: str, number: int) -> None:
    ends = [f"cb{os.getpid() % 10**6}{number}{end}" for end in "ab"]
    shell(f"ip link add {ends[0]} type veth peer {ends[1]}")
    for end, namespace, name in ((ends[0], one, one_name), (ends[1], other, other_name)):
        turn_off(end)
        shell(f"ip link set {end} netns {namespace.pid} name {name}")


def _backend(stack: ExitStack, host: Namespace, index: int, mode: str, outer: int, by: str) -> None:
    four, six = BACKENDS[4][index], BACKENDS[6][index]
    host.run(f"""
ip link set eth up
ip address add {four}/24 dev eth
ip address add {six}/64 dev eth nodad
ip route add default via {ROUTER["servers"][0]}
ip route add default via {ROUTER["servers"][1]}
ip address add {SERVICE[4]}/32 dev lo
ip address add {SERVICE[6]}/128 dev lo nodad
""")
    if by == "kernel":
        to, source = BACKENDS[outer][index], ROUTER["servers"][outer == 6]
        try:
            host.run(KERNEL[mode, outer].format(to=to, source=source))
        except ConvoyError as why:
            pytest.skip(f"this kernel has no such device: {why}")
        if mode == "ipip":
            host.run("ip link set t0 up")
        return
    command = host.command("python3", "-c", DECAPSULATE, mode, str(GUE_PORT))
    taker = stack.enter_context(Process(list(command)))
    taker.wait_line(lambda line: line == "ready", DEADLINE_S, "it took tunnels off")


@contextmanager
def _net(mode: str, outer: int, by: str, **more: Any) -> Iterator[Net]:
    """Make the network and start the node, whose balancer has more."""
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("needs root, for network namespaces")
    if by == "tun" and not Path("/dev/net/tun").exists():
        pytest.skip("no /dev/net/tun here")
    with ExitStack() as stack:
        try:
            client, middle, switch, *backends = (stack.enter_context(Namespace()) for _ in range(5))
            _wire(client, middle, switch, backends)
        except ConvoyError as why:
            pytest.skip(f"no such network here: {why}")
        net = Net(client, backends)
        for i, host in enumerate(backends):
            _backend(stack, host, i, mode, outer, by)
            net.servers.append(stack.enter_context(serve(host, f"b{i}")))
        net.node = stack.enter_context(Node(_plan(mode, outer, **more), wrapper=middle.command()))
        yield net
        counts = net.node.stop()
        assert counts["accounting"]["conserved"], counts["accounting"]


def _wire(
    client: Namespace, middle: Namespace, switch: Namespace, backends: list[Namespace]
) -> None:
    for namespace in (client, middle, switch, *backends):
        namespace.run(BASE)
    _join(client, "eth", middle, "clients", 0)
    _join(switch, "p0", middle, "servers", 1)
    for i, host in enumerate(backends, 1):
        _join(switch, f"p{i}", host, "eth", 1 + i)
    switch.run(
        "ip link add name lan0 type bridge; ip link set lan0 up\n"
        "for i in 0 1 2; do ip link set p$i master lan0; ip link set p$i up; done"
    )
    client.run(f"""
ip link set eth up
ip address add {CLIENT[4]}/24 dev eth
ip address add {CLIENT[6]}/64 dev eth nodad
ip route add default via {ROUTER["clients"][0]}
ip route add default via {ROUTER["clients"][1]}
""")
    middle.run("for i in clients servers; do ip link set $i arp off up; done")


def serve(host: Namespace, name: str) -> Process:
    """Start a server that says this name."""
    server = Process(list(host.command("python3", "-c", SERVER, name)))
    try:
        server.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
    except BaseException:
        server.close()
        raise
    return server


@pytest.fixture(
    params=[(m, o, b) for b in ("tun", "kernel") for m in ("ipip", "gue") for o in (4, 6)],
    ids=lambda p: f"{p[0]}-over-ipv{p[1]}-by-{p[2]}",
)
def net(request: pytest.FixtureRequest) -> Iterator[Net]:
    with _net(*request.param) as made:
        yield made


@pytest.mark.parametrize("version", [4, 6])
def test_tcp_reaches_backends_in_tunnels(net: Net, version: int) -> None:
    """Connections reach both; segments that do not fit are told of, and sent again shorter."""
    assert {answer.split()[0] for answer in net.ask(version, 24, 10)} == {"b0", "b1"}
    size = 500_000
    assert all(answer.split()[1] == str(size) for answer in net.ask(version, 2, size))


def _until(net: Net, up: int, down: str) -> None:
    """Wait until so many backends are up, and these are down."""
    assert net.node is not None
    node = net.node

    def are_so() -> bool:
        info = node.counts()["functions"]["lb"]["info"]
        return (info["up"], info["down"]) == (up, down)

    wait_for(are_so, DEADLINE_S, f"{up} backends were up")


@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("by", ["icmp", "tcp"])
def test_backends_that_do_not_answer_get_no_connections(outer: int, by: str) -> None:
    """One goes away and comes back; connections go to the other meanwhile."""
    health = {"by": by, "interval_ms": 50} | ({"port": 80} if by == "tcp" else {})
    with _net("ipip", outer, "tun", health=health) as net:
        _until(net, 2, "")
        if by == "tcp":
            net.servers[1].close()
        else:
            net.backends[1].run("ip link set eth down")
        _until(net, 1, BACKENDS[outer][1])
        assert {answer.split()[0] for answer in net.ask(4, 16, 10)} == {"b0"}
        if by == "icmp":
            return  # its routes have gone with the link
        with serve(net.backends[1], "b1"):
            _until(net, 2, "")
            assert {answer.split()[0] for answer in net.ask(4, 24, 10)} == {"b0", "b1"}
