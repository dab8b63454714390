# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What libconvoy_vhost.so adds to rte_vhost's treatment of a guest's messages, under testpmd.

What every target must survive is in tests/python/hostile.
"""

import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from convoy.host.process import wait_for
from hostile.front_end import DEADLINE_S, HEADER, NEED_REPLY, STATE, VERSION, Request
from hostile.guest import BASE, FREE, HEADER_BYTES, Piece
from hostile.targets import TARGETS, Target

REPLY_ACK = 1 << 3
# MQ, LOG_SHMFD, REPLY_ACK, NET_MTU, STATUS: no post-copy, nothing that no network guest needs.
PROTOCOL = 0x1001B


@pytest.fixture(scope="module")
def running() -> Iterator[Target]:
    # Not pytest's: a socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="preload-") as folder:
        target = TARGETS["testpmd"](Path(folder))
        try:
            target.until_it_carries()
            yield target
        finally:
            target.close()


@pytest.fixture
def target(running: Target) -> Iterator[Target]:
    yield running
    running.calm()
    running.assert_well()


def test_no_more_is_offered_than_is_validated(target: Target):
    front_end, _ = target.attach()
    assert front_end.ask_number(Request.GET_PROTOCOL_FEATURES) == PROTOCOL


def test_a_memory_table_that_failed_ends_the_connection(target: Target):
    """With a reply asked for, rte_vhost goes on without memory, and dies of the next message."""
    for request in (Request.SET_VRING_ADDR, Request.SET_VRING_ENABLE, Request.SET_LOG_BASE):
        guest = target.guest().start()
        front_end = guest.front_end
        front_end.tell_number(Request.SET_PROTOCOL_FEATURES, REPLY_ACK)
        region = guest.memory.region()._replace(size=1 << 60).packed()
        table = struct.pack("<2I", 1, 0) + region
        front_end.send(
            Request.SET_MEM_TABLE, table, [guest.memory.file], flags=VERSION | NEED_REPLY
        )
        front_end.send(request, bytes(8))
        front_end.until_closed()
        target.calm()


def test_a_message_that_succeeds_is_acknowledged_once(target: Target):
    front_end, _ = target.attach()
    front_end.tell_number(Request.SET_PROTOCOL_FEATURES, REPLY_ACK)
    front_end.acknowledged = True
    assert front_end.tell(Request.SET_OWNER) == 0
    # It has an answer of its own, and no other.
    front_end.send(Request.GET_FEATURES, flags=VERSION | NEED_REPLY)
    front_end.send(Request.GET_PROTOCOL_FEATURES, flags=VERSION | NEED_REPLY)
    assert front_end.tell(Request.SET_OWNER) == 0
    order = [Request.GET_FEATURES, Request.GET_PROTOCOL_FEATURES, Request.SET_OWNER]
    front_end.send(Request.GET_FEATURES, flags=VERSION | NEED_REPLY)
    front_end.send(Request.GET_PROTOCOL_FEATURES, flags=VERSION | NEED_REPLY)
    front_end.send(Request.SET_OWNER, flags=VERSION | NEED_REPLY)
    replies = [front_end.receive() for _ in order]
    assert [reply.request for reply in replies if reply is not None] == order


def test_files_with_a_message_for_no_ring_are_closed(target: Target):
    """rte_vhost hangs up before it asks anybody, and keeps them."""
    files = [os.memfd_create("kept") for _ in range(8)]
    before = target.open_files()
    for _ in range(20):
        front_end, _ = target.attach()
        front_end.send(Request.SET_VRING_NUM, STATE.pack(1 << 20, 64), files)
        front_end.until_closed()
        target.calm()
    for file in files:
        os.close(file)
    # Of a connection that is still being ended, a few may be open.
    assert target.open_files() < before + 20


def test_half_a_message_makes_no_other_guest_wait(target: Target):
    front_end, _ = target.attach()
    front_end.send_bytes(HEADER.pack(Request.SET_FEATURES, VERSION, 8))
    # Another guest of the same thread is served.
    target.renew_feeder()
    front_end.until_closed()


def test_replies_that_nobody_reads_make_no_other_guest_wait(target: Target):
    front_end, _ = target.attach()
    for _ in range(10_000):
        if not front_end.send(Request.GET_FEATURES):
            break
    target.renew_feeder()
    assert front_end.gone


def test_a_guest_whose_packets_are_all_dropped_is_told(target: Target):
    """Else it waits for its buffers to come back."""
    guest = target.guest().start()

    def called() -> bool:
        try:
            return os.eventfd_read(guest.calls[1]) > 0
        except BlockingIOError:
            return False

    wait_for(called, DEADLINE_S, "a call of a queue that begins")
    for length in (60, 5, 5):  # bytes; too short from the second on
        guest.tx.put([Piece(BASE + FREE, HEADER_BYTES + length)])
        wait_for(called, DEADLINE_S, "a call after a packet")
        assert len(guest.tx.take()) == 1
