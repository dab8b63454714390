# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our vhost-user front end with DPDK's back end: deaths and returns on both sides."""

import select
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from convoy.host.process import wait_for
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .conftest import Device
from .vhost import EASY, assert_all_came_back, ports, until_it_forwards


def test_the_device_connects_to_us(device: Callable[..., Device]):
    running = device(client=True)
    with ConvoyGen(ports(running, ",server"), core=CORES[-1], attach_timeout_s=60) as tester:
        wait_for(lambda: all(s.exists() for s in running.sockets), 30, "the tester's sockets")
        running.start()
        until_it_forwards(tester)
        assert_all_came_back(tester.trial(EASY))


def test_two_queue_pairs(device: Callable[..., Device]):
    running = device(queues=2)
    running.start()
    with ConvoyGen(ports(running, ",queues=2"), core=CORES[-1]) as tester:
        until_it_forwards(tester)
        result = tester.trial(EASY | {"flows": {"count": 64}})
        assert_all_came_back(result)
        assert result.paths[0].queues == 2


@pytest.mark.alone
@pytest.mark.parametrize("client", [False, True], ids=["we connect", "it connects"])
def test_the_device_is_killed_and_comes_back(device: Callable[..., Device], client: bool):
    running = device(client=client)
    options = ",server" if client else ""
    with ConvoyGen(ports(running, options), core=CORES[-1], attach_timeout_s=60) as tester:
        if client:
            wait_for(lambda: all(s.exists() for s in running.sockets), 30, "the tester's sockets")
        running.start()
        until_it_forwards(tester)
        for _ in range(2):
            tester._process.say('{"rate_pps": 10000, "duration_s": 20, "tolerance": 1}')
            running.kill()
            result = tester._read(90, "the trial's end")
            assert (result["ok"], result["reason_code"]) == (False, "peer_gone")
            assert "closed the connection" in result["reason"]
            assert result["duration_ns"] < 19e9
            running.start()
            until_it_forwards(tester)
            assert_all_came_back(tester.trial(EASY))


def test_the_tester_is_killed_and_comes_back(device: Callable[..., Device]):
    running = device()
    running.start()
    for _ in range(3):
        with ConvoyGen(ports(running), core=CORES[-1]) as tester:
            until_it_forwards(tester)
            tester._process.say('{"rate_pps": 10000, "duration_s": 20}')
            tester._process.signal(9)
            tester._process.wait(60)
        assert running.alive()
    with ConvoyGen(ports(running), core=CORES[-1]) as tester:
        until_it_forwards(tester)
        assert_all_came_back(tester.trial(EASY))


GET_FEATURES, SET_VRING_KICK = 1, 12
VERSION_1 = 1 << 32


def test_every_ring_is_kicked_when_it_is_set_up(tmp_path: Path):
    """By the specification a back end starts a ring at its first kick. DPDK's does not wait."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "back end"))
        listener.listen()
        listener.settimeout(30)
        with ConvoyGen([f"vhost-user:{tmp_path / 'back end'}"], core=CORES[-1]):
            front_end, _ = listener.accept()
            kicks: list[int] = []
            with front_end, front_end.makefile("wb") as answers:
                front_end.settimeout(30)
                while len(kicks) < 2:
                    head, fds, _, _ = socket.recv_fds(front_end, 12, 1)
                    request, _, size = struct.unpack("<3I", head)
                    front_end.recv(size, socket.MSG_WAITALL)
                    kicks += fds if request == SET_VRING_KICK else []
                    if request == GET_FEATURES:
                        answers.write(struct.pack("<3IQ", request, 5, 8, VERSION_1))
                        answers.flush()
                for kick in kicks:
                    assert select.select([kick], [], [], 30)[0], "it was never kicked"
