# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a peer may take from the node: files, memory, its threads' time, lines on its terminal."""

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from convoy.host.process import wait_for

from .conftest import Pool
from .front_end import DEADLINE_S, HEADER, VERSION, FrontEnd, Request
from .guest import FREE, GIB, HEADER_BYTES, Memory, Piece
from .targets import AT_ONCE, OURS, Target

ours = pytest.mark.parametrize("kind", OURS, indirect=True)
at_once = pytest.mark.parametrize("kind", AT_ONCE, indirect=True)

PAGE = 4096
FULL = (1 << 64) - 2  # an eventfd's counter: one more must wait


@pytest.fixture
def doomed(kind: str, pool: Pool) -> Iterator[Target]:
    """A target that the test may end."""
    yield pool.get(kind)
    pool.drop()


@pytest.mark.parametrize(
    "request_",
    [Request.GET_FEATURES, Request.GET_QUEUE_NUM, Request.SET_OWNER, Request.SET_VRING_NUM, 99],
)
def test_files_with_messages_that_carry_none(target: Target, request_: int):
    guest = target.guest().start()
    before = target.open_files()
    for _ in range(2500):
        payload = bytes(8) if request_ == Request.SET_VRING_NUM else b""
        if not guest.front_end.send(request_, payload, [guest.memory.file] * 8):
            break
        if request_ in (Request.GET_FEATURES, Request.GET_QUEUE_NUM):
            guest.front_end.receive()
    guest.front_end.serves()
    assert target.open_files() < before + 64
    target.calm()
    wait_for(lambda: target.open_files() <= before, DEADLINE_S, "files to be closed")
    target.assert_well()


@at_once
@pytest.mark.parametrize("sent", [1, 11, 12, 13, 19])
def test_half_a_message_and_silence(target: Target, sent: int):
    """The other ports' peers come and go meanwhile."""
    guest = target.guest()
    message = HEADER.pack(Request.SET_FEATURES, VERSION, 8) + bytes(8)
    guest.front_end.send_bytes(message[:sent])
    target.renew_feeder()
    target.assert_well()


@ours
@pytest.mark.parametrize("sent", [1, 12, 19])
def test_half_a_message_and_a_signal(doomed: Target, sent: int):
    guest = doomed.guest()
    message = HEADER.pack(Request.SET_FEATURES, VERSION, 8) + bytes(8)
    guest.front_end.send_bytes(message[:sent])
    doomed.process.signal(signal.SIGTERM)
    assert doomed.process.wait(DEADLINE_S) == 0, doomed.output()


def empty(file: int) -> None:
    """Take back what was written into an eventfd."""
    os.set_blocking(file, False)
    with contextlib.suppress(BlockingIOError):
        os.eventfd_read(file)


def test_a_call_that_would_block(target: Target):
    """The file is the guest's: blocking whenever it likes, and full."""
    guest = target.guest().start()
    call = guest.calls[0]
    for _ in range(3):
        target.feed(4)
        empty(call)
        os.set_blocking(call, True)
        os.eventfd_write(call, FULL)
        target.offer(4)
        target.assert_well()
        empty(call)


def test_calls_and_kicks_that_are_no_eventfd(target: Target):
    read, write = os.pipe()
    for file in (read, write, os.open("/dev/full", os.O_RDWR), os.open("/proc/self", os.O_RDONLY)):
        guest = target.guest().start()
        guest.tell_call(0, [file])
        guest.front_end.tell_number(Request.SET_VRING_KICK, 1, [file])
        guest.front_end.serves()
        target.offer(4)
        target.assert_well()
        os.close(file)
        target.calm()


@at_once
def test_memory_taken_back_under_traffic(target: Target):
    """More pages, no two of them neighbours, than a process may have mappings."""
    guest = target.guest(size=32768, memory=Memory(GIB)).start(buffers=False)
    base, pages = guest.memory.base + FREE, 2 * guest.tx.size
    for i in range(guest.tx.size):
        guest.tx.put([Piece(base + 2 * i * PAGE % GIB, HEADER_BYTES + 60)])
    os.ftruncate(guest.memory.file, FREE)
    for round_ in range(3):
        for i in range(guest.tx.size):
            at = base + (2 * i + round_) % pages * PAGE * 3
            guest.tx.put([Piece(at, HEADER_BYTES + 60)])
        target.assert_well()


@at_once
def test_memory_that_was_never_there(target: Target):
    """The file ends before the region does. Such a table may be refused."""
    guest = target.guest()
    os.ftruncate(guest.memory.file, FREE)
    guest.negotiate()
    if guest.front_end.tell_memory([guest.memory.region()]) == 0:
        guest.start_rings()
        for _ in range(guest.tx.size):
            guest.tx.put([Piece(guest.memory.base + FREE + PAGE, 72)])
    target.feed(64)
    target.assert_well()


@ours
def test_lines_of_peers_that_come_and_go(target: Target):
    """A peer cannot fill the disk of whoever keeps what the node writes."""
    target.assert_well()
    before = len(target.process.stderr.text().splitlines())
    for _ in range(300):
        front_end = FrontEnd.connect(target.sockets["victim"])
        front_end.send(Request.SET_OWNER)
        front_end.send(Request.SET_VRING_NUM, b"\xff" * 8)
        front_end.close()
    for _ in range(100):
        target.guest().start()
        target.calm()
    target.assert_well()
    assert len(target.process.stderr.text().splitlines()) - before < 200
