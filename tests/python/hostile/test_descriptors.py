# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Descriptors that no honest driver writes, in rings that are what they should be."""

import struct
from collections.abc import Sequence

import pytest

from .guest import (
    BASE,
    BUFFER_BYTES,
    BUFFERS,
    FREE,
    GIB,
    HEADER_BYTES,
    INDIRECT,
    INDIRECT_DESC,
    MERGEABLE,
    NEXT,
    WRITE,
    Guest,
    Memory,
    Piece,
)
from .targets import AT_ONCE, OURS, Target

both_layouts = pytest.mark.parametrize("packed", [False, True], ids=["split", "packed"])
ours = pytest.mark.parametrize("kind", OURS, indirect=True)
at_once = pytest.mark.parametrize("kind", AT_ONCE, indirect=True)
U32 = 1 << 32
LARGEST = 32768


@both_layouts
def test_lengths_of_nearly_4_gib_behind_a_packet(target: Target, packed: bool):
    """The sum of both, and of what is put before each, is a small number in 32 bits."""
    guest = target.guest(packed=packed, memory=Memory(5 * GIB)).start()
    packet = Piece(guest.memory.base + BUFFERS, HEADER_BYTES + 60)
    for short in (1, 10, 12, 50, 62, 63, 64, 74, 100, 4096):
        guest.tx.put([packet])
        guest.tx.put([packet._replace(length=U32 - short)])
        guest.tx.put([packet, packet._replace(length=U32 - short)])
    target.assert_well()


NOTHING = [
    Piece(0, 64),
    Piece(64, 1 << 31),
    Piece((1 << 64) - 32, 64),
    Piece((1 << 64) - 1, U32 - 1),
    Piece(1 << 63, 1500),
    Piece(BASE, 0),
    Piece(BASE, 1),
    Piece(BASE, 64, INDIRECT),
    Piece(BASE, U32 - 16, INDIRECT),
    Piece((1 << 64) - 16, 16, INDIRECT),
    Piece(BASE, 64, 0xFF7A),
]


@both_layouts
def test_descriptors_of_nothing(target: Target, packed: bool):
    guest = target.guest(packed=packed, wanted=[INDIRECT_DESC, MERGEABLE]).start(buffers=False)
    for piece in NOTHING * 4:
        guest.tx.put([piece])
        guest.tx.put([piece] * 3)
        guest.rx.put([piece._replace(flags=piece.flags | WRITE)])
    target.feed(64)
    target.assert_well()


@at_once
@both_layouts
def test_chains_without_an_end(target: Target, packed: bool):
    guest = target.guest(packed=packed, wanted=[MERGEABLE]).start(buffers=False)
    for ring, flags in ((guest.tx, NEXT), (guest.rx, NEXT | WRITE)):
        for _ in range(ring.size):
            ring.put([Piece(guest.memory.base + BUFFERS, 1, flags)])
    target.feed(64)
    target.assert_well()


def table(guest: Guest, count: int, piece: Piece, at: int = FREE) -> Piece:
    """Write an indirect table of equal descriptors; return the descriptor that leads there."""
    entries = b"".join(
        struct.pack("<QI2H", *piece[:2], piece.flags | (NEXT if i + 1 < count else 0), i + 1)
        for i in range(count)
    )
    guest.memory.write(guest.memory.base + at, entries)
    return Piece(guest.memory.base + at, 16 * count, INDIRECT)


def heads(guest: Guest, index: int, pieces: Sequence[Piece]) -> None:
    """Make a ring full of buffers that are all alike."""
    for _ in range(guest.ring(index).size // len(pieces)):
        guest.ring(index).put(pieces)


def assert_neighbours_go_on(target: Target) -> None:
    """A worker that an attack keeps for a quarter of a second each poll iteration is too slow."""
    target.assert_well(1_000, under_load=True)


@at_once
@both_layouts
@pytest.mark.parametrize("size", [256, LARGEST])
@pytest.mark.parametrize("index", [0, 1], ids=["to the guest", "from the guest"])
def test_tables_of_empty_descriptors(target: Target, packed: bool, size: int, index: int):
    guest = target.guest(size, packed, wanted=[INDIRECT_DESC, MERGEABLE]).start(buffers=False)
    empty = Piece(guest.memory.base + BUFFERS, 0, WRITE * (index == 0))
    heads(guest, index, [table(guest, size - 1, empty)])
    assert_neighbours_go_on(target)


@ours
@both_layouts
@pytest.mark.parametrize("index", [0, 1], ids=["to the guest", "from the guest"])
def test_long_chains_of_single_bytes(target: Target, packed: bool, index: int):
    guest = target.guest(LARGEST, packed, wanted=[MERGEABLE]).start(buffers=False)
    byte = Piece(guest.memory.base + BUFFERS, 1, WRITE * (index == 0))
    heads(guest, index, [byte] * 1024)
    assert_neighbours_go_on(target)


@ours
@both_layouts
def test_buffers_of_a_byte_each(target: Target, packed: bool):
    """A packet is to be spread over more of them than any packet needs."""
    guest = target.guest(LARGEST, packed, wanted=[MERGEABLE]).start(buffers=False)
    heads(guest, 0, [Piece(guest.memory.base + BUFFERS, 1, WRITE)])
    assert_neighbours_go_on(target)


@both_layouts
def test_a_silent_guest(target: Target, packed: bool):
    """It never posts a buffer, and never sends."""
    target.guest(LARGEST, packed).start(buffers=False)
    assert_neighbours_go_on(target)


@at_once
@both_layouts
def test_an_index_that_runs_away(target: Target, packed: bool):
    guest = target.guest(packed=packed).start()
    for count in (1, 255, 256, 257, 32768, 65535):
        guest.memory.write_u16(guest.tx.avail + 2, count)
        guest.memory.write_u16(guest.rx.avail + 2, 256 + count)
        target.feed(64)
    for at in range(0, 16 * guest.tx.size, 16):
        guest.memory.write(guest.tx.desc + at, b"\xff" * 16)
        guest.memory.write(guest.rx.desc + at, struct.pack("<QI2H", 1 << 63, BUFFER_BYTES, 7, 7))
    target.feed(64)
    target.assert_well()
