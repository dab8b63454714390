# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is behind the convoy header of a frame of type 1: packets, compressed as a whole."""

import struct
from collections.abc import Sequence

from convoy.frame.dictionary import dictionary_id
from convoy.frame.model import LZ4
from convoy.frame.reason import FrameError, Reason

HEADER = struct.Struct("!BBHI")
_REACH = 65535


def expand(payload: bytes, dictionaries: Sequence[bytes]) -> bytes:
    """Return packets with their lengths; payload begins with the compression header.

    dictionaries: those of the receiver; b"" for frames without. Raises FrameError.
    """
    if len(payload) < HEADER.size:
        raise FrameError(Reason.BAD_LENGTH, "ends before the compression header does")
    codec, reserved, length, wanted = HEADER.unpack_from(payload)
    if codec != LZ4 or reserved != 0:
        raise FrameError(
            Reason.BAD_CODEC, f"codec {codec}, {reserved} behind it: must be {LZ4} and 0"
        )
    dictionary = next((d for d in dictionaries if dictionary_id(d) == wanted), None)
    if dictionary is None:
        raise FrameError(Reason.WRONG_DICTIONARY, f"{wanted:#010x} is not among the receiver's")
    if length < 2:
        raise FrameError(Reason.BAD_LENGTH, f"must be 2 bytes or more, are {length}")
    expanded = _lz4(payload[HEADER.size :], dictionary, length)
    if expanded is None:
        raise FrameError(Reason.BAD_BLOCK, f"must be an LZ4 block of {length} bytes")
    return expanded


def _lz4(block: bytes, dictionary: bytes, length: int) -> bytes | None:
    """Return what an LZ4 block expands to; None unless that is `length` bytes."""
    out = bytearray(dictionary)
    end = len(dictionary) + length
    at = 0

    def number(nibble: int) -> int:
        nonlocal at
        while nibble >= 15:
            more = block[at]
            at += 1
            nibble += more
            if more != 255:
                break
        return nibble

    try:
        while True:
            token = block[at]
            at += 1
            literals = number(token >> 4)
            if at + literals > len(block) or len(out) + literals > end:
                return None
            out += block[at : at + literals]
            at += literals
            if at == len(block):
                return bytes(out[len(dictionary) :]) if len(out) == end else None
            offset = block[at] | block[at + 1] << 8
            at += 2
            match = number(token & 15) + 4
            if not 1 <= offset <= min(len(out), _REACH) or len(out) + match > end:
                return None
            for _ in range(match):
                out.append(out[-offset])
    except IndexError:
        return None
