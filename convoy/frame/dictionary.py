# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Dictionaries of compressed convoys: what both ends know of the packets before any has come."""

import zlib
from collections.abc import Sequence
from pathlib import Path

from convoy.errors import InputError
from convoy.frame.model import MIN_PACKET, PREFIX

MAX_BYTES = 65536
"""As far back as LZ4 reaches."""
SHORT_BYTES = 256
"""Packets up to this length share frames, and are what a dictionary is made of."""


def dictionary_id(dictionary: bytes) -> int:
    """Return what frames call it by: CRC-32, never 0, which means none."""
    return (zlib.crc32(dictionary) or 1) if dictionary else 0


def read_dictionary(path: Path) -> bytes:
    """Return a dictionary's bytes. Raises InputError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not 1 <= len(content) <= MAX_BYTES:
        size = "is empty" if not content else f"is longer than {MAX_BYTES} bytes"
        raise InputError(f"{path}: {size}; make a dictionary with: convoy dictionary CAPTURE")
    return content


def make_dictionary(packets: Sequence[bytes], size: int = MAX_BYTES) -> bytes:
    """Return at most `size` bytes that packets like these resemble.

    They are whole short packets with their lengths, as a convoy has them, no two the same, chosen
    evenly from all.
    """
    short = [p for p in packets if MIN_PACKET <= len(p) <= SHORT_BYTES]
    runs = list(dict.fromkeys(len(p).to_bytes(PREFIX) + p for p in short))
    whole = sum(map(len, runs))
    chosen: list[bytes] = []
    taken = seen = 0
    for run in runs:
        if taken * whole <= seen * size and taken + len(run) <= size:
            chosen.append(run)
            taken += len(run)
        seen += len(run)
    return b"".join(chosen)
