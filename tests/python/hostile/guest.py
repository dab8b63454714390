# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A guest: its memory, its rings, and an honest driver that attacks can start from."""

import mmap
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from convoy.host.scope import Scope

from .front_end import ADDRESSES, NO_FILE, FrontEnd, Region, Request

MIB = 1 << 20
GIB = 1 << 30

BASE = 1 << 30  # where the guest's memory begins, for the guest
USER = 1 << 46  # and how much further on for the front end: no address is valid as the other
RING_BYTES = 2 * MIB  # from ring to ring; room for any size
BUFFERS = 2 * RING_BYTES  # where buffers begin
BUFFER_BYTES = 2048
FREE = 24 * MIB  # from here on nobody but the test uses the memory
MARK = b"\xa5"

# Features of virtio, by bit.
MERGEABLE = 15
VHOST_PROTOCOL_FEATURES = 30
INDIRECT_DESC = 28
VERSION_1 = 32
RING_PACKED = 34

# Features of vhost-user, by bit.
MULTIQUEUE = 0
REPLY_ACK = 3

# Flags of descriptors.
NEXT = 1
WRITE = 2
INDIRECT = 4
PACKED_AVAIL = 1 << 7
PACKED_USED = 1 << 15

HEADER_BYTES = 12  # of virtio-net, before each packet


class Piece(NamedTuple):
    """What a descriptor says; NEXT is added where another one follows."""

    address: int
    length: int
    flags: int = 0


