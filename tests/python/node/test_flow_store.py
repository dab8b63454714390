# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""kill -9 a node whose flows the service manager keeps: the next process goes on with them."""

import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from convoy.client import Client
from convoy.errors import ConvoyError
from convoy.host.counts import running_nodes
from convoy.host.handover import hand_over
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.offload import turn_off
from convoy.host.process import wait_for
from convoy.host.programs import need
from cores import CORES

from .service_manager import ServiceManager, service_manager
from .test_handover import plan_of

CLONE_NEWNET = 0x40000000
SOON_S = 30.0
KILLS = int(os.environ.get("CONVOY_KILLS", "10"))
SIDES = ("inside", "outside")
MAC = {"inside": "02:00:00:00:0a:02", "outside": "02:00:00:00:0b:02"}
POOL, SERVICE, REMOTE = "203.0.113.1", "198.51.100.10", "198.51.100.7"
HOSTS = 6
FLOWS = 96

pytestmark = pytest.mark.alone

FIREWALL = {
    "name": "fw",
    "type": "firewall",
    "config": {
        "stateful": True,
        "default": "deny",
        "rules": [{"action": "allow", "src": "10.0.0.0/8"}],
    },
}
CLIENTS = {
    "name": "translator",
    "type": "nat64",
    "config": {
        "prefix": "2001:db8:64::/96",
        "clients": "100.64.0.0/16",
        "source": "203.0.113.9",
        "source_ipv6": "2001:db8:ffff::1",
    },
}
NAT = {
    "name": "nat",
    "type": "nat",
    "config": {"outside": ["outside"], "inside": ["10.0.0.0/8"], "pool": [POOL]},
}
BALANCER = {
    "name": "lb",
    "type": "balancer",
    "config": {
        "mode": "nat",
        "services": [{"address": SERVICE}],
        "backends": [{"address": f"192.0.2.{i}"} for i in range(1, 6)],
    },
}


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service's folder: nodes of other tests are not seen there."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return tmp_path / "dpdk"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    with service_manager(tmp_path) as running:
        yield running


def plan_between(*functions: dict[str, Any], workers: int = 1) -> dict[str, Any]:
    """Return a plan with these functions from inside to outside, and back in the other order."""
    path = [function["name"] for function in functions]
    ways = (("inside", "outside", path), ("outside", "inside", path[::-1]))
    polled = [
        {
            "worker": way % workers,
            "chain": a,
            "source": {"port": a, "queue": 0},
            "path": path,
            "sink": {"port": b},
        }
        for way, (a, b, path) in enumerate(ways)
    ]
    handed = [
        {**stage, "worker": worker, "source": {"handoff": True}}
        for stage in polled
        for worker in range(workers)
    ]
    return {
        "schema": "convoy.plan/1",
        "ports": [{"name": side, "kind": "af_packet", "interface": side} for side in SIDES],
        "functions": list(functions),
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b, _ in ways],
        "stages": polled + (handed if workers > 1 else []),
        "workers": [{"core": CORES[i % len(CORES)], "idle": "sleep"} for i in range(workers)],
        "eal": {"hugepages": False, "memory_mb": 256},
        "flows": {"max": 4096, "max_ipv6": 64, "per_host": 64},
    }


def packet_socket(namespace: Namespace, interface: str) -> socket.socket:
    """Return a socket that is inside, whoever uses it."""
    made: list[socket.socket] = []

    def make() -> None:
        with Path(f"/proc/{namespace.pid}/ns/net").open("rb") as net:
            if ctypes.CDLL(None).setns(net.fileno(), CLONE_NEWNET) != 0:
                return
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            one.bind((interface, 3))
            made.append(one)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


def payload_of(frame: bytes) -> bytes | None:
    """Return what TCP or UDP over IPv4 carries. Scapy takes some ports for protocols above."""
    if frame[12:14] != b"\x08\0" or frame[23] not in (6, 17):
        return None
    l4 = 14 + 4 * (frame[14] & 15)
    start = l4 + (8 if frame[23] == 17 else 4 * (frame[l4 + 12] >> 4))
    return frame[start : 14 + int.from_bytes(frame[16:18])]


