# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A vhost-user front end that may say anything: any message, flag, size, and any files with it.

Nothing is checked before it is sent. A back end that hangs up is an answer like any other, by what
send() and tell() return. An honest handshake is guest.Guest.start().
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple, Self

from convoy.host.scope import Scope

DEADLINE_S = 60.0  # no back end needs so long for anything, on a busy machine and sanitized either


class Request(IntEnum):
    """Messages of the front end, as the vhost-user specification numbers them."""

    GET_FEATURES = 1
    SET_FEATURES = 2
    SET_OWNER = 3
    RESET_OWNER = 4
    SET_MEM_TABLE = 5
    SET_LOG_BASE = 6
    SET_LOG_FD = 7
    SET_VRING_NUM = 8
    SET_VRING_ADDR = 9
    SET_VRING_BASE = 10
    GET_VRING_BASE = 11
    SET_VRING_KICK = 12
    SET_VRING_CALL = 13
    SET_VRING_ERR = 14
    GET_PROTOCOL_FEATURES = 15
    SET_PROTOCOL_FEATURES = 16
    GET_QUEUE_NUM = 17
    SET_VRING_ENABLE = 18
    SEND_RARP = 19
    NET_SET_MTU = 20
    SET_BACKEND_REQ_FD = 21
    IOTLB_MSG = 22
    SET_VRING_ENDIAN = 23
    GET_CONFIG = 24
    SET_CONFIG = 25
    CREATE_CRYPTO_SESSION = 26
    CLOSE_CRYPTO_SESSION = 27
    POSTCOPY_ADVISE = 28
    POSTCOPY_LISTEN = 29
    POSTCOPY_END = 30
    GET_INFLIGHT_FD = 31
    SET_INFLIGHT_FD = 32
    GPU_SET_SOCKET = 33
    RESET_DEVICE = 34
    VRING_KICK = 35
    GET_MAX_MEM_SLOTS = 36
    ADD_MEM_REG = 37
    REM_MEM_REG = 38
    SET_STATUS = 39
    GET_STATUS = 40


# What nobody offers to a guest of a network port, and numbers that mean nothing at all.
NUMBERS = range(61)

VERSION = 1
REPLY = 4
NEED_REPLY = 8

HEADER = struct.Struct("<3I")
STATE = struct.Struct("<2I")  # of a ring: index, number
ADDRESSES = struct.Struct("<2I4Q")  # of a ring: index, flags, descriptors, used, available, log
REGION = struct.Struct("<4Q")  # guest's address, bytes, front end's address, offset in the file
NO_FILE = 1 << 8  # in SET_VRING_KICK and _CALL: no file comes with it


class Reply(NamedTuple):
    """What the back end sent."""

    request: int
    payload: bytes
    files: list[int]


