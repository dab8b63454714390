# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Numbered packets through a real node while a controller moves them from next hop to next hop.

They are in tunnels, whose ids (VNI) are the service-chain ids; the kernel would take VLAN tags off.
"""

import socket
import struct
import threading
from pathlib import Path

import pytest

from convoy.client import Client
from convoy.frame import NotAConvoyError, decode
from convoy.host.process import wait_for

from .conftest import ADD, DELETE, Bytes, flow_mod, message, node_of

NODE = """
ports:
  wire: {{af_packet: {interface}, convoys: {{ip: 192.0.2.1}}}}
next-hops:
  b: {{port: wire, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 1, for: []}}
  c: {{port: wire, mac: "02:00:00:00:00:0c", ip: 192.0.2.3, nfi: 2, for: []}}
chains: {{one: {{from: wire, to: wire, match: {{vni: 5000}}}}}}
workers: {{idle: sleep}}
openflow: {{listen: punix:openflow.sock}}
"""
INNER = b"\x02\0\0\0\0\xaa\x02\0\0\0\0\xbb\x88\xb5" + bytes(46)
EVERY_PROTOCOL = 3


def packet(number: int, vni: int = 5000) -> bytes:
    """A packet in a tunnel, with its number."""
    vxlan = struct.pack(">II", 0x08000000, vni << 8) + INNER + struct.pack(">I", number)
    udp = struct.pack(">HHHH", 50000, 4789, 8 + len(vxlan), 0) + vxlan
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0)
    return INNER[:12] + b"\x08\0" + ip + bytes([198, 51, 100, 1, 198, 51, 100, 2]) + udp


class Wire:
    """The other end of the node's wire: what came, as (number, NFI-ID), unaggregated with 0."""

    def __init__(self, interface: str) -> None:
        """Begin to receive."""
        protocol = socket.htons(EVERY_PROTOCOL)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._socket.bind((interface, 0))
        self._socket.settimeout(0.1)
        self.came: list[tuple[int, int]] = []
        self._ends = False
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def send(self, *numbers: int) -> None:
        """Send packets."""
        for number in numbers:
            self._socket.send(packet(number))

    def raw(self, frame: bytes) -> None:
        """Send a frame as it is."""
        self._socket.send(frame)

    def _receive(self) -> None:
        while not self._ends:
            try:
                data, where = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            if where[2] == socket.PACKET_OUTGOING:
                continue
            try:
                convoy = decode(data)
                packets, nfi = convoy.packets, convoy.nfi
            except NotAConvoyError:
                packets, nfi = (data,), 0
            self.came += [(int.from_bytes(one[-4:]), nfi) for one in packets]

    def wait_for(self, count: int) -> None:
        """Return when so many packets have come."""
        wait_for(lambda: len(self.came) >= count, 20, f"{count} packets")

    def close(self) -> None:
        """Receive no more."""
        self._ends = True
        self._thread.join()
        self._socket.close()


@pytest.mark.parametrize("flood", [0, 200000], ids=["alone", "beside a flood of others"])
def test_after_its_barrier_the_next_packet(
    veth: tuple[str, str], tmp_path: Path, flood: int
) -> None:
    with (
        node_of(NODE.format(interface=veth[0]), tmp_path) as node,
        Client(node.running.control) as client,
    ):
        path = next(tmp_path.rglob("openflow.sock"))
        controller, wire = Bytes(path), Wire(veth[1])
        expected: list[int] = []  # by a packet's number its NFI-ID
        flooding = threading.Thread(target=_flood, args=(path, flood))
        flooding.start()
        try:
            for turn in range(300):
                nfi = turn % 3  # 0: as in the plan, which says nothing
                controller.send(flow_mod(ADD, nfi, vni=5000) if nfi else flow_mod(DELETE, vni=5000))
                controller.barrier(turn)
                wire.send(*range(len(expected), len(expected) + 20))
                expected += [nfi] * 20
                # The next change comes when these have been sent: they are with the worker before.
                wire.wait_for(len(expected))
            flooding.join()
            counts = client.counts()
        finally:
            flooding.join()
            wire.close()
        assert node.stop()["accounting"]["conserved"]
    # None is lost, none overtakes another. One that leaves alone is in no convoy (0), but counted.
    assert [number for number, _ in wire.came] == list(range(len(expected)))
    assert all(nfi in (0, expected[number]) for number, nfi in wire.came)
    assert {nfi for _, nfi in wire.came} == {0, 1, 2}
    assert counts["next_hops"]["b"]["packets"] == expected.count(1)
    assert counts["next_hops"]["c"]["packets"] == expected.count(2)
    assert counts["accounting"]["dropped"] == 0, counts  # which, where it is not
    assert counts["openflow"]["refused"] == 0


def _flood(path: Path, count: int) -> None:
    """Change what other packets would do, as fast as it goes."""
    if count == 0:
        return
    other = Bytes(path)
    for begin in range(6000, 6000 + count, 1000):
        vnis = range(begin, begin + 1000)
        other.send(b"".join(flow_mod(ADD, 1 + vni % 2, vni=vni) for vni in vnis))
        other.barrier()
        other.send(b"".join(flow_mod(DELETE, vni=vni) for vni in vnis))
    other.barrier()
    other.close()


def test_a_hostile_controller_harms_nobody(veth: tuple[str, str], tmp_path: Path) -> None:
    with (
        node_of(NODE.format(interface=veth[0]), tmp_path) as node,
        Client(node.running.control) as client,
    ):
        path = next(tmp_path.rglob("openflow.sock"))
        good, wire = Bytes(path), Wire(veth[1])
        try:
            good.send(flow_mod(ADD, 1, vni=5000))
            good.barrier()
            # Who reads nothing: asks for much, and is asked for nothing else.
            deaf = [Bytes(path) for _ in range(3)]
            body = struct.pack("!HH4x", 1, 0) + struct.pack("!B3xIIIQQHHxxxx", 255, 0xFFFFFFFF,
                0xFFFFFFFF, 0, 0, 0, 1, 4)  # fmt: skip
            for one in deaf:
                one._socket.setblocking(False)
                try:
                    while True:
                        one.send(message(18, 1, body) * 100)
                except BlockingIOError:
                    pass
            # Who says nothing, half of something, or nonsense.
            others = []
            half, short, old = b"\x04\0\0", b"\x04\x0e\0\x07", b"\x01\0\0\x08\0\0\0\1"
            for data in (b"", half, short + bytes(4), bytes(1000), old):
                for _ in range(5):
                    one = socket.socket(socket.AF_UNIX)
                    one.connect(str(path))
                    one.send(data)
                    others.append(one)
            good = Bytes(path)
            for number in range(100):
                good.send(flow_mod(ADD, 1 + number % 2, vni=5000))
                good.barrier(number)
                wire.send(number)
                wire.wait_for(number + 1)
            for one in others:
                one.close()
            for one in deaf:
                one.close()
        finally:
            wire.close()
        assert [number for number, _ in wire.came] == list(range(100))
        assert client.next_hops()["b"]["packets"] == client.next_hops()["c"]["packets"] == 50
        assert client.counts()["openflow"]["controllers"] <= 16
        assert node.stop()["accounting"]["conserved"]