class Net:
    """Two hosts with a node between them, which is killed and started again."""

    def __init__(self, sockets: dict[str, socket.socket], middle: Namespace) -> None:
        self.sockets = sockets
        self.middle = middle
        self.came: dict[str, dict[bytes, bytes]] = {side: {} for side in SIDES}  # by payload
        self.last: Node | None = None  # process of the service

    def node(self, plan: dict[str, Any], manager: ServiceManager, *options: str) -> Node:
        """Return a process of the service, which has what the manager kept of the last one."""
        self.last = Node(
            plan,
            wrapper=[*manager.launch(), *self.middle.command()],
            environment=manager.environment,
            options=["--keep-flows", *options],
        )
        return self.last

    def send(self, side: str, *packets: Packet) -> None:
        ends = (MAC[side], MAC["outside" if side == "inside" else "inside"])
        for packet in packets:
            self.sockets[side].send(bytes(Ether(src=ends[0], dst=ends[1]) / packet))

    def listen(self, side: str) -> None:
        """Read what has come, by its payload."""
        self.sockets[side].setblocking(False)
        try:
            while True:
                data, where = self.sockets[side].recvfrom(65536)
                if where[2] == 4:  # sent from here
                    continue
                if (payload := payload_of(data)) is not None:
                    self.came[side][payload] = data
        except BlockingIOError:
            pass

    def until(self, side: str, *payloads: bytes) -> list[bytes]:
        """Return the frames with these payloads, once they have come to a side."""

        def all_came() -> bool:
            self.listen(side)
            return all(payload in self.came[side] for payload in payloads)

        try:
            wait_for(all_came, SOON_S, f"packets {side}")
        except ConvoyError as why:
            pytest.fail(f"{why}: {payloads}; {self._lost()}")
        return [self.came[side].pop(payload) for payload in payloads]

    def _lost(self) -> object:
        """Return what the node says of packets that did not come."""
        if self.last is None or not self.last.process.running():
            return "no node runs"
        counts = self.last.counts()
        named = {**counts["ports"], **counts["functions"], **counts["flows"]}
        drops = {name: {k: v for k, v in one["drops"].items() if v} for name, one in named.items()}
        return (
            counts["accounting"],
            drops,
            {
                name: (port["rx_packets"], port["tx_packets"])
                for name, port in counts["ports"].items()
            },
        )


@contextmanager
def net_of_two_hosts() -> Iterator[Net]:
    with ExitStack() as stack:
        try:
            middle, *both = (stack.enter_context(Namespace()) for _ in range(3))
            for side, host in zip(SIDES, both, strict=True):
                ends = [f"fs{os.getpid() % 10**6}{side[0]}{end}" for end in "nh"]
                shell(f"ip link add name {ends[0]} type veth peer name {ends[1]}")
                for end, namespace in zip(ends, (middle, host), strict=True):
                    turn_off(end)
                    shell(f"ip link set {end} netns {namespace.pid} name {side}")
                    namespace.run(
                        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1\n"
                        f"ip link set {side} arp off up"
                    )
        except ConvoyError as why:
            pytest.skip(f"no such network here: {why}")
        sockets = {
            side: stack.enter_context(packet_socket(host, side))
            for side, host in zip(SIDES, both, strict=True)
        }
        yield Net(sockets, middle)


@pytest.fixture
def net() -> Iterator[Net]:
    with net_of_two_hosts() as made:
        yield made


def first(number: int, payload: bytes) -> Packet:
    """Return a packet of a flow that a host begins: UDP to a remote host, TCP to the service."""
    host = f"10.0.0.{number % HOSTS + 1}"
    if number % 2:
        return IP(src=host, dst=SERVICE) / TCP(sport=2000 + number, dport=5001, flags="S") / payload
    return IP(src=host, dst=REMOTE) / UDP(sport=2000 + number, dport=5000) / payload


def answer(frame: bytes, payload: bytes) -> Packet:
    """Return the answer to a frame that came out."""
    ip = Ether(frame)[IP]
    kind = TCP if TCP in ip else UDP
    ports = {"sport": ip[kind].dport, "dport": ip[kind].sport}
    flags = {"flags": "SA"} if kind is TCP else {}
    return IP(src=ip.dst, dst=ip.src) / kind(**ports, **flags) / payload


