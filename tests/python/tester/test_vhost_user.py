# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our vhost-user front end with DPDK's back end: traffic, deaths and returns on both sides."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convoy.host.process import wait_for
from convoy.tester.convoy_gen import ConvoyGen

from .conftest import CORES, Device, need_testpmd

# A busy machine may stop the device for long; the queues then hold what is offered.
RING = 8192
EASY = {"rate_pps": 20_000, "duration_s": 0.2, "drain_s": 5, "tolerance": 1}


def ports(device: Device, options: str = "") -> list[str]:
    return [f"vhost-user:{socket},ring={RING}{options}" for socket in device.sockets]


def until_it_forwards(tester: ConvoyGen) -> None:
    """The device takes a moment from its handshake to its first packet, and may drop until then."""

    def forwards() -> bool:
        total = tester.trial({"rate_pps": 10_000, "duration_s": 0.02, "tolerance": 1})["total"]
        return bool(total) and total["received_pkts"] == total["offered_pkts"] > 0

    wait_for(forwards, 60, "the device to forward")


def assert_all_came_back(result: dict[str, Any]) -> None:
    total = result["total"]
    assert result["ok"], result["reason"]
    assert total["offered_pkts"] == total["sent_pkts"] == total["received_pkts"] > 0
    for key in ("lost_pkts", "duplicated_pkts", "reordered_pkts", "misrouted_pkts", "corrupt_pkts"):
        assert total[key] == 0
    assert result["foreign_pkts"] == result["tester"]["ring_errors"] == 0


@pytest.fixture(scope="module")
def forwarding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConvoyGen]:
    """A tester at a device that forwards, for all the tests that leave both alone."""
    need_testpmd()
    running = Device(tmp_path_factory.mktemp("shared"), 1, False)
    running.start()
    try:
        with ConvoyGen(ports(running), core=CORES[-1]) as tester:
            until_it_forwards(tester)
            yield tester
    finally:
        running.close()


@pytest.mark.parametrize(
    "traffic",
    [
        {},
        {"size": 1518},
        {"size": "imix", "flows": {"count": 1000, "order": "shuffle"}},
        {"size": 80, "flows": {"ip": 6, "count": 5000}, "pacing": {"burst_pkts": 32}},
        {"flows": {"vlan": "1-100", "count": 100}, "pacing": {"on_us": 500, "off_us": 500}},
        {"paths": ["0>1", "1>0"]},
    ],
    ids=str,
)
def test_everything_comes_back(forwarding: ConvoyGen, traffic: dict):
    assert_all_came_back(forwarding.trial(EASY | traffic))


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
        assert result["paths"][0]["queues"] == 2


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
            result = tester._read(30, "the trial's end")
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
            tester._process.wait(10)
        assert running.alive()
    with ConvoyGen(ports(running), core=CORES[-1]) as tester:
        until_it_forwards(tester)
        assert_all_came_back(tester.trial(EASY))
