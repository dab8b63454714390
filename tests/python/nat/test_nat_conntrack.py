# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The same packets, one by one, through nat and through Linux's conntrack with nftables.

Steps say what is sent by what came out before: the answer to a packet goes to the external port
that this middlebox gave it. What comes out is compared with external ports named by whose they are,
for each middlebox chooses its own. Fragments are compared reassembled: conntrack waits for
all.

Linux drops what it calls invalid here, as every gateway's rules should, and does not check TCP
windows, as nat does not. Steps leave out what is known to differ: conntrack is a firewall as well
and drops TCP packets with flags that do not follow those before, which nat leaves to firewall; and
nat drops fragments that come before their first (docs/functions.md).
"""

import ctypes
import os
import random
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.offload import turn_off
from cores import CORES

DEADLINE_S = 20.0
CLONE_NEWNET = 0x40000000
SIDES = ("inside", "outside")
POOL = "203.0.113.1"
HOSTS = ["10.1.0.2", "10.1.0.3", "10.1.0.4"]
REMOTES = ["192.0.2.2", "192.0.2.3"]
UNSOLICITED = "192.0.2.99"  # whom no host has sent to
ROUTERS = {"inside": "10.1.0.1", "outside": "192.0.2.1"}
PLAIN = "172.16.9.9"  # an address inside that is not translated: marks the end of a step
MAC = {"inside": "02:00:00:00:0a:01", "outside": "02:00:00:00:0b:01"}  # of the middlebox
PEER = {"inside": "02:00:00:00:0a:02", "outside": "02:00:00:00:0b:02"}
NEIGHBOURS = {"inside": [*HOSTS, PLAIN], "outside": REMOTES}
LINUX = f"""
sysctl -qw net.ipv4.ip_forward=1 net.netfilter.nf_conntrack_tcp_be_liberal=1
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
ip address add {ROUTERS["inside"]}/24 dev inside
ip address add {ROUTERS["outside"]}/24 dev outside
ip route add blackhole {POOL}
ip route add 172.16.9.0/24 dev inside
nft -f - <<END
table ip nat {{
  chain in {{ type nat hook prerouting priority -100; }}
  chain forward {{ type filter hook forward priority 0; ct state invalid drop; }}
  chain out {{
    type nat hook postrouting priority 100;
    ip saddr 10.1.0.0/24 oifname outside snat to {POOL}
  }}
}}
END
"""


def nat_plan() -> dict[str, Any]:
    router = {
        "addresses": {side: [f"{address}/24"] for side, address in ROUTERS.items()},
        "routes": [{"prefix": "172.16.9.0/24", "dev": "inside"}],
        "neighbours": [
            {"address": address, "mac": PEER[side], "dev": side}
            for side, addresses in NEIGHBOURS.items()
            for address in addresses
        ],
    }
    nat = {
        "outside": ["outside"],
        "inside": ["10.1.0.0/24"],
        "pool": [POOL],
        "filtering": "address-and-port-dependent",
    }
    ways = (("inside", "outside", ["rtr", "nat"]), ("outside", "inside", ["nat", "rtr"]))
    return {
        "schema": "convoy.plan/1",
        "ports": [{"name": side, "kind": "af_packet", "interface": side} for side in SIDES],
        "functions": [
            {"name": "rtr", "type": "router", "config": router},
            {"name": "nat", "type": "nat", "config": nat},
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b, _ in ways],
        "stages": [
            {
                "worker": 0,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": path,
                "sink": {"port": b},
            }
            for a, b, path in ways
        ],
        "workers": [{"core": CORES[0], "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


def _packet_socket(namespace: Namespace, interface: str) -> socket.socket:
    """Return a socket that is inside, whoever uses it."""
    made: list[socket.socket] = []

    def make() -> None:
        with Path(f"/proc/{namespace.pid}/ns/net").open("rb") as net:
            if ctypes.CDLL(None).setns(net.fileno(), CLONE_NEWNET) != 0:
                return
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            one.bind((interface, 3))
            one.settimeout(DEADLINE_S)
            made.append(one)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


@dataclass
class Middlebox:
    """What is asked, and what it has answered."""

    sockets: dict[str, socket.socket]
    step: int = 0
    # Whose an external port is, by protocol, port and remote end.
    owners: dict[tuple[int, int, str, int], tuple[str, int]] = field(default_factory=dict)
    # The last packet that went out of each flow.
    went: dict[int, Packet] = field(default_factory=dict)

    def mark(self) -> bytes:
        """Return what ends this step."""
        return f"step {self.step:08d}".encode()

    def pass_(self, side: str, packets: list[Packet]) -> list[tuple[str, Packet]]:
        """Send packets in by a side; return what came out, and where."""
        self.step += 1
        other = "outside" if side == "inside" else "inside"
        ends = (PLAIN, REMOTES[0]) if side == "inside" else (REMOTES[0], PLAIN)
        mark = IP(src=ends[0], dst=ends[1]) / UDP(sport=7, dport=7) / self.mark()
        for packet in (*packets, mark):
            self.sockets[side].send(bytes(Ether(src=PEER[side], dst=MAC[side]) / packet))
        came = []
        while True:
            data, where = self.sockets[other].recvfrom(65536)
            frame = Ether(data)
            if where[2] == 4 or frame.src != MAC[other] or IP not in frame:  # 4: sent from here
                continue
            if self.mark() in data:
                break
            came.append((other, frame[IP]))
        self.sockets[side].setblocking(False)
        try:
            while True:
                data, where = self.sockets[side].recvfrom(65536)
                frame = Ether(data)
                if where[2] != 4 and frame.src == MAC[side] and IP in frame:
                    came.append((side, frame[IP]))
        except BlockingIOError:
            return came
        finally:
            self.sockets[side].settimeout(DEADLINE_S)


@contextmanager
def middlebox(
    kind: str, plan: dict[str, Any] | None = None, linux: str = LINUX
) -> Iterator[Middlebox]:
    with ExitStack() as stack:
        try:
            middle, *both = (stack.enter_context(Namespace()) for _ in range(3))
            for side, host in zip(SIDES, both, strict=True):
                ends = [f"cc{os.getpid() % 10**6}{side[0]}{end}" for end in "nh"]
                shell(f"ip link add name {ends[0]} type veth peer name {ends[1]}")
                for end, namespace, mac in (
                    (ends[0], middle, MAC[side]),
                    (ends[1], host, PEER[side]),
                ):
                    turn_off(end)
                    shell(f"ip link set {end} netns {namespace.pid} name {side} address {mac}")
                    namespace.run(
                        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1\n"
                        f"ip link set {side} arp off up"
                    )
            if kind == "nftables":
                middle.run(linux)
                for side, addresses in NEIGHBOURS.items():
                    for address in addresses:
                        middle.run(
                            f"ip neigh replace {address} lladdr {PEER[side]} dev {side} "
                            "nud permanent"
                        )
        except ConvoyError as why:
            pytest.skip(f"no such network here: {why}")
        sockets = {
            side: stack.enter_context(_packet_socket(host, side))
            for side, host in zip(SIDES, both, strict=True)
        }
        node = None
        if kind == "convoy":
            node = stack.enter_context(Node(plan or nat_plan(), wrapper=middle.command()))
        yield Middlebox(sockets)
        if node is not None:
            counts = node.stop()
            assert counts["accounting"]["conserved"], counts["accounting"]


def _ends(packet: Packet) -> tuple[int, str, int, str, int]:
    """Return protocol, source, destination; an ICMP identifier is both ports."""
    if TCP in packet or UDP in packet:
        ports = packet[TCP if TCP in packet else UDP]
        return (packet.proto, packet.src, ports.sport, packet.dst, ports.dport)
    return (packet.proto, packet.src, packet[ICMP].id or 0, packet.dst, 0)


def _turned(packet: Packet) -> Packet:
    """Return the headers of an answer to a packet."""
    head = IP(src=packet.dst, dst=packet.src)
    if TCP in packet:
        return head / TCP(sport=packet[TCP].dport, dport=packet[TCP].sport)
    if UDP in packet:
        return head / UDP(sport=packet[UDP].dport, dport=packet[UDP].sport)
    return head / ICMP(type=0, id=packet[ICMP].id)


@dataclass(frozen=True)
class Flow:
    """What a host begins: protocol, source, destination."""

    proto: str
    host: str
    sport: int
    remote: str
    dport: int

    def packet(self, flags: str, payload: bytes) -> Packet:
        head = IP(src=self.host, dst=self.remote)
        if self.proto == "tcp":
            return head / TCP(sport=self.sport, dport=self.dport, flags=flags, seq=1) / payload
        if self.proto == "udp":
            return head / UDP(sport=self.sport, dport=self.dport) / payload
        return head / ICMP(type=8, id=self.sport) / payload


def _name(box: Middlebox, packet: Packet) -> object:
    """Return a packet without what each middlebox chooses; names of external ends in its place."""
    if ICMP in packet and packet[ICMP].type in (3, 11):
        # With its quoted bytes alone: scapy would take what follows for more.
        inner = IP(bytes(packet[ICMP].payload))
        return ("error", packet[ICMP].type, packet[ICMP].code, _ip(box, packet), _name(box, inner))
    proto, src, sport, dst, dport = _ends(packet)
    left, right = (src, sport), (dst, dport)
    if src == POOL:
        left = ("external", *box.owners[proto, sport, dst, dport])  # type: ignore[assignment]
    if dst == POOL:
        right = ("external", *box.owners[proto, dport, src, sport])  # type: ignore[assignment]
    if dst == POOL and ICMP in packet:
        right = ("external", *box.owners[proto, sport, src, 0])  # type: ignore[assignment]
    flags = str(packet[TCP].flags) if TCP in packet else packet[ICMP].type if ICMP in packet else 0
    # Not Raw's: scapy takes some ports for protocols above.
    load = bytes(packet.payload.payload)
    return (proto, left, right, packet.ttl, flags, load)


def _ip(box: Middlebox, packet: Packet) -> tuple[str, ...]:
    return tuple("external" if end == POOL else end for end in (packet.src, packet.dst))


def _whole(packets: list[Packet]) -> Packet:
    """Put fragments together."""
    head = next(packet for packet in packets if packet.frag == 0).copy()
    bodies = sorted((packet.frag, bytes(packet.payload)) for packet in packets)
    body = b"".join(data for _, data in bodies)
    head.flags, head.len, head.chksum = 0, None, None
    head.remove_payload()
    return IP(bytes(head / Raw(body)))


def _right(packet: Packet) -> None:
    """Check a packet's checksums."""
    again = packet.copy()
    del again.chksum
    for layer in (TCP, UDP, ICMP):
        if layer in again and not (layer is UDP and packet[UDP].chksum == 0):
            del again[layer].chksum
            break
    assert bytes(again) == bytes(packet), packet.show(dump=True)


