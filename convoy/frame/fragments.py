# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames of type 2: the packet that did not fit goes on in the next frame."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from convoy.frame.model import ETHERNET, FRAGMENTS, MIN_PACKET, PORT, PREFIX, VERSION
from convoy.frame.read import payload_of
from convoy.frame.reason import FrameError, Reason

HEADER = struct.Struct("!IIHH")
REST = 1
"""Flag: the first packet is the rest of one."""
OVERTAKEN = 64
"""A frame so far behind the one before was overtaken; farther away, its sender began anew."""


@dataclass(frozen=True)
class Fragments:
    """A frame that was read. Of type 0: stream is None, and all packets are whole."""

    source: str
    nfi: int
    packets: tuple[bytes, ...]
    """Those that are whole."""
    stream: int | None = None
    sequence: int = 0
    rest: bytes | None = None
    """The end of the packet whose beginning was in the frame before."""
    beginning: bytes = b""
    total: int = 0
    """Bytes of the packet that begins here, whose rest is in the next frame; 0: none does."""


def read_fragments(frame: bytes, port: int = PORT) -> Fragments:
    """Return what is in a frame of type 0 or 2. Raises FrameError as `convoy.frame.decode` does."""
    outer, payload = payload_of(frame, port)
    first, count, nfi = struct.unpack_from("!BBH", payload)
    if first >> 4 != VERSION:
        raise FrameError(Reason.BAD_VERSION, f"{first >> 4}, must be {VERSION}")
    if first & 15 not in (ETHERNET, FRAGMENTS):
        raise FrameError(Reason.BAD_TYPE, f"{first & 15}, must be {ETHERNET} or {FRAGMENTS}")
    body = payload[4:]
    stream, sequence, flags, total = None, 0, 0, 0
    if first & 15 == FRAGMENTS:
        if len(body) < HEADER.size:
            raise FrameError(Reason.BAD_LENGTH, "ends before the header of fragments does")
        stream, sequence, flags, total = HEADER.unpack_from(body)
        body = body[HEADER.size :]
        if flags not in (0, REST):
            raise FrameError(Reason.BAD_FRAGMENT, f"flags {flags:#06x}: must be 0 or 1")
        if not flags and total == 0:
            raise FrameError(Reason.BAD_FRAGMENT, "no packet in it is cut")
        if flags and count == 0:
            raise FrameError(Reason.BAD_FRAGMENT, "a rest that is not counted")
    elif count == 0:
        raise FrameError(Reason.BAD_COUNT, "0 packets")
    packets, behind = _packets(body, count, 1 if flags else MIN_PACKET)
    if total == 0 and behind:
        raise FrameError(Reason.TRAILING_BYTES, f"{len(behind)} bytes behind packet {count}")
    if 0 < total < MIN_PACKET:
        raise FrameError(Reason.RUNT_PACKET, f"the packet that begins has {total} bytes")
    if total > 0 and not 0 < len(behind) < total:
        raise FrameError(Reason.BAD_FRAGMENT, f"{len(behind)} bytes of a packet of {total}")
    rest = packets.pop(0) if flags else None
    source = str(outer.src)
    return Fragments(source, nfi, tuple(packets), stream, sequence, rest, behind, total)


def _packets(body: bytes, count: int, first_least: int) -> tuple[list[bytes], bytes]:
    """Return so many packets, and what is behind them."""
    packets: list[bytes] = []
    at = 0
    for number in range(1, count + 1):
        if len(body) - at < PREFIX:
            raise FrameError(Reason.BAD_COUNT, f"{count} packets counted, {number - 1} there")
        length = int.from_bytes(body[at : at + PREFIX])
        at += PREFIX
        if length < (first_least if number == 1 else MIN_PACKET):
            raise FrameError(Reason.RUNT_PACKET, f"packet {number} has {length} bytes")
        if length > len(body) - at:
            raise FrameError(Reason.BAD_LENGTH, f"packet {number} has {length} bytes")
        packets.append(body[at : at + length])
        at += length
    return packets, body[at:]


@dataclass
class Reassembly:
    """A receiver: what it keeps of each stream. It has room for as many as there are."""

    longest: int = 1522
    kept: dict[tuple[str, int], Fragments] = field(default_factory=dict)

    def take(self, frame: bytes, port: int = PORT) -> tuple[Sequence[bytes], int]:
        """Return the packets that a frame brings or completes, and how many it drops: 0 or 1.

        Raises FrameError.
        """
        read = read_fragments(frame, port)
        if read.stream is None:
            return read.packets, 0
        key = read.source, read.stream
        before = self.kept.get(key)
        packets, dropped = list(read.packets), 0
        if read.rest is not None:
            if (
                before is not None
                and read.sequence == (before.sequence + 1) % 2**32
                and len(before.beginning) + len(read.rest) == before.total
            ):
                packets.insert(0, before.beginning + read.rest)
            else:
                dropped = 1
        if before is not None and (before.sequence - read.sequence) % 2**32 < OVERTAKEN:
            return packets, dropped
        self.kept.pop(key, None)
        if 0 < read.total <= self.longest:
            self.kept[key] = read
        return packets, dropped
