# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Messages that were not offered, of any size, in any order, and after one that failed."""

import os
import struct

import pytest

from convoy.host.process import wait_for

from .front_end import HEADER, NEED_REPLY, NUMBERS, REPLY, VERSION, Region, Request
from .guest import GIB, MIB, Guest
from .targets import SANITIZED, Target

ours = pytest.mark.parametrize("kind", [SANITIZED], indirect=True)
at_once = pytest.mark.parametrize("kind", (SANITIZED, "testpmd"), indirect=True)

NOT_OFFERED = [
    Request.POSTCOPY_ADVISE,
    Request.POSTCOPY_LISTEN,
    Request.POSTCOPY_END,
    Request.SET_BACKEND_REQ_FD,
    Request.IOTLB_MSG,
    Request.GPU_SET_SOCKET,
    Request.ADD_MEM_REG,
    Request.REM_MEM_REG,
    0,
    60,
]
EVERYTHING = (1 << 64) - 1


def features_of_everything(guest: Guest) -> None:
    """Claim every feature, whether it was offered or not."""
    guest.front_end.tell_number(Request.SET_PROTOCOL_FEATURES, EVERYTHING)
    guest.front_end.tell_number(Request.SET_FEATURES, EVERYTHING)


@at_once
@pytest.mark.parametrize("started", [False, True], ids=["first", "while it runs"])
@pytest.mark.parametrize("files", [0, 8])
def test_every_request(target: Target, started: bool, files: int):
    for number in NUMBERS:
        for payload in (b"", b"\xff" * 40):
            guest = target.guest()
            if started:
                guest.start()
            guest.front_end.send(number, payload, [guest.memory.file] * files)
            guest.front_end.serves()
            target.calm()
        target.assert_sound()
    target.assert_well()


@pytest.mark.parametrize("claims", [False, True], ids=["", "claiming all features"])
def test_no_file_is_handed_out_for_what_was_not_offered(target: Target, claims: bool):
    """Whoever holds a userfaultfd of a process decides what that reads."""
    for request in NOT_OFFERED:
        guest = target.guest().start()
        if claims:
            features_of_everything(guest)
        guest.front_end.send(request, b"", [], VERSION | NEED_REPLY)
        guest.front_end.send(Request.GET_FEATURES)
        while (reply := guest.front_end.receive()) is not None:
            assert reply.files == [], f"request {request}"
            if reply.request == Request.GET_FEATURES:
                break
        target.feed(8)
        target.calm()
    target.assert_well()


BAD_TABLES = {
    "no region": lambda memory: [],
    "no file": lambda memory: [memory.region()._replace(file=os.open("/dev/null", os.O_RDWR))],
    "no size": lambda memory: [memory.region()._replace(size=0)],
    "beyond the file": lambda memory: [memory.region()._replace(size=1 << 40)],
    "not of this world": lambda memory: [memory.region()._replace(size=EVERYTHING)],
    "an offset beyond": lambda memory: [memory.region()._replace(offset=1 << 40)],
    "an offset that wraps": lambda memory: [memory.region()._replace(offset=EVERYTHING - 4095)],
    "an offset between pages": lambda memory: [memory.region()._replace(offset=1)],
    "addresses that wrap": lambda memory: [memory.region()._replace(guest=EVERYTHING - MIB)],
    "one upon another": lambda memory: [memory.region(), memory.region(MIB)],
    "nine": lambda memory: [memory.region(i * MIB, MIB) for i in range(9)],
}


@at_once
@pytest.mark.parametrize("table", BAD_TABLES.values(), ids=BAD_TABLES)
def test_any_message_after_a_memory_table_that_failed(target: Target, table):
    for request in (*Request,):
        guest = target.guest().start()
        regions: list[Region] = table(guest.memory)
        packed = struct.pack("<2I", len(regions), 0) + b"".join(r.packed() for r in regions)
        files = [region.file for region in regions][:8]
        guest.front_end.send(Request.SET_MEM_TABLE, packed, files, VERSION | NEED_REPLY)
        payload = struct.pack("<2I", 0, 1) if request != Request.SET_VRING_ADDR else b""
        guest.front_end.send(request, payload, [], VERSION | NEED_REPLY)
        guest.tell_addresses(0)
        guest.front_end.serves()
        target.feed(1)
        for region in regions:
            if region.file != guest.memory.file:
                os.close(region.file)
        target.calm()
    target.assert_well()


