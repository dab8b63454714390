# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Open vSwitch with libconvoy_vhost.so under it: what it counts, and who may be killed."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader, RawPcapWriter

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.dut.base import PortAt, Running, Setup
from convoy.dut.devices import device
from convoy.dut.ovs_dpdk import NEXT_HOP
from convoy.frame import Outer, encode
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.open_vswitch import Switch, SwitchConfig, vhost_user
from convoy.host.process import output_of, wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

SWITCH = device("ovs-dpdk")
# It ends when all are sent: a machine that has other work needs longer than 0.2 s.
TRIAL = {"rate_pps": 20_000, "packets": 4000, "duration_s": 30, "drain_s": 5, "tolerance": 1}
SATURATION = '{"rate_pps": "max", "duration_s": 1.5, "drain_s": 0.1, "tolerance": 1}'
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


def assert_all_come(tester: ConvoyGen, **more: Any) -> int:
    """Return how many packets came in a trial, with more in its words, in which none was lost."""
    trial = TRIAL | more

    def forwards() -> bool:
        total = tester.trial({**trial, "packets": 400, "duration_s": 0.02}).total
        return total is not None and total.received_pkts == total.offered_pkts > 0

    wait_for(forwards, 60, "the switch to forward")
    result = tester.trial(trial)
    assert result.ok, result.reason
    total = result.total
    assert total.received_pkts == total.offered_pkts > 0
    assert total.corrupt_pkts == total.reordered_pkts == total.duplicated_pkts == 0
    assert total.misrouted_pkts == 0
    return int(total.received_pkts)


def counted(switch: Running) -> dict[str, int]:
    counters = switch.counters()
    assert counters is not None
    ports: dict[str, int] = counters["dump-ports"]
    return ports


def kill_under_load(tester: ConvoyGen, switch: Running, pid: int) -> None:
    before = counted(switch)["rx pkts"]
    tester._process.say(SATURATION)
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
        assert result.total.received_pkts == result.total.offered_pkts > 0
        assert counted(switch)["rx pkts"] - before >= result.total.received_pkts
        polled = switch.switch.appctl("dpif-netdev/pmd-rxq-show")  # type: ignore[attr-defined]
        assert {port: polled.count(f"port: {port}-port") for port in ("left", "right")} == {
            "left": 2,
            "right": 2,
        }


def said_of(switch: Switch, port: PortAt) -> list[int]:
    """Return what the library says that it did for a guest, in all its connections that ended.

    Packets from it, frames, convoys; packets to it, convoys; lost, dropped; convoys shared.
    """
    text = output_of(switch.daemon)
    lines = re.findall(rf"convoy: vhost: {re.escape(port.address)}: (.*packets from.*)", text)
    each = [map(int, re.findall(r"\d+", line)) for line in lines]
    return [sum(numbers) for numbers in zip(*each, strict=True)] or [0] * 8


def test_frames_wait_for_packets_of_their_queue(setup: Setup):
    setup = replace(setup, back=(), options=setup.options | {"wait": "20us"})
    with SWITCH.start(setup) as switch:
        switch.ready(60)
        with guests(setup) as tester:
            # Both ways by in_port: a frame that another queue's packets were in would come back.
            assert_all_come(tester, rate_pps=400_000, packets=40_000, paths=["0>1", "1>0"])
        ovs: Switch = switch.switch  # type: ignore[attr-defined]
        for port in (setup.left, setup.right):
            wait_for(lambda port=port: said_of(ovs, port)[0], 20, "the guest to leave")
            packets, frames, convoys, *_, lost, _ = said_of(ovs, port)
            assert packets >= 20_000
            assert lost == 0
            # At 200,000/s some four packets come while one waits 20 us;
            # where the switch waits for its core, more.
            assert convoys > 1000
            assert frames < packets