def opened(net: Net, count: int = FLOWS) -> tuple[list[bytes], list[bytes]]:
    """Begin flows and answer them; return what came out, and what came in."""
    payloads = [f"flow {i:06d}".encode() for i in range(count)]
    out: list[bytes] = []
    back: list[bytes] = []
    for i, payload in enumerate(payloads):
        net.send("inside", first(i, payload))
        out += net.until("outside", payload)
        net.send("outside", answer(out[-1], payload))
        back += net.until("inside", payload)
    return out, back


def killed(node: Node) -> None:
    node.process.signal(signal.SIGKILL)
    node.process.wait(SOON_S)


def until_it_says(node: Node, words: str) -> None:
    wait_for(lambda: words in node.process.stderr.text(), SOON_S, words)


def conserved(counts: dict[str, Any]) -> bool:
    return bool(counts["accounting"]["conserved"])


def info_of(counts: dict[str, Any]) -> dict[str, Any]:
    """Return what functions say of what they know: mappings, flows of backends."""
    return {
        name: [b["flows"] for b in info["backends"]] if "backends" in info else info
        for name, info in ((n, f.get("info", {})) for n, f in counts["functions"].items())
        if name != "fw"
    }


@pytest.mark.parametrize(
    ("functions", "workers"),
    [((FIREWALL, NAT, BALANCER), 1), ((FIREWALL, NAT), 2), ((FIREWALL, BALANCER), 2)],
)
def test_flows_go_on_with_their_translations(net, manager, runtime_folder, functions, workers):
    plan = plan_between(*functions, workers=workers)
    if NAT not in functions:  # then they come back while packets flow
        plan["flows"]["per_host"] = 0
    with net.node(plan, manager) as node:
        out, back = opened(net)
        if BALANCER in functions:
            assert len({Ether(frame)[IP].dst for frame in out}) > 3  # backends
        before = node.counts()
        killed(node)
    with net.node(plan, manager) as node:
        assert node.ready["flows"] | {"ms": 0} == {"restored": FLOWS, "lost": 0, "ms": 0}
        # Answers first: they find their flows, or nothing lets them in.
        for i, frame in enumerate(out):
            payload = f"flow {i:06d}".encode()
            net.send("outside", answer(frame, payload))
            assert net.until("inside", payload) == [back[i]]
            net.send("inside", first(i, payload))
            assert net.until("outside", payload) == [frame]
        counts = node.counts()
        (flows,) = counts["flows"].values()
        assert (flows["created"], flows["flows_ipv4"], flows["invalidated"]) == (0, FLOWS, 0)
        assert info_of(counts) == info_of(before)
        # Whoever is new gets a port that nobody has; what nobody asked for stays outside.
        net.send("inside", first(FLOWS, b"new"))
        (new,) = net.until("outside", b"new")
        ports = {Ether(frame)[IP].payload.sport for frame in out}
        assert Ether(new)[IP].payload.sport not in ports
        unknown = next(port for port in range(1024, 65536) if port not in ports)
        net.send("outside", IP(src=REMOTE, dst=POOL) / UDP(sport=9, dport=unknown) / b"unknown")
        net.send("outside", answer(new, b"known"))
        net.until("inside", b"known")
        assert b"unknown" not in net.came["inside"]
        assert conserved(node.stop())
    manager.settle()
    assert manager.stored == {}  # all memory is given back
    assert not list(runtime_folder.glob("convoyd-*"))


