# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The same TCP packets, one by one, through a firewall that checks windows and through conntrack.

Sequence numbers, acknowledgements and windows are at the edges of what either end can accept, and
beyond. Two kinds differ on purpose: data that is older than a window, and data that begins up to a
window too late. Linux passes them and learns nothing from them (since 5.19); here they are dropped.
"""

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet, Raw

from .test_nat_conntrack import HOSTS, LINUX, POOL, REMOTES, Middlebox, middlebox, nat_plan

ALL = LINUX.replace("tcp_be_liberal=1", "tcp_be_liberal=0")
MODULUS = 1 << 32
ACKS_BEHIND = 66000


def _plan(windows: str) -> dict[str, Any]:
    plan = nat_plan()
    plan["functions"].append(
        {
            "name": "fw",
            "type": "firewall",
            "config": {"stateful": True, "default": "allow", "tcp_window": windows},
        }
    )
    for stage, path in zip(
        plan["stages"], (["rtr", "fw", "nat"], ["nat", "fw", "rtr"]), strict=True
    ):
        stage["path"] = path
    return plan


@pytest.fixture(scope="module", params=["all", "resets"])
def boxes(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[Middlebox]]]:
    if os.geteuid() != 0 or shutil.which("nft") is None:
        pytest.skip("needs root, for network namespaces, and nftables")
    linux = ALL if request.param == "all" else LINUX
    with (
        middlebox("convoy", _plan(request.param)) as ours,
        middlebox("nftables", linux=linux) as theirs,
    ):
        yield request.param, [ours, theirs]


@dataclass
class End:
    """What one end of a connection has sent, and how much it takes."""

    next: int
    scale: int
    window: int = 0  # the largest that it announced, bytes
    limit: int = 0  # up to which the other end lets it send


@dataclass
class Connection:
    chance: random.Random
    port: int
    ends: dict[str, End] = field(default_factory=dict)
    external: dict[int, int] = field(default_factory=dict)  # ports, by the middlebox

    def packet(self, side: str, flags: str, seq: int, ack: int, window: int, data: bytes) -> Packet:
        addresses = {"src": HOSTS[0], "dst": REMOTES[0]}
        ports = {"sport": self.port, "dport": 80}
        if side == "outside":
            addresses = {"src": REMOTES[0], "dst": POOL}
            ports = {"sport": 80, "dport": 0}
        tcp = TCP(**ports, flags=flags, seq=seq % MODULUS, ack=ack % MODULUS, window=window)
        return IP(**addresses) / tcp / Raw(data)


def _send(boxes: list[Middlebox], connection: Connection, side: str, packet: Packet) -> list[bool]:
    """Send a packet through each; return whether it came out."""
    passed = []
    for number, box in enumerate(boxes):
        one = packet.copy()
        if side == "outside":
            one[TCP].dport = connection.external[number]
        came = [left for _, left in box.pass_(side, [one]) if TCP in left]
        for received in came:
            assert received[TCP].seq == packet[TCP].seq
            assert received[TCP].ack == packet[TCP].ack
            if side == "inside":
                connection.external[number] = received[TCP].sport
        passed.append(bool(came))
    return passed


def _open(boxes: list[Middlebox], chance: random.Random, port: int) -> Connection:
    """Open a connection; its windows are scaled if both ends ask for it."""
    scales = {"inside": chance.choice([0, 2, 7]), "outside": chance.choice([0, 3])}
    has = {side: chance.random() < 0.7 for side in scales}
    if not all(has.values()):
        scales = dict.fromkeys(scales, 0)
    connection = Connection(chance, port)
    for side in scales:
        connection.ends[side] = End(chance.randrange(MODULUS), scales[side])
    client, server = connection.ends["inside"], connection.ends["outside"]
    syn = connection.packet("inside", "S", client.next, 0, 8000, b"")
    syn_ack = connection.packet("outside", "SA", server.next, client.next + 1, 9000, b"")
    options = {"inside": chance.choice([2, 7]), "outside": 3}
    for side, packet in (("inside", syn), ("outside", syn_ack)):
        if has[side]:
            scale = scales[side] if all(has.values()) else options[side]
            packet[TCP].options = [("MSS", 1460), ("NOP", None), ("WScale", scale)]
        assert _send(boxes, connection, side, packet) == [True, True]
    client.next += 1
    server.next += 1
    client.window, server.window = 8000, 9000
    client.limit, server.limit = client.next + 9000, server.next + 8000
    ack = connection.packet("inside", "A", client.next, server.next, 8000, b"")
    assert _send(boxes, connection, "inside", ack) == [True, True]
    client.window = 8000 << client.scale
    server.limit = server.next + client.window
    return connection


def _step(boxes: list[Middlebox], windows: str, connection: Connection) -> None:
    chance = connection.chance
    side, other = chance.choice([("inside", "outside"), ("outside", "inside")])
    sender, receiver = connection.ends[side], connection.ends[other]
    data = chance.randbytes(min(chance.choice([0, 1, 10, 500]), sender.limit - sender.next))
    seq, ack = sender.next, receiver.next
    kind = chance.choice(["next", "next", "again", "edge", "late", "early ack", "old ack", "old"])
    expected = True
    if kind == "again":
        seq -= chance.randrange(0, min(receiver.window, 900))
    elif kind == "edge":
        seq = sender.limit
        data = b""
    elif kind == "late":
        seq = sender.limit + 2 * receiver.window + chance.choice([2, 1000, 1 << 29])
        expected = False
    elif kind == "early ack":
        ack += chance.choice([1, 100, 1 << 29])
        expected = False
    elif kind == "old ack":
        ack -= chance.choice([1, 1000, ACKS_BEHIND - 1])
    elif kind == "old":
        seq -= receiver.window + len(data) + chance.choice([2, 100, 1 << 29])
        expected = False
    raw = chance.choice([1000, 5000, 30000])
    packet = connection.packet(side, "A", seq, ack, raw, data)
    ours, theirs = _send(boxes, connection, side, packet)
    expected = expected or windows == "resets"
    what = f"{kind} from {side}: {packet.summary()}, seq {seq}, ack {ack}: {sender}, {receiver}"
    assert ours == expected, what
    if kind != "old":
        assert theirs == ours, what
    if kind not in ("late", "early ack", "old"):
        sender.window = max(sender.window, raw << sender.scale)
        sender.next = max(sender.next, seq + len(data))
        receiver.limit = max(receiver.limit, ack + (raw << sender.scale))


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence(boxes: tuple[str, list[Middlebox]], seed: int) -> None:
    windows, both = boxes
    chance = random.Random(seed)
    connection = _open(both, chance, 20000 + 100 * (windows == "all") + seed)
    for _ in range(120):
        _step(both, windows, connection)


# A reset of the server, by how far it is from the last acknowledgement; and whether it passes.
RESETS = {0: True, 1: True, 700: True, 4999: True, -1: False, -70000: False, 300000: False}


@pytest.mark.parametrize("offset", RESETS)
def test_resets(boxes: tuple[str, list[Middlebox]], offset: int) -> None:
    """One that its receiver may not believe passes, and the connection goes on."""
    windows, both = boxes
    port = 30000 + 100 * (windows == "all") + list(RESETS).index(offset)
    connection = _open(both, random.Random(0), port)
    server, client = connection.ends["outside"], connection.ends["inside"]
    _ping(both, connection, client, server)
    reset = connection.packet("outside", "R", server.next + offset, 0, 0, b"")
    ours, theirs = _send(both, connection, "outside", reset)
    assert ours == RESETS[offset]
    assert theirs == ours or windows == "resets"  # a liberal Linux lets more pass
    if offset != 0:
        # Whoever sends it cannot open what it has not closed: the SYN is the client's to challenge.
        syn = connection.packet("outside", "S", 77, 0, 1000, b"")
        _send(both, connection, "outside", syn)
        _ping(both, connection, client, server)


def _ping(boxes: list[Middlebox], connection: Connection, client: End, server: End) -> None:
    for side, one, two in (("inside", client, server), ("outside", server, client)):
        packet = connection.packet(side, "A", one.next, two.next, 5000, b"on")
        assert _send(boxes, connection, side, packet) == [True, True]
        one.next += 2
    ack = connection.packet("inside", "A", client.next, server.next, 5000, b"")
    assert _send(boxes, connection, "inside", ack) == [True, True]
