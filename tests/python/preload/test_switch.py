# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Open vSwitch with libconvoy_vhost.so under it: what it counts, and who may be killed."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from convoy.dut.base import PortAt, Running, Setup
from convoy.dut.devices import device
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen

CORES = sorted(os.sched_getaffinity(0))
SWITCH = device("ovs-dpdk")
TRIAL = {"rate_pps": 20_000, "duration_s": 0.2, "drain_s": 5, "tolerance": 1}
FULL_SPEED = '{"rate_pps": "max", "duration_s": 1.5, "drain_s": 0.1, "tolerance": 1}'
PACKET_BYTES = 60  # of 64, without FCS


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    if SWITCH.presence().missing:
        pytest.skip(SWITCH.presence().missing)
    for program in ("convoy-gen", "libconvoy_vhost.so"):
        if find(program) is None:
            pytest.skip(f"{program} is not built: make build")
    ports = [PortAt("vhost-user", str(tmp_path / side)) for side in ("l", "r")]
    (tmp_path / "switch").mkdir()
    return Setup((), *ports, (CORES[0],), tmp_path / "switch", options={"convoys": "vhost"})


@pytest.fixture
def switch(setup: Setup) -> Iterator[Running]:
    with SWITCH.start(setup) as running:
        running.ready(60)
        yield running


def guests(setup: Setup) -> ConvoyGen:
    ports = (setup.left, setup.right)
    attached = [f"{SWITCH.tester_port(port, i)},ring=8192" for i, port in enumerate(ports)]
    return ConvoyGen(attached, core=CORES[-1])


def assert_all_come(tester: ConvoyGen) -> int:
    """Return how many packets came in a trial in which none was lost."""

    def forwards() -> bool:
        total = tester.trial({**TRIAL, "duration_s": 0.02})["total"]
        return bool(total) and total["received_pkts"] == total["offered_pkts"] > 0

    wait_for(forwards, 60, "the switch to forward")
    result = tester.trial(TRIAL)
    assert result["ok"], result["reason"]
    total = result["total"]
    assert total["received_pkts"] == total["offered_pkts"] > 0
    assert total["corrupt_pkts"] == total["reordered_pkts"] == total["duplicated_pkts"] == 0
    return int(total["received_pkts"])


def counted(switch: Running) -> dict[str, int]:
    counters = switch.counters()
    assert counters is not None
    ports: dict[str, int] = counters["dump-ports"]
    return ports


def kill_under_load(tester: ConvoyGen, switch: Running, pid: int) -> None:
    before = counted(switch)["rx pkts"]
    tester._process.say(FULL_SPEED)
    wait_for(lambda: counted(switch)["rx pkts"] > before + 10_000, 60, "packets to come")
    os.kill(pid, signal.SIGKILL)


def test_ports_count_packets_and_guests_may_be_killed(setup: Setup, switch: Running):
    with guests(setup) as tester:
        assert_all_come(tester)
        before = counted(switch)
        came = assert_all_come(tester)
        after = counted(switch)
        # Of the packets in convoys; those sent until all came count too.
        for way in ("rx", "tx"):
            packets = after[f"{way} pkts"] - before[f"{way} pkts"]
            assert packets >= came
            assert after[f"{way} bytes"] - before[f"{way} bytes"] == packets * PACKET_BYTES
        assert after["tx pkts"] - before["tx pkts"] == after["rx pkts"] - before["rx pkts"]
        kill_under_load(tester, switch, tester._process.pid)
    with guests(setup) as tester:
        assert_all_come(tester)
    assert switch.alive()


def test_the_switch_may_be_killed_and_its_guests_stay(setup: Setup, tmp_path: Path):
    with guests(setup) as tester:
        with SWITCH.start(setup) as switch:
            switch.ready(60)
            assert_all_come(tester)
            kill_under_load(tester, switch, switch.processes()[-1])
        (tmp_path / "another").mkdir()
        with SWITCH.start(replace(setup, folder=tmp_path / "another")) as switch:
            switch.ready(60)
            tester._read(90, "the end of the trial")
            assert_all_come(tester)


def test_several_queues(setup: Setup):
    left, right = (replace(port, queues=2) for port in (setup.left, setup.right))
    setup = replace(setup, left=left, right=right)
    with SWITCH.start(setup) as switch, guests(setup) as tester:
        switch.ready(60)
        assert_all_come(tester)
        before = counted(switch)["rx pkts"]
        # Flow by flow over the queues, in their order.
        result = tester.trial({**TRIAL, "flows": {"count": 50, "order": "shuffle"}})
        assert result["total"]["received_pkts"] == result["total"]["offered_pkts"] > 0
        assert counted(switch)["rx pkts"] - before >= result["total"]["received_pkts"]
        polled = switch._appctl("dpif-netdev/pmd-rxq-show")  # type: ignore[attr-defined]
        assert {port: polled.count(f"port: {port}-port") for port in ("left", "right")} == {
            "left": 2,
            "right": 2,
        }