@pytest.mark.parametrize("workers", [1, 2])
def test_many_kills_at_any_moment(net, manager, runtime_folder, workers):
    functions = (FIREWALL, NAT, BALANCER) if workers == 1 else (FIREWALL, NAT)
    plan = plan_between(*functions, workers=workers)
    plan["flows"]["timeouts"] = {"udp_new": 7200, "tcp_opening": 7200}  # none ends by itself
    chance = random.Random(7)
    ends: dict[int, bytes] = {}  # by flow: source and destination outside, when it was answered
    number = lost = 0

    def come_out(since: int) -> None:
        """Remember what flows are outside; those that were so before are so still, but for lost."""
        nonlocal lost
        net.listen("outside")
        for payload, frame in net.came["outside"].items():
            flow, _, at = payload.partition(b"@")
            end = bytes(Ether(frame)[IP])[12:24]
            if int(at) >= since and ends.setdefault(int(flow), end) != end:
                ends[int(flow)] = end
                lost -= 1
        net.came["outside"].clear()

    for kill in range(KILLS):
        with net.node(plan, manager) as node:
            lost += node.ready["flows"]["lost"]
            for flow in chance.sample(sorted(ends), min(len(ends), 40)):
                net.send("inside", first(flow, f"{flow}@{number}".encode()))
            # New ones, and those that are known, until it is killed in the midst of them.
            dies = threading.Timer(chance.uniform(0.0, 0.15), node.process.signal, [signal.SIGKILL])
            dies.start()
            while dies.is_alive():
                flow = chance.randrange(200)
                net.send("inside", first(flow, f"{flow}@{number}".encode()))
                number += 1
            dies.join()
            node.process.wait(SOON_S)
        # What came out was known when it was killed. A flow that was new then and was being written
        # is none.
        come_out(0)
        assert lost >= 0, kill
    with net.node(plan, manager) as node:
        lost += node.ready["flows"]["lost"]
        start = number
        assert len(ends) > 20
        for flow in sorted(ends):
            net.send("inside", first(flow, f"{flow}@{number}".encode()))
        net.until("outside", f"{max(ends)}@{number}".encode())
        come_out(start)
        assert lost >= 0
        assert conserved(node.stop())
    manager.settle()
    assert manager.stored == {}
    assert not list(runtime_folder.glob("convoyd-*"))


def scramble(fd: int, chance: random.Random, share: float) -> None:
    """Write random bytes into a file, where it may be written."""
    size = os.fstat(fd).st_size
    for at in range(0, size, 4096):
        if chance.random() < share:
            try:
                os.pwrite(fd, chance.randbytes(min(4096, size - at)), at)
            except PermissionError:
                return


@pytest.mark.parametrize(("share", "workers"), [(0.02, 1), (1.0, 1), (0.02, 2)])
def test_any_bytes_are_no_danger(net, manager, share, workers):
    functions = (FIREWALL, NAT, BALANCER) if workers == 1 else (FIREWALL, NAT)
    plan = plan_between(*functions, workers=workers)
    chance = random.Random(3)
    for _ in range(3):
        with net.node(plan, manager) as node:
            opened(net, 16)
            killed(node)
        manager.settle()
        for fds in manager.stored.values():
            for fd in fds:
                scramble(fd, chance, share)
    with net.node(plan, manager) as node:
        opened(net, 16)
        assert conserved(node.stop())


def other_descriptors(manager: ServiceManager) -> None:
    """Have a service manager give what a node cannot use."""
    manager.settle()
    for name in list(manager.stored):
        files = manager.stored[name]
        fd = os.memfd_create("other")
        os.write(fd, b"cvflows\0" + bytes(range(200)))
        manager.stored["other"] = [fd]
        manager.stored["convoy-flows-" + 16 * "f"] = [os.memfd_create("x"), os.dup(files[0])]
        manager.stored["convoy-flows-" + 16 * "G"] = [os.dup(files[0])]


def test_what_is_not_a_nodes_is_left_alone(net, manager):
    plan = plan_between(FIREWALL)
    with net.node(plan, manager) as node:
        killed(node)
    other_descriptors(manager)
    with net.node(plan, manager) as node:
        until_it_says(node, "is of another version: flows begin anew")
        net.send("inside", first(0, b"first"))
        net.until("outside", b"first")
        node.stop()
    manager.settle()
    assert sorted(manager.stored) == ["convoy-flows-" + 16 * "G", "other"]


