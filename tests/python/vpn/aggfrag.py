# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""AGGFRAG payloads as RFC 9347 sections 2.2 and 6.1 write them down; written before the node's."""

import struct
from collections.abc import Iterable, Sequence

AGGFRAG = 144  # the next header
NON_CONGESTION_CONTROL = 0  # the sub-type


def inner_length(data: bytes) -> int | None:
    """Return the length that an inner packet's header says; None: too little of it is there."""
    if data[0] >> 4 == 4:
        return struct.unpack("!H", data[2:4])[0] if len(data) >= 4 else None
    return 40 + struct.unpack("!H", data[4:6])[0] if len(data) >= 6 else None


def payload(blocks: bytes, offset: int) -> bytes:
    """Return a payload of sub-type 0 with so many octets before the first new data block."""
    return struct.pack("!BBH", NON_CONGESTION_CONTROL, 0, offset) + blocks


def fragmented(packets: Iterable[bytes], sizes: Sequence[int]) -> list[bytes]:
    """Return payloads with so many octets of data blocks each: packets in a row, then padding."""
    stream, starts = b"", []
    for packet in packets:
        starts.append(len(stream))
        stream += packet
    out, at, turn = [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        turn += 1
        later = [start for start in [*starts, len(stream)] if start >= at]
        blocks = stream[at : at + size]
        out.append(payload(blocks + bytes(size - len(blocks)), later[0] - at))
        at += size
    return out


class Decoder:
    """What a receiver that does not reorder makes of payloads, in the order of their arrival."""

    def __init__(self) -> None:
        self._partial = b""
        self._next = 0  # the sequence number that goes on with it

    def take(self, sequence: int, data: bytes) -> list[bytes]:
        """Return the inner packets that a payload completes; what is malformed has none behind."""
        if len(data) < 4 or data[0] != NON_CONGESTION_CONTROL:
            return []
        (offset,) = struct.unpack("!H", data[2:4])
        blocks, out = data[4:], []
        if self._partial and sequence == self._next and offset == 0 and self._is_pad(blocks):
            self._next += 1
            return []
        partial, self._partial = (self._partial, b"") if self._next == sequence else (b"", b"")
        if offset > 0 and partial:
            partial += blocks[:offset]
            length = inner_length(partial)
            if offset <= len(blocks):
                if length == len(partial):
                    out.append(partial)
            elif length is None or len(partial) + offset - len(blocks) == length:
                self._keep(partial, sequence)
        blocks = blocks[offset:]
        while blocks and blocks[0] >> 4 in (4, 6):
            length = inner_length(blocks)
            if length is None or length > len(blocks):
                self._keep(blocks, sequence)
                break
            if length < (20 if blocks[0] >> 4 == 4 else 40):
                break
            out.append(blocks[:length])
            blocks = blocks[length:]
        return out

    @staticmethod
    def _is_pad(blocks: bytes) -> bool:
        return bool(blocks) and blocks[0] >> 4 == 0

    def _keep(self, partial: bytes, sequence: int) -> None:
        self._partial, self._next = partial, sequence + 1