@at_once
def test_numbers_of_regions_and_of_files_that_disagree(target: Target):
    for count in (0, 1, 7, 8, 9, 255, 1 << 31, (1 << 32) - 1):
        for sent in (0, 1, 8):
            for files in (0, 1, 8):
                guest = target.guest()
                guest.negotiate()
                region = guest.memory.region().packed()
                payload = struct.pack("<2I", count, 0) + region * sent
                guest.front_end.send(Request.SET_MEM_TABLE, payload, [guest.memory.file] * files)
                guest.front_end.serves()
                target.calm()
    target.assert_well()


@at_once
def test_headers_of_anything(target: Target):
    sizes = (0, 1, 7, 8, 12, 267, 268, 4096, 1 << 31, (1 << 32) - 1)
    for flags in (0, VERSION | REPLY, 2, 3, (1 << 32) - 1):
        for size in sizes:
            guest = target.guest()
            guest.front_end.send_bytes(HEADER.pack(Request.SET_FEATURES, flags, size) + bytes(8))
            target.calm()
    target.assert_well()


@ours
def test_messages_in_pieces_of_a_byte(target: Target):
    """A stream socket has no messages: a handshake works however it arrives."""
    guest = target.guest()
    front_end, whole = guest.front_end, guest.front_end.send_bytes

    def in_pieces(data: bytes, files=()) -> bool:
        sent = whole(data[:1], files)
        return all(whole(data[i : i + 1]) for i in range(1, len(data))) and sent

    front_end.send_bytes = in_pieces  # type: ignore[method-assign]
    guest.start()

    def received() -> bool:
        target.offer(1)
        return guest.received() != []

    wait_for(received, 30, "a packet to the guest")
    target.assert_well()


@at_once
def test_inflight_buffers_of_any_size(target: Target):
    for queues in (0, 1, 2, 3, 128, 65535):
        for size in (0, 1, 256, 32768, 65535):
            guest = target.guest()
            guest.negotiate()
            query = struct.pack("<2Q2H", 0, 0, queues, size)
            reply = guest.front_end.ask(Request.GET_INFLIGHT_FD, query)
            if reply is not None:
                assert all(os.fstat(file).st_size <= 64 * MIB for file in reply.files)
                for file in reply.files:
                    os.close(file)
            target.calm()
    target.assert_well()


@at_once
def test_inflight_buffers_that_are_none(target: Target):
    """The guest's file is not the back end's to trust, in size or in content."""
    for file_size in (0, 1, 4096, MIB):
        for stated in (0, 4096, MIB, GIB, EVERYTHING):
            for offset in (0, 1, 4096, EVERYTHING - 4095):
                guest = target.guest()
                guest.negotiate()
                file = os.memfd_create("inflight")
                os.write(file, b"\xff" * file_size)
                payload = struct.pack("<2Q2H", stated, offset, 2, 256)
                guest.front_end.send(Request.SET_INFLIGHT_FD, payload, [file])
                if guest.front_end.serves():
                    guest.front_end.tell_memory([guest.memory.region()])
                    guest.front_end.serves()
                os.close(file)
                target.calm()
    target.assert_well()


@at_once
def test_dirty_page_logs_that_are_none(target: Target):
    """Pages are marked in the guest's file: nowhere else, and not behind its end."""
    for file_size, stated, offset in (
        (0, 4096, 0),
        (4096, 1, 0),
        (4096, GIB, 0),
        (4096, EVERYTHING, 0),
        (4096, 4096, 1 << 40),
        (4096, 4096, EVERYTHING - 4095),
    ):
        guest = target.guest(wanted=[26])  # VHOST_F_LOG_ALL
        file = os.memfd_create("log")
        os.ftruncate(file, file_size)
        guest.start()
        guest.front_end.send(Request.SET_LOG_BASE, struct.pack("<2Q", stated, offset), [file])
        guest.front_end.serves()
        target.feed(8)
        os.close(file)
        target.calm()
    target.assert_well()
