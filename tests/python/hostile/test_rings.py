# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Rings that lie, or grow, where the guest shares no memory."""

import pytest

from .front_end import Request
from .guest import FREE, MIB, RING_PACKED, USER, Guest, Piece
from .targets import SANITIZED, Target

pytestmark = pytest.mark.parametrize("kind", (SANITIZED, "testpmd"), indirect=True)


def use(guest: Guest) -> None:
    """Send what lies in the memory, so that the rings are used as they were told."""
    for _ in range(guest.tx.size):
        guest.tx.put([Piece(guest.memory.base + FREE, 72)])


@pytest.mark.parametrize("size", [0, 1, 3, 1000, 32768, 65535, 65536, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("packed", [False, True], ids=["split", "packed"])
def test_another_size_alone(target: Target, size: int, packed: bool):
    """The areas were checked for the size before, and end with the memory."""
    guest = target.guest(packed=packed)
    end = guest.memory.base + guest.memory.size
    guest.tx.desc, guest.tx.avail, guest.tx.used = end - 16384, end - 4096, end - 8192
    guest.start()
    guest.front_end.tell_state(Request.SET_VRING_NUM, 1, size)
    guest.front_end.tell_state(Request.SET_VRING_NUM, 0, size)
    guest.front_end.serves()
    target.feed(64)
    use(guest)
    target.assert_well()


@pytest.mark.parametrize("packed", [False, True], ids=["to packed", "to split"])
def test_the_other_layout_while_it_runs(target: Target, packed: bool):
    """A packed ring's event areas have 4 bytes; as a split ring's they would be longer."""
    guest = target.guest(packed=packed)
    end = guest.memory.base + guest.memory.size
    for ring in (guest.rx, guest.tx):
        ring.avail, ring.used = (end - 4, end - 8) if packed else (end - 1024, end - 4096)
    guest.start(buffers=packed)
    swapped = guest.features ^ 1 << RING_PACKED
    for index in (0, 1):
        guest.front_end.tell_number(Request.SET_FEATURES, swapped)
        guest.front_end.tell_state(Request.SET_VRING_ENABLE, index, 1)
    guest.front_end.serves()
    target.feed(64)
    target.assert_well()


@pytest.mark.parametrize("area", ["desc", "avail", "used"])
@pytest.mark.parametrize(
    "at",
    [
        0,
        16,
        (1 << 64) - 16 - USER,
        (1 << 64) - 4096 - USER,
        (1 << 30) - 16,
        (1 << 30) - 4096,
        (1 << 30) + 32 * MIB - 16,
        (1 << 30) + 32 * MIB,
        (1 << 30) + 1,
        (1 << 30) - USER,
    ],
    ids=hex,
)
def test_areas_outside_of_the_memory(target: Target, area: str, at: int):
    guest = target.guest().start()
    guest.tell_addresses(0, **{area: at})
    guest.tell_addresses(1, **{area: at})
    for index in (0, 1):
        guest.front_end.tell_state(Request.SET_VRING_ENABLE, index, 1)
    guest.front_end.serves()
    target.feed(64)
    use(guest)
    target.assert_well()


def test_areas_across_two_regions(target: Target):
    """Neighbours for the guest; in the back end's memory they may lie anywhere."""
    guest = target.guest()
    guest.negotiate()
    memory, half = guest.memory, guest.memory.size // 2
    guest.front_end.tell_memory([memory.region(half), memory.region(0, half)])
    middle = memory.base + half
    for index in (0, 1):
        ring = guest.ring(index)
        ring.desc, ring.avail, ring.used = middle - 64, middle - 6, middle - 12
        guest.front_end.tell_state(Request.SET_VRING_NUM, index, ring.size)
        guest.tell_addresses(index)
        guest.tell_call(index, [guest.calls[index]])
        guest.front_end.tell_number(Request.SET_VRING_KICK, index, [guest.kicks[index]])
        guest.front_end.tell_state(Request.SET_VRING_ENABLE, index, 1)
    guest.front_end.serves()
    target.feed(64)
    use(guest)
    target.assert_well()


def test_rings_that_nobody_offered(target: Target):
    """Of a queue that the port does not have, and of none."""
    guest = target.guest().start()
    for ring in (2, 3, 255, 256, 65535, (1 << 32) - 1):
        for request in (Request.SET_VRING_NUM, Request.SET_VRING_BASE, Request.SET_VRING_ENABLE):
            guest.front_end.tell_state(request, ring, 1)
        for request in (Request.SET_VRING_KICK, Request.SET_VRING_CALL, Request.SET_VRING_ERR):
            guest.front_end.tell_number(request, ring, [guest.kicks[0]])
        guest.front_end.tell_state(Request.GET_VRING_BASE, ring, 0)
        if guest.front_end.gone:
            target.assert_sound()
            guest = target.guest().start()
    target.assert_well()
