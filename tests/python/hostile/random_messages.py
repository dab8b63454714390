# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a guest may do in any order, most of it nearly right: a seed is a whole life of a guest."""

import contextlib
import os
import random
import select
import socket
import struct
from collections.abc import Callable

from .front_end import NO_FILE, NUMBERS, STATE, Region, Request, close_all
from .guest import FREE, INDIRECT_DESC, MERGEABLE, USER, Piece
from .targets import Target

STEPS = 40
SIZES = (0, 1, 2, 64, 255, 256, 1024, 32768, 65535, 65536, (1 << 32) - 1)
EDGES = (0, 1, 4095, 4096, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)
STATES = (
    Request.SET_VRING_NUM,
    Request.SET_VRING_BASE,
    Request.GET_VRING_BASE,
    Request.SET_VRING_ENABLE,
)
FILES = (Request.SET_VRING_KICK, Request.SET_VRING_CALL, Request.SET_VRING_ERR, Request.SET_LOG_FD)
WORDS = (Request.SET_FEATURES, Request.SET_PROTOCOL_FEATURES, Request.SET_STATUS, Request.SEND_RARP)


class Life:
    """One guest, from its connection on."""

    def __init__(self, target: Target, seed: int) -> None:
        """Connect; most begin with an honest handshake."""
        self.random = random.Random(seed)
        self.target = target
        size, packed = self.random.choice((64, 256, 4096)), self.random.random() < 0.4
        self.guest = target.guest(size, packed, [INDIRECT_DESC, MERGEABLE])
        self.front_end = self.guest.front_end
        if self.random.random() < 0.8:
            self.guest.start(buffers=self.random.random() < 0.7)

    def live(self, steps: int = STEPS) -> None:
        """Do so many things, or as many as the back end stays for."""
        deeds: tuple[Callable[[], object], ...] = (
            self.state, self.file, self.word, self.areas, self.table, self.anything, self.inflight,
            self.descriptors, self.descriptors, self.truncate, self.honest,
        )  # fmt: skip
        for _ in range(steps):
            self.random.choice(deeds)()
            self.target.offer(8)
            self.hear()
            if self.front_end.gone:
                return

    def hear(self) -> None:
        """Read what has come, so that nobody waits for us to."""
        connection = self.front_end.socket
        while not self.front_end.gone and select.select([connection], [], [], 0)[0]:
            try:
                data, files, _, _ = socket.recv_fds(connection, 65536, 16)
            except ConnectionError:
                data, files = b"", []
            close_all(files)
            self.front_end.gone = not data

    def address(self) -> int:
        """Return an address of the guest, or nearly one."""
        memory = self.guest.memory
        near = (0, memory.base, memory.base + FREE, memory.base + memory.size, *EDGES)
        return (self.random.choice(near) + self.random.choice((0, 0, 1, 16, -16, -4096))) % (
            1 << 64
        )

    def ring(self) -> int:
        """Return a ring's number, mostly of one that there is."""
        return self.random.choice((0, 1, 0, 1, 0, 1, 2, 255, (1 << 32) - 1))

    def state(self) -> None:
        """Tell a ring's size, base, or state."""
        payload = STATE.pack(self.ring(), self.random.choice((0, 1, *SIZES)))
        self.front_end.send(self.random.choice(STATES), payload)

    def file(self) -> None:
        """Give a ring a file, or several, or none."""
        number = self.ring() & 0xFF | self.random.choice((0, 0, NO_FILE))
        files = [self.random.choice((self.guest.kicks[0], self.guest.memory.file))]
        files *= self.random.choice((0, 1, 1, 1, 8))
        self.front_end.send(self.random.choice(FILES), struct.pack("<Q", number), files)

    def word(self) -> None:
        """Tell a number: features with a bit changed, or anything."""
        bit = 1 << self.random.randrange(64)
        number = self.random.choice((self.guest.features ^ bit, bit, *EDGES))
        self.front_end.send(self.random.choice(WORDS), struct.pack("<Q", number))

    def areas(self) -> None:
        """Tell where a ring lies, as it is or elsewhere."""
        at = [(self.address() + USER) % (1 << 64) for _ in range(3)]
        own = self.guest.ring(self.random.randrange(2))
        for i, right in enumerate((own.desc, own.used, own.avail)):
            if self.random.random() < 0.7:
                at[i] = right + USER
        payload = struct.pack("<2I4Q", self.ring(), self.random.choice((0, 1)), *at, 0)
        self.front_end.send(Request.SET_VRING_ADDR, payload)

    def table(self) -> None:
        """Share the memory again, or something like it."""
        regions = [self.region() for _ in range(self.random.choice((0, 1, 1, 1, 2, 8, 9)))]
        stated = self.random.choice((len(regions),) * 8 + (0, 8, (1 << 32) - 1))
        payload = struct.pack("<2I", stated, 0) + b"".join(r.packed() for r in regions)
        files = [region.file for region in regions][: self.random.choice((8, 8, 8, 1, 0))]
        self.front_end.send(Request.SET_MEM_TABLE, payload, files)

    def region(self) -> Region:
        """Return the memory, or with one thing changed."""
        region = self.guest.memory.region()
        if self.random.random() < 0.5:
            return region
        field = self.random.choice(("guest", "size", "user", "offset"))
        return region._replace(**{field: self.address()})

    def anything(self) -> None:
        """Send a message of any kind and size."""
        payload = self.random.randbytes(self.random.choice((0, 4, 8, 12, 40, 268, 272, 300)))
        files = [self.guest.memory.file] * self.random.choice((0, 0, 1, 8))
        flags = self.random.choice((1, 1, 1, 9, 5, 0, 0xFFFFFFFF))
        size = self.random.choice((None,) * 8 + (0, 4096, (1 << 32) - 1))
        self.front_end.send(self.random.choice(NUMBERS), payload, files, flags, size)

    def inflight(self) -> None:
        """Ask for a buffer of requests in flight, or give one."""
        request = self.random.choice((Request.GET_INFLIGHT_FD, Request.SET_INFLIGHT_FD))
        sizes = (self.random.choice((0, 4096, *EDGES)), self.random.choice((0, 0, *EDGES)))
        counts = (self.random.choice((0, 1, 2, 65535)), self.random.choice((0, 256, 65535)))
        files = [self.guest.memory.file] * (request == Request.SET_INFLIGHT_FD)
        self.front_end.send(request, struct.pack("<2Q2H", *sizes, *counts), files)

    def descriptors(self) -> None:
        """Make buffers available, of which few are right."""
        ring = self.guest.ring(self.random.randrange(2))
        for _ in range(self.random.choice((1, 32))):
            ring.put([self.piece() for _ in range(self.random.choice((1, 1, 2, 5)))])

    def piece(self) -> Piece:
        """Return a descriptor."""
        length = self.random.choice((0, 1, 12, 72, 1500, 2048, 65536, (1 << 32) - 12))
        return Piece(self.address(), length, self.random.choice((0, 0, 2, 2, 4, 6, 0xFF7E)))

    def truncate(self) -> None:
        """Take memory back, or give it again: its contents are lost, which rings do not mind."""
        size = self.random.choice((FREE, FREE + 4096, self.guest.memory.size))
        os.ftruncate(self.guest.memory.file, size)

    def honest(self) -> None:
        """Set the rings up again, as an honest guest does."""
        with contextlib.suppress(AssertionError, TimeoutError):
            self.front_end.acknowledged = False
            self.guest.start_rings(buffers=False)