def test_another_layout_begins_anew(net, manager):
    plan = plan_between(FIREWALL, NAT)
    with net.node(plan, manager) as node:
        opened(net, 4)
        killed(node)
    smaller = plan | {"flows": plan["flows"] | {"max": 2048}}
    with net.node(smaller, manager) as node:
        assert node.ready["flows"]["restored"] == 0
        until_it_says(node, 'function "fw": flows begin anew: ')
        killed(node)
    other = json.loads(json.dumps(smaller))
    other["functions"][1]["config"]["pool"] = ["203.0.113.2"]
    with net.node(other, manager) as node:
        until_it_says(node, 'function "nat": flows begin anew: what it knows of them was kept in')
        opened(net, 4)
        node.stop()


def test_another_number_of_workers_begins_anew(net, manager):
    with net.node(plan_between(FIREWALL, workers=2), manager) as node:
        opened(net, 4)
        killed(node)
    with net.node(plan_between(FIREWALL), manager) as node:
        assert node.ready["flows"]["restored"] == 0
        until_it_says(node, 'function "fw": flows begin anew: 2 workers had them, and now')
        opened(net, 4)
        node.stop()


def test_a_function_that_came_later_is_kept_too(net, manager):
    plan = plan_between(FIREWALL)
    with net.node(plan, manager) as node:
        with Client(node.running.control, SOON_S) as client:
            client.apply(plan_between(FIREWALL, NAT), forget_flows=True)
        out, _ = opened(net, 8)
        wait_for(
            lambda: [len(fds) for fds in manager.stored.values()] == [3], SOON_S, "the new files"
        )
        killed(node)
    with net.node(plan_between(FIREWALL, NAT), manager) as node:
        assert node.ready["flows"]["restored"] == 8
        net.send("outside", answer(out[0], b"again"))
        net.until("inside", b"again")
        node.stop()


def test_flows_do_not_go_to_other_hosts(net, manager):
    """Another process gives clients of nat64 other addresses."""
    with net.node(plan_between(FIREWALL), manager) as node:
        opened(net, 4)
        killed(node)
    for _ in range(2):  # flows that were kept without it, and those of such a node
        with net.node(plan_between(CLIENTS, FIREWALL), manager) as node:
            assert node.ready["flows"]["restored"] == 0
            until_it_says(node, 'function "translator": flows begin anew: which of its hosts')
            opened(net, 4)
            killed(node)


def test_flows_that_were_handed_over_are_kept(tmp_path, manager, runtime_folder):
    plan = plan_of(tmp_path, FIREWALL) | {"flows": {"max": 64, "max_ipv6": 64}}
    node = Node(
        plan,
        wrapper=manager.launch(),
        environment=manager.environment,
        options=["--keep-flows"],
    )
    with node:
        manager.settle()
        (name,) = manager.stored
        after = hand_over(node.running).after
        wait_for(lambda: list(manager.stored) not in ([], [name]), SOON_S, "another name")
        manager.settle()
        assert [len(fds) for fds in manager.stored.values()] == [2]
        os.kill(after.pid, signal.SIGKILL)
    wait_for(lambda: not running_nodes(), SOON_S, "its end")
    with Node(
        plan,
        wrapper=manager.launch(),
        environment=manager.environment,
        options=["--keep-flows"],
    ) as node:
        assert node.ready["flows"]["lost"] == 0
        assert "note" not in node.process.stderr.text()
        node.stop()
    manager.settle()
    assert manager.stored == {}
    # Its own is gone. That of the killed one goes with a start once somebody has waited for it.
    assert {path.name for path in runtime_folder.glob("convoyd-*")} <= {f"convoyd-{after.pid}"}


def test_flows_that_cannot_be_kept_are_named(net, manager):
    policer = {"name": "p", "type": "policer", "config": {"per": "flow", "cir_bps": 1000000}}
    with net.node(plan_between(policer), manager) as node:
        until_it_says(node, 'function "p": flows begin anew: they cannot be kept')
        node.stop()
    manager.settle()
    assert manager.stored == {}


def test_without_a_service_manager_it_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of(tmp_path)))
    done = subprocess.run(
        [need("convoyd"), "--keep-flows", path], text=True, check=False, capture_output=True,
        timeout=60, env={k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "--keep-flows: NOTIFY_SOCKET is not set" in done.stderr