Step = tuple[str, int, str, bytes]


def _play(box: Middlebox, flows: list[Flow], step: Step) -> object:
    """Do one step; return what came of it, by names."""
    kind, index, flags, load = step
    flow, went = flows[index], box.went.get(index)
    side = "inside" if kind in ("out", "fragments") else "outside"
    packets = []
    if side == "inside":
        whole = flow.packet(flags, load)
        packets = [whole]
        if kind == "fragments":
            data = bytes(IP(bytes(whole)).payload)
            proto = IP(bytes(whole)).proto
            cut = 64
            head = {"src": flow.host, "dst": flow.remote, "id": 1000 + box.step, "proto": proto}
            packets = [
                IP(**head, flags="MF") / Raw(data[:cut]),
                IP(**head, frag=cut // 8) / Raw(data[cut:]),
            ]
    elif went is None:
        return "nothing to answer"
    elif kind == "answer":
        answer = _turned(went)
        if TCP in answer:
            answer[TCP].flags = flags
        packets = [answer / load]
    elif kind == "unsolicited":
        answer = _turned(went)
        answer.src = UNSOLICITED
        if TCP in answer:
            answer[TCP].flags = "S"
        packets = [answer / load]
    elif kind == "error":
        quoted = Raw(bytes(went)[: 40 if TCP in went else 28])
        packets = [IP(src=REMOTES[1], dst=POOL) / ICMP(type=3, code=int(flags)) / quoted]
    elif kind == "error about nothing":
        unknown = IP(src=POOL, dst=flow.remote) / UDP(sport=60999, dport=9)
        packets = [IP(src=REMOTES[1], dst=POOL) / ICMP(type=3, code=1) / Raw(bytes(unknown))]
    came = box.pass_(side, packets)
    if kind == "fragments" and came:
        came = [(came[0][0], _whole([packet for _, packet in came]))]
    names = []
    for where, packet in came:
        _right(packet)
        if side == "inside":
            proto, src, sport, dst, dport = _ends(packet)
            assert src == POOL, packet.show(dump=True)
            box.owners[proto, sport, dst, dport] = (flow.host, flow.sport)
            box.went[index] = packet
        names.append((where, _name(box, packet)))
    return names


def _flows(chance: random.Random, count: int) -> list[Flow]:
    """Return flows; some share a source port, or all but the host."""
    flows = [
        Flow(
            chance.choice(["tcp", "tcp", "udp", "icmp"]),
            chance.choice(HOSTS),
            chance.choice([5000, 5000, 5001, chance.randrange(1024, 60000)]),
            chance.choice(REMOTES),
            chance.choice([80, 443]),
        )
        for _ in range(count)
    ]
    return list(dict.fromkeys(flows))


# What TCP sends next, by what was sent last: (kind of step, flags), and the state after it.
LIFE = {
    "new": [("out", "S", "opening"), ("out", "R", "new")],
    "opening": [("out", "S", "opening"), ("answer", "SA", "open")],
    "open": [
        ("out", "A", "open"),
        ("out", "PA", "open"),
        ("answer", "PA", "open"),
        ("answer", "A", "open"),
        ("out", "R", "over"),
        ("answer", "R", "over"),
    ],
    "over": [("out", "S", "opening")],
}


def _steps(chance: random.Random, flows: list[Flow], count: int) -> Iterator[Step]:
    states = ["new"] * len(flows)
    for _ in range(count):
        index = chance.randrange(len(flows))
        flow, load = flows[index], chance.randbytes(chance.choice([0, 1, 30, 100]))
        other = chance.choice(["", "", "", "unsolicited", "error", "error about nothing"])
        if other and states[index] != "new":
            yield (other, index, chance.choice(["0", "1", "3"]), load)
        elif flow.proto == "tcp":
            kind, flags, states[index] = chance.choice(LIFE[states[index]])
            yield (kind, index, flags, load if "P" in flags else b"")
        elif flow.proto == "udp" and chance.random() < 0.2:
            yield ("fragments", index, "", chance.randbytes(200))
            states[index] = "open"
        else:
            yield (chance.choice(["out", "answer"]), index, "", load)
            states[index] = "open"


SCRIPTS: dict[str, tuple[list[Flow], list[Step]]] = {
    "a SYN flood from inside, half open": (
        [Flow("tcp", HOSTS[i % 3], 2000 + i, REMOTES[0], 80) for i in range(200)],
        [("out", i, "S", b"") for i in range(200)]
        + [("answer", i, "SA", b"") for i in range(0, 200, 7)]
        + [("unsolicited", i, "S", b"") for i in range(0, 200, 9)],
    ),
    "three hosts with one port": (
        [Flow("udp", host, 4000, REMOTES[0], 53) for host in HOSTS],
        [("out", i % 3, "", b"a%d" % i) for i in range(6)]
        + [("answer", i % 3, "", b"b%d" % i) for i in range(6)],
    ),
    "a connection, reset, and its ports again": (
        [Flow("tcp", HOSTS[0], 4001, REMOTES[0], 80)],
        [
            ("out", 0, "S", b""),
            ("answer", 0, "SA", b""),
            ("out", 0, "A", b""),
            ("out", 0, "PA", b"data"),
            ("answer", 0, "PA", b"more"),
            ("error", 0, "1", b""),
            ("answer", 0, "R", b""),
            ("out", 0, "S", b""),
            ("answer", 0, "SA", b""),
            ("answer", 0, "FA", b""),
            ("out", 0, "FA", b""),
            ("answer", 0, "A", b""),
            ("out", 0, "S", b""),
            ("answer", 0, "SA", b""),
        ],
    ),
    "resets of nothing": (
        [Flow("tcp", HOSTS[0], 4002, REMOTES[0], 80)],
        [("out", 0, "R", b""), ("answer", 0, "R", b""), ("error about nothing", 0, "", b"")],
    ),
    "echoes and errors about them": (
        [Flow("icmp", host, 77, REMOTES[0], 0) for host in HOSTS],
        [
            step
            for i in range(3)
            for step in (
                ("out", i, "", b"ping%d" % i),
                ("answer", i, "", b"ping%d" % i),
                ("error", i, "1", b""),
            )
        ],
    ),
    "fragments": (
        [Flow("udp", HOSTS[i], 4003, REMOTES[i], 53) for i in range(2)],
        [("out", 0, "", b"x"), ("fragments", 0, "", bytes(300)), ("fragments", 1, "", bytes(100))],
    ),
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[list[Middlebox]]:
    if os.geteuid() != 0 or shutil.which("nft") is None:
        pytest.skip("needs root, for network namespaces, and nftables")
    with middlebox("convoy") as ours, middlebox("nftables") as theirs:
        yield [ours, theirs]


def _compare(boxes: list[Middlebox], flows: list[Flow], steps: list[Step]) -> None:
    for box in boxes:
        box.went.clear()
        box.owners.clear()
    passed = 0
    for number, step in enumerate(steps):
        ours, theirs = (_play(box, flows, step) for box in boxes)
        assert ours == theirs, f"step {number}: {step[:3]} of {flows[step[1]]}"
        passed += bool(ours)
    assert passed or len(steps) < 4


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(boxes: list[Middlebox], name: str) -> None:
    _compare(boxes, *SCRIPTS[name])


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence(boxes: list[Middlebox], seed: int) -> None:
    chance = random.Random(seed)
    flows = [
        Flow(flow.proto, flow.host, flow.sport + 3 * seed, flow.remote, flow.dport + 1 + seed)
        for flow in _flows(chance, 12)
    ]
    _compare(boxes, flows, list(_steps(chance, flows, 150)))
