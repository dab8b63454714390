# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A memif client that says and writes what the test wants, honest or not.

memif 2.0: docs/decisions/memif.md, dataplane/memif/message.h.
"""

import contextlib
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Self

from convoy.host.process import wait_for
from convoy.host.scope import Scope

from .front_end import DEADLINE_S

MESSAGE_BYTES = 128
VERSION = 0x200
COOKIE = 0x3E31F20
TO_SERVER, TO_CLIENT = 0, 1
NEXT = 1  # flag of a descriptor
SLOTS = 64
RINGS = (0, 0x1000)
BUFFERS = 0x4000
BUFFER_BYTES = 2048
MEMORY_BYTES = BUFFERS + 2 * SLOTS * BUFFER_BYTES
FLAGS_AT, HEAD_AT, TAIL_AT, DESCRIPTORS_AT = 4, 6, 64, 128


class Type(IntEnum):
    """Messages."""

    ACK = 1
    HELLO = 2
    INIT = 3
    ADD_REGION = 4
    ADD_RING = 5
    CONNECT = 6
    CONNECTED = 7
    DISCONNECT = 8


INIT = struct.pack("<HIB", VERSION, 0, 0)


def region(index: int = 0, size: int = MEMORY_BYTES) -> bytes:
    """Return what ADD_REGION says."""
    return struct.pack("<HQ", index, size)


def ring(way: int, log2: int = 6, offset: int | None = None, where: int = 0) -> bytes:
    """Return what ADD_RING says."""
    at = RINGS[way] if offset is None else offset
    return struct.pack("<HHHIBH", int(way == TO_SERVER), 0, where, at, log2, 0)


class Client(Scope):
    """A connection to a node's port, and memory to share."""

    def __init__(self, path: Path) -> None:
        """Connect, again and again while somebody else is connected, and take HELLO."""
        self._files: list[int] = []
        self.memory_file = self._own(os.memfd_create("memif", os.MFD_CLOEXEC))
        os.ftruncate(self.memory_file, MEMORY_BYTES)
        self.memory = mmap.mmap(self.memory_file, MEMORY_BYTES)
        self.event = self._own(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
        self._taken = 0
        self._offered = 0
        for at in RINGS:
            struct.pack_into("<I", self.memory, at, COOKIE)
        self.connection = socket.socket()
        wait_for(lambda: self._said_hello(path), DEADLINE_S, "the server to say hello")

    def _own(self, file: int) -> int:
        self._files.append(file)
        return file

    def _said_hello(self, path: Path) -> bool:
        self.connection.close()
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(DEADLINE_S)
        try:
            self.connection.connect(str(path))
            return self.receive()[0] == Type.HELLO
        except OSError:
            return False

    def send(self, kind: int, payload: bytes = b"", files: Sequence[int] = ()) -> bool:
        """Send a message; return whether the connection took it."""
        return self.send_bytes(
            (struct.pack("<H", kind) + payload).ljust(MESSAGE_BYTES, b"\0"), files
        )

    def send_bytes(self, data: bytes, files: Sequence[int] = ()) -> bool:
        """Send a message of any size."""
        try:
            return socket.send_fds(self.connection, [data], list(files)) > 0
        except OSError:
            return False

    def receive(self) -> tuple[int, str]:
        """Return the type of the next message (0: the connection is closed), and a reason."""
        try:
            data = self.connection.recv(MESSAGE_BYTES)
        except (ConnectionError, BrokenPipeError):
            return 0, ""
        if not data:
            return 0, ""
        return struct.unpack_from("<H", data)[0], data[6:102].split(b"\0")[0].decode()

    def ask(self, kind: int, payload: bytes = b"", files: Sequence[int] = ()) -> tuple[int, str]:
        """Send a message and return the answer."""
        self.send(kind, payload, files)
        return self.receive()

    def connect(self, log2: int = 6) -> Self:
        """Say all that it takes; the rings are as they should be, and no buffer is offered."""
        assert self.ask(Type.INIT, INIT)[0] == Type.ACK
        assert self.ask(Type.ADD_REGION, region(), [self.memory_file])[0] == Type.ACK
        for way in (TO_SERVER, TO_CLIENT):
            assert self.ask(Type.ADD_RING, ring(way, log2), [self.event])[0] == Type.ACK
        assert self.ask(Type.CONNECT)[0] == Type.CONNECTED
        return self

    def index(self, way: int, at: int) -> int:
        """Return an index: HEAD_AT or TAIL_AT."""
        return int(struct.unpack_from("<H", self.memory, RINGS[way] + at)[0])

    def set_index(self, way: int, at: int, value: int) -> None:
        """Write an index at once: struct.pack_into() would make it 0 first, for the node to see."""
        at += RINGS[way]
        self.memory[at : at + 2] = (value & 0xFFFF).to_bytes(2, "little")

    def describe(
        self, way: int, slot: int, length: int, flags: int = 0, where: int = 0, offset: int = -1
    ) -> None:
        """Write a descriptor; offset -1: the buffer that belongs to it."""
        at = RINGS[way] + DESCRIPTORS_AT + slot % SLOTS * 16
        own = BUFFERS + (way * SLOTS + slot % SLOTS) * BUFFER_BYTES
        struct.pack_into(
            "<HHIII", self.memory, at, flags, where, length, own if offset < 0 else offset, 0
        )

    def put(self, count: int) -> None:
        """Make so many more descriptors towards the server, as they are, available."""
        self.set_index(TO_SERVER, HEAD_AT, self.index(TO_SERVER, HEAD_AT) + count)

    def send_packet(self, data: bytes) -> None:
        """Send a packet as it should be."""
        head = self.index(TO_SERVER, HEAD_AT)
        at = BUFFERS + head % SLOTS * BUFFER_BYTES
        self.memory[at : at + len(data)] = data
        self.describe(TO_SERVER, head, len(data))
        self.put(1)

    def offer(self) -> None:
        """Offer every buffer towards the client."""
        for slot in range(SLOTS):
            self.describe(TO_CLIENT, slot, BUFFER_BYTES)
        self.set_index(TO_CLIENT, HEAD_AT, self.index(TO_CLIENT, TAIL_AT) + SLOTS)

    def taken(self) -> bool:
        """Return whether the server has taken all that was put."""
        return self.index(TO_SERVER, TAIL_AT) == self.index(TO_SERVER, HEAD_AT)

    def _leave(self) -> None:
        """Leave."""
        self.connection.close()
        with contextlib.suppress(BufferError):
            self.memory.close()
        for file in self._files:
            os.close(file)
        self._files.clear()