class FrontEnd(Scope):
    """One connection to a back end."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over a socket that is connected."""
        self.socket = connection
        self.socket.settimeout(DEADLINE_S)
        self.gone = False  # the back end hung up
        self.acknowledged = False  # REPLY_ACK was negotiated

    @classmethod
    def connect(cls, path: Path) -> Self:
        """Connect to a back end that listens."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            raise
        return cls(connection)

    def send_bytes(self, data: bytes, files: Sequence[int] = ()) -> bool:
        """Send bytes as they are. False: the back end hung up."""
        try:
            sent = socket.send_fds(self.socket, [data], files) if data else 0
            self.socket.sendall(data[sent:])
        except TimeoutError:
            raise
        except OSError:
            self.gone = True
        return not self.gone

    def send(
        self,
        request: int,
        payload: bytes = b"",
        files: Sequence[int] = (),
        flags: int = VERSION,
        size: int | None = None,
    ) -> bool:
        """Send a message, whose header may say another size. False: the back end hung up."""
        stated = len(payload) if size is None else size
        return self.send_bytes(HEADER.pack(request, flags, stated) + payload, files)

    def receive(self) -> Reply | None:
        """Return what comes next; None: the back end hung up."""
        head, files = self._take(HEADER.size)
        if head is None:
            return None
        request, _, size = HEADER.unpack(head)
        payload, more = self._take(size)
        return None if payload is None else Reply(request, payload, files + more)

    def _take(self, count: int) -> tuple[bytes | None, list[int]]:
        data, files = b"", []
        try:
            while len(data) < count:
                got, more, _, _ = socket.recv_fds(self.socket, count - len(data), 8)
                files += more
                if not got:
                    raise ConnectionError
                data += got
        except TimeoutError:
            raise
        except OSError:
            self.gone = True
            return None, files
        return data, files

    def ask(self, request: int, payload: bytes = b"", files: Sequence[int] = ()) -> Reply | None:
        """Send a message that has an answer and return that; None: the back end hung up."""
        self.send(request, payload, files)
        return self._answer(request)

    def _answer(self, request: int) -> Reply | None:
        while (reply := self.receive()) is not None and reply.request != request:
            close_all(reply.files)
        return reply

    def ask_number(self, request: int) -> int:
        """Return a number the back end has to give. Raises ConnectionError: it hung up."""
        reply = self.ask(request)
        if reply is None:
            raise ConnectionError(f"no answer to {Request(request).name}")
        return int.from_bytes(reply.payload, "little")

    def tell(self, request: int, payload: bytes = b"", files: Sequence[int] = ()) -> int | None:
        """Send a message and return the back end's verdict, 0: done; None: it hung up.

        Without REPLY_ACK there is none, and 0 is returned.
        """
        self.send(request, payload, files, VERSION | (NEED_REPLY if self.acknowledged else 0))
        if not self.acknowledged:
            return None if self.gone else 0
        reply = self._answer(request)
        return None if reply is None else int.from_bytes(reply.payload, "little")

    def tell_number(self, request: int, number: int, files: Sequence[int] = ()) -> int | None:
        """As tell(), with a 64-bit number."""
        return self.tell(request, struct.pack("<Q", number), files)

    def tell_state(self, request: int, ring: int, number: int) -> int | None:
        """As tell(), with the number of a ring."""
        return self.tell(request, STATE.pack(ring, number))

    def tell_memory(self, regions: Sequence["Region"], count: int | None = None) -> int | None:
        """As tell(), with a memory table, which may claim to have another number of regions."""
        table = struct.pack("<2I", len(regions) if count is None else count, 0)
        files = [region.file for region in regions]
        return self.tell(
            Request.SET_MEM_TABLE, table + b"".join(region.packed() for region in regions), files
        )

    def serves(self) -> bool:
        """Wait until all that was sent is dealt with; return whether the back end goes on."""
        reply = self.ask(Request.GET_FEATURES)
        return reply is not None

    def until_closed(self) -> None:
        """Wait until the back end hangs up."""
        while (reply := self.receive()) is not None:
            close_all(reply.files)

    def _leave(self) -> None:
        """Hang up."""
        self.socket.close()


class Region(NamedTuple):
    """A part of the guest's memory, as a memory table has it. Anything goes."""

    guest: int
    size: int
    user: int
    offset: int
    file: int

    def packed(self) -> bytes:
        """Return it as it is sent."""
        return REGION.pack(self.guest, self.size, self.user, self.offset)


def close_all(files: Sequence[int]) -> None:
    """Close files that came with a message."""
    for file in files:
        with contextlib.suppress(OSError):
            os.close(file)


def connect(path: Path, deadline_s: float = DEADLINE_S) -> tuple[FrontEnd, int]:
    """Connect, as soon as the back end serves a new peer; return the features that it offers.

    It may still be busy with the one before, which is what it hangs up for.
    """
    end = time.monotonic() + deadline_s
    while True:
        with contextlib.suppress(OSError):
            front_end = FrontEnd.connect(path)
            try:
                return front_end, front_end.ask_number(Request.GET_FEATURES)
            except OSError:
                front_end.close()
        if time.monotonic() > end:
            raise TimeoutError(f"{path}: no back end serves a peer there")
        time.sleep(0.01)  # nothing signals it
