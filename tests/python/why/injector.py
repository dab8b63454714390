# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node in which packets get lost: its descriptor, made of kinds.py, and guests who send them."""

import random
import struct
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from hostile.front_end import connect
from hostile.guest import Guest

from .kinds import IDS, IN, OUT, VPN, Answer, Kind, Place

DEADLINE_S = 30
FIRST_VLAN = 100
PORTS = f"""
ports:
  in: {{vhost-user: in, mac: "{IN}", mtu: 1500}}
  out: {{vhost-user: out, mac: "{OUT}", mtu: 1400}}
  deaf: {{vhost-user: deaf}}
  wire: {{vhost-user: wire, convoys: {{ip: 192.0.2.1, from: [192.0.2.7], reassemble: true}}}}
flows: {{max: 1024, per-host: 100}}
workers: {{idle: sleep}}
memory: {{hugepages: never}}
"""


def tagged(frame: bytes, vlan: int) -> bytes:
    """Return a frame with a tag."""
    return frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:]


def available(places: dict[str, Place], folder: Path) -> dict[str, Place]:
    """Return the places whose functions this build has."""
    left = dict(places)
    for optional in (IDS, VPN):
        try:
            with Injector({"one": optional}, folder, 0).node:
                pass
        except InputError as error:
            if "built without it" not in str(error):
                raise
            kind = optional.functions.partition("{")[2].partition(":")[0]
            left = {name: one for name, one in left.items() if f"{{{kind}:" not in one.functions}
    return left


class Injector:
    """A node, and who loses packets in it, in an order of its own."""

    def __init__(self, places: dict[str, Place], folder: Path, seed: int) -> None:
        """Say which node; it is not started yet."""
        self._vlans = {name: FIRST_VLAN + i for i, name in enumerate(places)}
        self._folder = folder
        self._secret = [(name, kind) for name, place in places.items() for kind in place.kinds]
        self._places = places
        random.Random(seed).shuffle(self._secret)
        machine = this_machine()
        self.node = Node(make_plan(loads(self._text(), machine, folder), machine).data)

    def _text(self) -> str:
        functions, chains = [], []
        for name, place in self._places.items():
            if not place.functions:
                continue
            text = place.functions.removeprefix("f: ")
            for file, content in place.files.items():
                path = self._folder / f"{name}.{file}"
                path.write_text(content)
                path.chmod(0o600)
                text = text.replace(file, str(path))
            functions.append(f"  {name}: {text}\n")
            vlan = f"match: {{vlan: {self._vlans[name]}}}, "
            match = vlan if place.tagged else place.match
            both = "true" if place.to == "out" and place.tagged else "false"
            chains.append(
                f"  {name}: {{from: {place.port}, to: {place.to}, {match}path: [{name}], "
                f"both-ways: {both}}}\n"
            )
        return f"{PORTS}functions:\n{''.join(functions)}chains:\n{''.join(chains)}"

    def bytes_of(self, place: str, packet: bytes) -> bytes:
        """Return a packet as it is sent."""
        return tagged(packet, self._vlans[place]) if self._places[place].tagged else packet

    def inject(self) -> None:
        """Lose them all."""
        with ExitStack() as stack:
            guests: dict[str, Guest] = {}
            folder = self._folder / "convoy"
            for name in ("in", "out", "deaf", "wire"):
                front_end, offered = connect(folder / name)
                guests[name] = stack.enter_context(Guest(front_end, offered))
                guests[name].start(buffers=name != "deaf")
            for place, kind in self._secret:
                self._inject(guests, place, kind)

    def _inject(self, guests: dict[str, Guest], place: str, kind: Kind) -> None:
        near = self._places[place].port
        for answers, packets in groupby(kind.before, lambda one: isinstance(one, Answer)):
            port = "out" if answers else near
            self._send(guests, port, (self.bytes_of(place, one) for one in packets))
        port = near if kind.port == "in" else kind.port
        self._send(guests, port, [self.bytes_of(place, kind.lost)])

    def _send(self, guests: dict[str, Guest], port: str, packets: Iterable[bytes]) -> None:
        left = list(packets)

        def sent() -> bool:
            for guest in guests.values():
                guest.received()
            # Few at a time, so that the node loses none for want of a buffer behind it.
            if guests[port].idle():
                del left[: guests[port].send(left[:32])]
            return not left and guests[port].idle()

        wait_for(sent, DEADLINE_S, "the node to receive")

    def secret(self) -> dict[bytes, tuple[str, Kind]]:
        """Return what was lost, and where, by its bytes."""
        lost = {self.bytes_of(place, kind.lost): (place, kind) for place, kind in self._secret}
        assert len(lost) == len(self._secret), "two kinds have the same bytes"
        return lost