class Memory:
    """A guest's memory in one sparse file, by the guest's addresses."""

    def __init__(self, size: int = 32 * MIB, base: int = BASE) -> None:
        """Make it; nothing of it takes room before it is written."""
        self.size = size
        self.base = base
        self.file = os.memfd_create("guest")
        os.ftruncate(self.file, size)
        self.bytes = mmap.mmap(self.file, size)
        self._words = memoryview(self.bytes).cast("H")

    def region(self, offset: int = 0, size: int | None = None) -> Region:
        """Return a part of it for the memory table, the whole of it by default."""
        guest = self.base + offset
        return Region(guest, size or self.size - offset, guest + USER, offset, self.file)

    def write(self, address: int, data: bytes) -> None:
        """Write at an address of the guest."""
        self.bytes[address - self.base : address - self.base + len(data)] = data

    def read(self, address: int, count: int) -> bytes:
        """Read at an address of the guest."""
        return self.bytes[address - self.base : address - self.base + count]

    def write_u16(self, address: int, value: int) -> None:
        """Write a number at once: struct would write zeros first, which the other side sees."""
        self._words[(address - self.base) // 2] = value & 0xFFFF

    def read_u16(self, address: int) -> int:
        """Read a number at once."""
        return self._words[(address - self.base) // 2]

    def close(self) -> None:
        """Take it back from ourselves; the back end keeps what it mapped."""
        self._words.release()
        self.bytes.close()
        os.close(self.file)


class Ring(Protocol):
    """A virtqueue as its driver sees it. Its areas may be anywhere by the time they are told."""

    size: int
    desc: int
    avail: int
    used: int

    def put(self, pieces: Sequence[Piece]) -> int:
        """Make one buffer available, of descriptors one behind the other; return its id."""
        ...

    def take(self) -> list[tuple[int, int]]:
        """Return the id and the bytes written of each buffer that has come back."""
        ...


class SplitRing:
    """A split virtqueue (VIRTIO 1.2, section 2.7)."""

    def __init__(self, memory: Memory, index: int, size: int) -> None:
        """Lay it out where ring `index` of a guest belongs."""
        self.memory = memory
        self.size = size
        self.desc = memory.base + index * RING_BYTES
        self.avail = self.desc + RING_BYTES // 2
        self.used = self.avail + RING_BYTES // 4
        self.next = 0  # descriptor to be written
        self.offered = 0  # buffers ever made available
        self.taken = 0  # buffers ever seen to be used

    def describe(self, at: int, piece: Piece, following: int = 0) -> None:
        """Write one descriptor."""
        packed = struct.pack("<QI2H", *piece, following)
        self.memory.write(self.desc + 16 * (at % self.size), packed)

    def offer(self, head: int) -> None:
        """Make what begins at a descriptor available."""
        self.memory.write_u16(self.avail + 4 + 2 * (self.offered % self.size), head)
        self.offered += 1
        self.memory.write_u16(self.avail + 2, self.offered)

    def put(self, pieces: Sequence[Piece]) -> int:
        """See Ring."""
        head = self.next
        for piece in pieces:
            here, self.next = self.next, (self.next + 1) % self.size
            more = NEXT if piece is not pieces[-1] else 0
            self.describe(here, piece._replace(flags=piece.flags | more), self.next)
        self.offer(head)
        return head

    def take(self) -> list[tuple[int, int]]:
        """See Ring."""
        there = self.memory.read_u16(self.used + 2)
        back = []
        while self.taken & 0xFFFF != there:
            at = self.used + 4 + 8 * (self.taken % self.size)
            back.append(struct.unpack("<2I", self.memory.read(at, 8)))
            self.taken += 1
        return back


class PackedRing:
    """A packed virtqueue (VIRTIO 1.2, section 2.8)."""

    def __init__(self, memory: Memory, index: int, size: int) -> None:
        """Lay it out where ring `index` of a guest belongs."""
        self.memory = memory
        self.size = size
        self.desc = memory.base + index * RING_BYTES
        self.avail = self.desc + RING_BYTES // 2  # the driver's events
        self.used = self.avail + RING_BYTES // 4  # the device's events
        self.next = 0  # descriptors ever written
        self.taken = 0  # descriptors ever seen to be used
        self._lengths = [0] * size  # of the buffer that begins there, in descriptors

    def put(self, pieces: Sequence[Piece]) -> int:
        """See Ring. The first descriptor's flags are written last: they make it available."""
        head = self.next % self.size
        for i, piece in reversed(list(enumerate(pieces))):
            at = self.next + i
            flags = piece.flags | (NEXT if i + 1 < len(pieces) else 0)
            flags |= PACKED_USED if at // self.size % 2 else PACKED_AVAIL
            address = self.desc + 16 * (at % self.size)
            self.memory.write(address, struct.pack("<QIH", piece.address, piece.length, head))
            self.memory.write_u16(address + 14, flags)
        self._lengths[head] = len(pieces)
        self.next += len(pieces)
        return head

    def take(self) -> list[tuple[int, int]]:
        """See Ring."""
        back = []
        while self.taken < self.next:
            at = self.desc + 16 * (self.taken % self.size)
            used = PACKED_AVAIL | PACKED_USED if self.taken // self.size % 2 == 0 else 0
            if self.memory.read_u16(at + 14) & (PACKED_AVAIL | PACKED_USED) != used:
                break
            _, written, number = struct.unpack("<QIH", self.memory.read(at, 14))
            back.append((number, written))
            self.taken += self._lengths[number]
        return back


class Guest(Scope):
    """An honest driver of a virtio-net with one pair of queues: 0 receives, 1 sends."""

    def __init__(
        self,
        front_end: FrontEnd,
        offered: int,
        memory: Memory | None = None,
        size: int = 256,
        packed: bool = False,
        wanted: Sequence[int] = (),
    ) -> None:
        """Lay out its rings. wanted: features beside VERSION_1, and RING_PACKED with packed."""
        self.front_end = front_end
        self.memory = memory or Memory()
        kind = PackedRing if packed else SplitRing
        self.rx: Ring = kind(self.memory, 0, size)
        self.tx: Ring = kind(self.memory, 1, size)
        bits = [VERSION_1, VHOST_PROTOCOL_FEATURES, *wanted, *[RING_PACKED] * packed]
        self.features = offered & sum(1 << bit for bit in bits)
        self.kicks = [os.eventfd(0), os.eventfd(0)]
        self.calls = [os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)]
        self._tx_free = size
        self._rx_buffers: dict[int, int] = {}

    def has(self, feature: int) -> bool:
        """Return whether a feature was wanted and is offered."""
        return bool(self.features >> feature & 1)

    def start(self, buffers: bool = True) -> Self:
        """Do the whole handshake. buffers: there are some to receive into."""
        self.negotiate()
        must(self.front_end.tell_memory([self.memory.region()]))
        return self.start_rings(buffers)

    def start_rings(self, buffers: bool = True) -> Self:
        """Do the part of the handshake after the memory."""
        for index in (0, 1):
            self.set_ring(index)
        if buffers:
            self.fill()
        for index in (0, 1):
            must(self.front_end.tell_state(Request.SET_VRING_ENABLE, index, 1))
            os.eventfd_write(self.kicks[index], 1)
        return self

    def negotiate(self) -> None:
        """The part of the handshake before memory and rings."""
        front_end = self.front_end
        must(front_end.tell(Request.SET_OWNER))
        if self.has(VHOST_PROTOCOL_FEATURES):
            offered = front_end.ask_number(Request.GET_PROTOCOL_FEATURES)
            protocol = offered & (1 << MULTIQUEUE | 1 << REPLY_ACK)
            must(front_end.tell_number(Request.SET_PROTOCOL_FEATURES, protocol))
            front_end.acknowledged = bool(protocol >> REPLY_ACK & 1)
        must(front_end.tell_number(Request.SET_FEATURES, self.features))

    def mark(self) -> None:
        """Fill what nobody else uses, so that a write there shows."""
        self.memory.write(self.memory.base + FREE, MARK * (self.memory.size - FREE))

    def is_marked(self) -> bool:
        """Return whether it still is as mark() left it."""
        free = self.memory.read(self.memory.base + FREE, self.memory.size - FREE)
        return free == MARK * len(free)

    def set_ring(self, index: int) -> None:
        """Tell one ring's size, place and files."""
        front_end, ring = self.front_end, self.ring(index)
        must(front_end.tell_state(Request.SET_VRING_NUM, index, ring.size))
        base = 1 << 31 | 1 << 15 if self.has(RING_PACKED) else 0
        must(front_end.tell_state(Request.SET_VRING_BASE, index, base))
        must(self.tell_addresses(index))
        must(front_end.tell_number(Request.SET_VRING_CALL, index, [self.calls[index]]))
        must(front_end.tell_number(Request.SET_VRING_KICK, index, [self.kicks[index]]))

    def tell_addresses(
        self, index: int, desc: int | None = None, avail: int | None = None, used: int | None = None
    ) -> int | None:
        """Tell a ring's areas, where they are or elsewhere. Returns as FrontEnd.tell()."""
        ring = self.ring(index)
        areas = (
            (own if other is None else other) + USER
            for own, other in ((ring.desc, desc), (ring.used, used), (ring.avail, avail))
        )
        payload = ADDRESSES.pack(index, 0, *(area & (1 << 64) - 1 for area in areas), 0)
        return self.front_end.tell(Request.SET_VRING_ADDR, payload)

    def tell_call(self, index: int, files: Sequence[int]) -> int | None:
        """Give a ring another file to be called by, or none."""
        number = index | (0 if files else NO_FILE)
        return self.front_end.tell_number(Request.SET_VRING_CALL, number, files)

    def ring(self, index: int) -> Ring:
        """Return ring 0, which receives, or 1, which sends."""
        return (self.rx, self.tx)[index]

    def fill(self) -> None:
        """Post as many buffers to receive into as the ring has room for."""
        for slot in range(self.rx.size):
            self._post(self._buffer(0, slot))

    def _buffer(self, index: int, slot: int) -> int:
        return self.memory.base + BUFFERS + (index * self.rx.size + slot) * BUFFER_BYTES

    def _post(self, address: int) -> None:
        number = self.rx.put([Piece(address, BUFFER_BYTES, WRITE)])
        self._rx_buffers[number] = address

    def idle(self) -> bool:
        """Return whether all that was sent has been taken."""
        self._tx_free += len(self.tx.take())
        return self._tx_free == self.tx.size

    def send(self, packets: Sequence[bytes]) -> int:
        """Send as many packets as there is room for in the ring; return how many."""
        self.idle()
        count = min(len(packets), self._tx_free)
        for packet in packets[:count]:
            slot = self.tx.next % self.tx.size  # type: ignore[attr-defined]
            address = self._buffer(1, slot)
            self.memory.write(address, bytes(HEADER_BYTES) + packet)
            self.tx.put([Piece(address, HEADER_BYTES + len(packet))])
        self._tx_free -= count
        return count

    def received(self) -> list[bytes]:
        """Return the packets that have come since, and post their buffers again."""
        packets = []
        for number, written in self.rx.take():
            address = self._rx_buffers.pop(number)
            packets.append(self.memory.read(address, written)[HEADER_BYTES:])
            self._post(address)
        return packets

    def _leave(self) -> None:
        """Hang up, and give everything back."""
        self.front_end.close()
        self.memory.close()
        for file in (*self.kicks, *self.calls):
            os.close(file)


def must(verdict: int | None) -> None:
    """Insist on what an honest guest may expect."""
    assert verdict == 0, "the back end hung up" if verdict is None else "the back end refused it"
