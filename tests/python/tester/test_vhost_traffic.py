# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Every kind of traffic comes back from a real device."""

from collections.abc import Iterator

import pytest

from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .conftest import Device, need_testpmd
from .vhost import EASY, assert_all_came_back, ports, until_it_forwards


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
