# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames into a device's left port, byte for byte, and what then comes out of its right one.

Frames are sent and received by packet sockets. Where a device has no interface of the kernel, a
node of ours joins one to it: it has no functions and changes nothing.
"""

import dataclasses
import itertools
import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.dut.addresses import LEFT_MAC
from convoy.dut.base import Device, PortAt, Running
from convoy.host.folders import dpdk_folder
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from cores import CORES

from .packets import END_BYTES, udp

DEADLINE_S = 60.0
IN_A_ROW = 5
SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 263, 8, 1 << 4
OUTGOING = 4  # a packet type: what we sent ourselves
_numbers = itertools.count()


def interfaces() -> tuple[str, str]:
    """Return names that no interface has."""
    number = next(_numbers)
    return f"cv{os.getpid()}l{number}", f"cv{os.getpid()}r{number}"


def _with_tag(frame: bytes, more: list[tuple[int, int, bytes]]) -> bytes:
    """Put back an 802.1Q tag, which the kernel takes out of frames and hands over beside them."""
    for level, kind, data in more:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
            if status & VLAN_VALID:
                return frame[:12] + struct.pack(">HH", tpid or 0x8100, tci) + frame[12:]
    return frame


class Wire:
    """Two packet sockets."""

    def __init__(self, left: str, right: str, running: Running) -> None:
        self._running = running
        self._left, self._right = (self._open(name) for name in (left, right))

    @staticmethod
    def _open(interface: str) -> socket.socket:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        raw.bind((interface, 0))
        return raw

    def close(self) -> None:
        self._left.close()
        self._right.close()

    def _received(self, deadline: float) -> bytes | None:
        self._right.settimeout(max(deadline - time.monotonic(), 0.001))
        while True:
            try:
                frame, more, _, address = self._right.recvmsg(1 << 16, 64)
            except TimeoutError:
                return None
            if address[2] != OUTGOING:
                return _with_tag(frame, more)

    def until_it_forwards(self) -> None:
        """Send frames until several have come out, one after another.

        The first may, and the next get lost: a guest's interfaces come up one by one.
        """
        end = time.monotonic() + DEADLINE_S
        came = 0
        while time.monotonic() < end:
            assert self._running.alive(), "the device ended"
            self._left.send(udp(number=0xFFFF))
            came = came + 1 if self._received(time.monotonic() + 0.05) is not None else 0
            if came == IN_A_ROW:
                try:
                    for _ in range(2):
                        self._until_end([], 1.0)  # and everything else that was sent meanwhile
                except AssertionError:
                    came = 0
                else:
                    return
        raise AssertionError(f"it forwards nothing within {DEADLINE_S} s")

    def through(self, frames: Sequence[bytes]) -> list[bytes]:
        """Return what comes out when these frames go in.

        In order but for devices that sort a burst by flow; there, what was behind a frame may
        overtake it, but not what is sent when that has come out.
        """
        got = self._until_end(frames)
        return got + self._until_end([])

    def _until_end(self, frames: Sequence[bytes], within_s: float = DEADLINE_S) -> list[bytes]:
        end = udp(number=next(_numbers))
        for frame in (*frames, end):
            self._left.send(frame)
        got = []
        deadline = time.monotonic() + within_s
        while (frame := self._received(deadline)) is not None:
            if frame[-END_BYTES:] == end[-END_BYTES:]:
                return got
            got.append(frame)
        raise AssertionError(f"the last frame did not come out; before it came {len(got)}")


def _port(device: Device, port: PortAt, index: int) -> dict[str, Any]:
    """Return the other side of a device's port, as a descriptor has it."""
    queues = {"queues": port.queues} if port.queues > 1 else {}
    if port.kind == "virtio-user":
        return {"vhost-user": port.address, **queues}
    if port.kind == "memif":
        return {"memif": port.address, "role": "client"}
    server = device.tester_port(port, index).endswith(",server")
    return {"virtio-user": port.address, "mode": "server" if server else "client", **queues}


def _plan(
    device: Device, ports: tuple[PortAt, PortAt], folder: Path, convoys: bool
) -> dict[str, Any]:
    left, right = _port(device, ports[0], 0), _port(device, ports[1], 1)
    next_hops: dict[str, Any] = {}
    if convoys:  # to the device in convoys, and whatever comes back disaggregated
        left["convoys"], right["convoys"] = {"ip": "192.0.2.1"}, {}
        next_hops = {"next-hops": {"it": {"port": "left", "ip": "192.0.2.2", "mac": LEFT_MAC}}}
    descriptor = {
        "ports": {
            "in": {"af_packet": "in"},
            "out": {"af_packet": "out"},
            "left": left,
            "right": right,
        },
        **next_hops,
        "functions": {},
        "chains": {
            "there": {"from": "in", "to": "left", "path": []},
            "back": {"from": "right", "to": "out", "path": []},
        },
        "workers": {"cores": [CORES[0]], "idle": "sleep"},
        "memory": {"hugepages": "never"},
    }
    machine = dataclasses.replace(this_machine(), runtime_dir=folder)
    return make_plan(loads(json.dumps(descriptor), machine, folder, "wire"), machine).data


@contextmanager
def _taps(*names: str) -> Iterator[tuple[str, ...]]:
    """Make TAP interfaces, which QEMU takes."""
    with ExitStack() as made:
        for name in names:
            shell(f"ip tuntap add {name} mode tap")
            made.callback(shell, f"ip tuntap del {name} mode tap")
            shell(f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6")
            shell(f"ip link set {name} up promisc on")
        yield names


@contextmanager
def joined(
    device: Device, ports: tuple[PortAt, PortAt], folder: Path, convoys: bool = False
) -> Iterator[tuple[str, str]]:
    """Make what a device's ports are joined to; yield the interfaces that frames go by.

    Begins before the device does: sockets that it connects to are there.
    """
    if ports[0].kind in ("af_packet", "af_xdp"):
        yield ports[0].address, ports[1].address
        return
    if ports[0].kind == "tap":
        with _taps(ports[0].address, ports[1].address) as names:
            yield names
        return
    left, right = interfaces()
    with Namespace() as apart:
        for outside, inside in ((left, "in"), (right, "out")):
            shell(f"ip link add {outside} type veth peer name {inside} netns {apart.pid}")
            shell(f"echo 1 > /proc/sys/net/ipv6/conf/{outside}/disable_ipv6")
            shell(f"ip link set {outside} up")
            apart.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
            apart.run(f"ip link set {inside} up promisc on")
        with Node(
            _plan(device, ports, folder, convoys),
            wrapper=apart.command(),
            environment=dpdk_folder(folder),
        ):
            yield left, right


@contextmanager
def wire(ends: tuple[str, str], running: Running) -> Iterator[Wire]:
    """Open the interfaces; the device forwards when this returns."""
    opened = Wire(*ends, running)
    try:
        opened.until_it_forwards()
        yield opened
    finally:
        opened.close()
