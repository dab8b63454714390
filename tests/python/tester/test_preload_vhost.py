# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""libconvoy_vhost.so under an unmodified dpdk-testpmd: every packet is there, as it was."""

import re
import subprocess
from collections.abc import Callable

import pytest

from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .conftest import Device
from .vhost import EASY, assert_all_came_back, ports, until_it_forwards

NEXT_HOP = "dst_mac=02:00:00:00:00:02 dst=192.0.2.2 src=192.0.2.1"


@pytest.fixture
def library() -> str:
    result = find("libconvoy_vhost.so")
    if result is None:
        pytest.skip("libconvoy_vhost.so is not built: make build")
    return str(result)


@pytest.mark.parametrize("words", ["", NEXT_HOP], ids=["disaggregates", "aggregates"])
def test_packets_reach_the_other_guest_as_they_were(
    device: Callable[..., Device], library: str, words: str
):
    running = device()
    running.environment = {"LD_PRELOAD": library, "CONVOY_VHOST": words}
    running.start()
    with ConvoyGen(ports(running), core=CORES[-1]) as tester:
        until_it_forwards(tester)
        for frame_bytes in (64, 128, 1518):
            assert_all_came_back(tester.trial(EASY | {"size": frame_bytes}))
        wait_for(lambda: _outruns_the_switch(tester), 60, "trials faster than the switch looks")
    process = running._process
    assert process is not None
    made, opened = 0, 0
    for socket in running.sockets:
        line = process.stderr.wait(lambda text, name=str(socket): _tells(text, name), 30)
        assert line is not None
        result = re.search(r" (\d+) of them convoys; \d+ packets to it, out of (\d+) convoys", line)
        assert result is not None
        made, opened = made + int(result[1]), opened + int(result[2])
    assert (made > 0) == (words == NEXT_HOP)
    assert (opened > 0) == (words == NEXT_HOP)


def _outruns_the_switch(tester: ConvoyGen) -> bool:
    """Then it finds many packets at once, of which some are aggregated."""
    total = tester.trial({"rate_pps": "max", "duration_s": 0.2, "tolerance": 1}).total
    return total is not None and total.received_pkts > 10_000


def _tells(line: str, socket: str) -> bool:
    return socket in line and "packets from the guest" in line


def test_guests_are_killed_and_come_back(device: Callable[..., Device], library: str):
    running = device()
    words = f"{NEXT_HOP} network=/no/socket"
    running.environment = {"LD_PRELOAD": library, "CONVOY_VHOST": words}
    running.start()
    for _ in range(2):
        with ConvoyGen(ports(running), core=CORES[-1]) as tester:
            until_it_forwards(tester)
            assert_all_came_back(tester.trial(EASY))
            tester._process.say('{"rate_pps": 1000000, "duration_s": 20, "tolerance": 1}')
            tester._process.signal(9)
    assert running.alive()
    process = running._process
    assert process is not None
    assert process.stderr.wait(
        lambda text: "network /no/socket: the program has no socket of that name by now" in text, 10
    )


def test_bad_settings_are_refused(library: str):
    done = subprocess.run(
        ["/bin/true"],
        env={"LD_PRELOAD": library, "CONVOY_VHOST": "dst=192.0.2.1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "CONVOY_VHOST: a next hop needs dst_mac=, dst= and src=" in done.stderr
