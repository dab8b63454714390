# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets that a node traced as a capture file, with what became of each as its comment.

The format is pcapng (draft-ietf-opsawg-pcapng): a section, an interface for each port, and packets.
"""

import struct
from typing import IO

from convoy.client.why import Bytes, Packet

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_END, _COMMENT, _NAME, _FLAGS, _RESOLUTION = 0, 1, 2, 2, 9
_ETHERNET = 1
_NANOSECONDS = 9
_INBOUND, _OUTBOUND = 1, 2


class PcapngWriter:
    """Writes packets to a file: as they came, and those that were sent as they left."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._ports: dict[str, int] = {}
        self._write(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))

    def add(self, packet: Packet, comment: str) -> None:
        """Write a packet."""
        if packet.before is not None:
            self._add(packet, packet.port, packet.before, _INBOUND, comment)
        if packet.end == "sent" and packet.out is not None and packet.after is not None:
            self._add(packet, packet.out, packet.after, _OUTBOUND, f"left: {comment}")

    def _add(self, packet: Packet, port: str, part: Bytes, flags: int, comment: str) -> None:
        head = (self._port(port), packet.at >> 32, packet.at & 0xFFFFFFFF)
        body = struct.pack("<IIIII", *head, len(part.data), part.length) + _padded(part.data)
        options = _option(_COMMENT, comment.encode()) + _option(_FLAGS, struct.pack("<I", flags))
        self._write(_PACKET, body + options + _option(_END, b""))

    def _port(self, name: str) -> int:
        """Return the number of a port's interface, which is there from its first packet on."""
        if name not in self._ports:
            self._ports[name] = len(self._ports)
            options = _option(_NAME, name.encode()) + _option(_RESOLUTION, bytes([_NANOSECONDS]))
            body = struct.pack("<HHI", _ETHERNET, 0, 0) + options + _option(_END, b"")
            self._write(_INTERFACE, body)
        return self._ports[name]

    def _write(self, kind: int, body: bytes) -> None:
        length = len(body) + 12
        self._file.write(struct.pack("<II", kind, length) + body + struct.pack("<I", length))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)
