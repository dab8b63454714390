# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames into either port of a chain, byte for byte, and what comes out of both."""

import dataclasses
import itertools
import json
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.host.folders import dpdk_folder
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from cores import CORES
from dut.wire import OUTGOING, PACKET_AUXDATA, SOL_PACKET, _with_tag

DEADLINE_S = 60.0
SIDES = ("inside", "outside")
_numbers = itertools.count()
Came = list[tuple[str, bytes]]  # out of which port


class Wires:
    """A packet socket at each port."""

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._sockets = dict(zip(SIDES, map(_open, interfaces), strict=True))

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()

    def send(self, side: str, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._sockets[side].send(frame)

    def received(self, until_s: float) -> tuple[str, bytes] | None:
        """Return the next frame and the side that it came out of, or None: none came in time."""
        while True:
            left = max(until_s - time.monotonic(), 0.0)
            ready, _, _ = select.select(list(self._sockets.values()), [], [], left)
            for side, each in self._sockets.items():
                if each in ready:
                    frame, more, _, address = each.recvmsg(1 << 16, 64)
                    if address[2] != OUTGOING:
                        return side, _with_tag(frame, more)
            if not ready:
                return None

    def until_it_forwards(self, side: str, ends: Sequence[bytes]) -> None:
        """Send ends until all of them come out, one after another, a few times in a row."""
        end_s = time.monotonic() + DEADLINE_S
        for end in ends:
            while True:
                assert time.monotonic() < end_s, f"nothing comes through from {side}"
                self.send(side, [_numbered(end)])
                if self.received(time.monotonic() + 0.2) is not None:
                    break
        # And everything that is still on its way.
        while self.received(time.monotonic() + 0.5) is not None:
            pass

    def through(self, side: str, frames: Sequence[bytes], ends: Sequence[bytes]) -> Came:
        """Return what comes out when these frames go in: sorted, since links overtake each other.

        ends: frames that come out themselves, one behind each way that others take.
        """
        marked = [_numbered(end) for end in ends]
        marks = {mark[-4:] for mark in marked}
        came: Came = []
        for at in range(0, len(frames) + 1, 64):  # rings are short
            self.send(side, frames[at : at + 64])
            last = [_numbered(end) for end in ends]
            self.send(side, last)
            waited = {mark[-4:] for mark in last}
            marks |= waited
            deadline_s = time.monotonic() + DEADLINE_S
            while waited:
                one = self.received(deadline_s)
                assert one is not None, f"the last frame from {side} did not come out"
                waited.discard(one[1][-4:])
                if one[1][-4:] not in marks:
                    came.append(one)
        return sorted(came)


def _numbered(frame: bytes) -> bytes:
    return frame + struct.pack(">I", 0xE0000000 + next(_numbers))


def _open(interface: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    raw.bind((interface, 0))
    return raw


@contextmanager
def wires(folder: Path) -> Iterator[Wires]:
    """Join two interfaces to the memif sockets inside.sock and outside.sock of a folder.

    What joins them is a node without functions; it need not end with the chain.
    """
    number = next(_numbers)
    names = [f"ch{os.getpid()}{side[0]}{number}" for side in SIDES]
    descriptor = {
        "ports": {
            **{f"{side}-if": {"af_packet": side} for side in SIDES},
            **{side: {"memif": f"{folder}/{side}.sock", "role": "client"} for side in SIDES},
        },
        "chains": {
            side: {"from": f"{side}-if", "to": side, "path": [], "both-ways": True}
            for side in SIDES
        },
        "workers": {"cores": [CORES[0]], "idle": "sleep"},
        "memory": {"hugepages": "never", "mb": 128},
    }
    machine = dataclasses.replace(this_machine(), runtime_dir=folder)
    plan = make_plan(loads(json.dumps(descriptor), machine, folder, "wires"), machine).data
    with Namespace() as apart:
        for outside, inside in zip(names, SIDES, strict=True):
            shell(f"ip link add {outside} type veth peer name {inside} netns {apart.pid}")
            shell(f"echo 1 > /proc/sys/net/ipv6/conf/{outside}/disable_ipv6")
            shell(f"ip link set {outside} up")
            apart.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
            apart.run(f"ip link set {inside} up promisc on")
        with Node(plan, wrapper=apart.command(), environment=dpdk_folder(folder)):
            made = Wires(names)
            try:
                yield made
            finally:
                made.close()