def test_frames_of_several_guests_wait_together(tmp_path: Path):
    if (
        SWITCH.presence().missing
        or find("convoy-gen") is None
        or find("libconvoy_vhost.so") is None
    ):
        pytest.skip("Open vSwitch is not installed, or nothing is built: make setup build")
    ports = [PortAt("vhost-user", str(tmp_path / name)) for name in ("a", "b", "to")]
    (tmp_path / "switch").mkdir()
    tester_ports = [f"{SWITCH.tester_port(port, i)},ring=8192" for i, port in enumerate(ports)]
    words = f"{NEXT_HOP} wait=1000000 across=yes"
    before = ("env", f"LD_PRELOAD={find('libconvoy_vhost.so')}", f"CONVOY_VHOST={words}")
    with Switch(tmp_path / "switch") as switch:
        switch.start(SwitchConfig((CORES[0],)), before)
        switch.add_bridge(
            [vhost_user(f"port{i}", i, port.address) for i, port in enumerate(ports, 1)]
        )
        switch.add_rules(["actions=output:3"])
        with ConvoyGen(tester_ports, core=CORES[-1]) as tester:
            assert_all_come(tester, paths=["0>2", "1>2"])

        def have_left() -> bool:
            return all(said_of(switch, p)[i] > 0 for p, i in zip(ports, (0, 0, 3), strict=True))

        wait_for(have_left, 20, "guests to leave")
        a, b, to = (said_of(switch, port) for port in ports)
        assert a[0] >= 2000 <= b[0]
        assert to[3] >= 4000
        assert a[-1] + b[-1] > 0  # convoys with packets of both
        assert a[5] == b[5] == 0  # lost


OUTER = Outer(
    dst_mac="02:00:00:00:00:02", src_mac="02:00:00:00:00:01", src="192.0.2.1", dst="192.0.2.2"
)
STAMP_BYTES = 16  # at most: the tester's, over the end of a frame that it replays, or behind it


def packet(number: int, size: int) -> bytes:
    """Return an IPv4 packet, as convoys are: what one rule matches stays in order in a switch."""
    ip = b"\x45\0" + (size - 14).to_bytes(2) + b"\0\0\x40\0\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2"
    udp = b"\x10\0\x20\0" + (size - 34).to_bytes(2) + b"\0\0"
    head = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0" + ip + udp
    return (head + number.to_bytes(4) * 400)[:size]


@st.composite
def mixes(draw: Any) -> list[bytes]:
    """Return packets of a guest; those made of several look like convoys."""
    sizes = st.one_of(st.just(60), st.integers(60, 200), st.integers(60, 1514))
    alone = st.lists(sizes, min_size=1, max_size=1)
    few = st.lists(st.integers(60, 200), min_size=2, max_size=7)
    any_of = st.one_of(alone, alone, alone, few) if draw(st.booleans()) else alone
    shape = draw(st.lists(any_of, min_size=60, max_size=150))
    made = [[packet(8 * i + j, size) for j, size in enumerate(one)] for i, one in enumerate(shape)]
    return [encode(one, OUTER, nfi=7) if len(one) > 1 else one[0] for one in made]


def test_any_mix_comes_out_as_it_went_in(setup: Setup, switch: Running, tmp_path: Path):
    """From a guest through the switch into a capture, byte by byte and in order.

    What looks like a convoy arrives as the packet that it is.
    """
    read, written = tmp_path / "in.pcap", tmp_path / "out.pcap"
    into = f"""
ports:
  in: {{virtio-user: {setup.right.address}, mode: server}}
  out: {{pcap: {{write: {written}}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""
    plan = make_plan(loads(into, this_machine(), tmp_path), this_machine())
    replay = {"rate_pps": "max", "drain_s": 0.02, "tolerance": 1, "paths": ["0>0"]}
    replay["capture"] = {"file": str(read), "timing": "rate", "loops": 1}
    left = f"{SWITCH.tester_port(setup.left, 0)},ring=8192"
    with Node(plan.data) as node, ConvoyGen([left]) as tester:
        came = 0

        def send(mix: list[bytes]) -> list[bytes]:
            nonlocal came
            with RawPcapWriter(str(read), linktype=1) as writer:
                for one in mix:
                    writer.write(one)
            tester.trial(replay)
            before, came = came, came + len(mix)
            wait_for(lambda: node.counts()["accounting"]["sent"] >= came, 20, "all packets")
            return [data for data, _ in RawPcapReader(str(written))][before:]

        @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
        @given(mixes())
        def check(mix: list[bytes]) -> None:
            got = send(mix)
            assert len(got) == len(mix)
            for mine, one in zip(got, mix, strict=True):
                if len(mine) == len(one):
                    mine, one = mine[:-STAMP_BYTES], one[:-STAMP_BYTES]
                assert len(mine) - len(one) in range(2 * STAMP_BYTES + 1)
                assert mine[: len(one)] == one

        tried = 0

        def forwards() -> bool:
            nonlocal came, tried
            tried += 1
            with RawPcapWriter(str(read), linktype=1) as writer:
                writer.write(packet(tried, 200))
            tester.trial(replay)
            arrived = list(RawPcapReader(str(written)))
            came = len(arrived)
            return arrived[-1:] != [] and arrived[-1][0][:90] == packet(tried, 200)[:90]

        wait_for(forwards, 30, "the switch to forward")
        check()
        assert counted(switch)["tx pkts"] >= came
