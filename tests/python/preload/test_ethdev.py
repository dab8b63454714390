# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Convoys in, convoys out, and a program between that knows nothing of them."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from convoy.dut.addresses import DPORT, FEW, LEFT_MAC
from convoy.dut.base import PortAt, Setup
from convoy.dut.convoy import plan
from convoy.dut.functions import router
from convoy.dut.testpmd import NEXT_HOP
from convoy.host.folders import dpdk_folder
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from convoy.host.programs import find, need
from convoy.results.trial_result import ConvoyCounts, TrialResult
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .conftest import Vnf

# So little at a time that a busy machine loses nothing: of every one of these, all must come back.
GENTLE = {"rate_pps": 4000, "duration_s": 0.2, "drain_s": 5, "tolerance": 1}
TO_TESTER = ["--next-hop", "dst_mac=02:00:00:00:00:09,dst=192.0.2.9,src=192.0.2.8"]
SOME_FLOWS = {"flows": {"count": 50, "order": "shuffle"}}


def until_it_forwards(tester: ConvoyGen) -> None:
    # It takes a moment from its start to its first packet, and may drop until then.
    def forwards() -> bool:
        little = {"rate_pps": 1000, "duration_s": 0.05, "tolerance": 1, "convoys": 1}
        total = tester.trial(little).total
        return total is not None and total.received_pkts == total.offered_pkts > 0

    wait_for(forwards, 60, "the program to forward")


def assert_all_back(result: TrialResult) -> ConvoyCounts:
    total, convoys = result.total, result.convoys
    assert total is not None and convoys is not None
    assert total.received_pkts == total.sent_pkts > 0, result
    assert total.duplicated_pkts == total.reordered_pkts == 0
    assert total.corrupt_pkts == total.misrouted_pkts == 0
    assert result.foreign_pkts == 0
    assert convoys.refused_frames == {}
    return convoys


def vhost_devices(folder: Path) -> tuple[list[str], list[str]]:
    """Return the program's devices and the tester's ports."""
    sockets = [folder / "a", folder / "b"]
    return (
        [f"net_vhost{i},iface={path},queues=1" for i, path in enumerate(sockets)],
        [f"vhost-user:{path}" for path in sockets],
    )


@contextmanager
def halting(process: Process) -> Iterator[None]:
    """Stop a process for 20 ms now and then, so that frames wait for it."""
    ends = threading.Event()

    def halt() -> None:
        while not ends.wait(0.02):
            process.signal(signal.SIGSTOP)
            ends.wait(0.02)
            process.signal(signal.SIGCONT)

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def assert_convoys_survive(tester: ConvoyGen, program: Vnf, mac: str) -> None:
    """Send convoys of all kinds to a MAC address, then packets."""

    def convoys(packets: int) -> dict[str, Any]:
        return {"convoys": {"packets": packets, "dst_mac": mac}}

    whole = assert_all_back(tester.trial(GENTLE | SOME_FLOWS | convoys(22)))
    assert whole.sent_frames > 0
    assert whole.received_pkts == whole.sent_frames * 22
    mixed = assert_all_back(tester.trial(GENTLE | SOME_FLOWS | convoys(9) | {"size": "imix"}))
    assert mixed.received_frames > 0
    with halting(program.process):  # so that there is something to join
        joined = assert_all_back(tester.trial(GENTLE | SOME_FLOWS | convoys(2)))
    assert max(packets for packets, _ in joined.received_by_packets) > 2
    assert_all_back(tester.trial(GENTLE | SOME_FLOWS | {"convoys": 1, "size": 900}))


def exchange(
    tester: ConvoyGen, program: Vnf, mac: str = "02:00:00:00:00:02"
) -> dict[int, dict[str, Any]]:
    """Send all kinds of traffic through it; return what the library counted, by port.

    The program ends first: some drivers do not survive their peers.
    """
    until_it_forwards(tester)
    assert_convoys_survive(tester, program, mac)
    counts = program.stop()
    for port in counts.values():
        sent = port["tx"]
        assert port["rx"]["refused"] == {}
        assert port["rx"]["no_buffer"] == sent["no_buffer"] == 0
        assert sent["pkts"] == sum(sent[how] for how in ("in_place", "repacked", "unaggregated"))
    return counts


@pytest.mark.parametrize(
    ("mode", "forward"), [("view", "macswap"), ("view", "5tswap"), ("copy", "mac")]
)
def test_over_vhost_user(vnf: Callable[..., Vnf], tmp_path: Path, mode: str, forward: str):
    devices, ports = vhost_devices(tmp_path)
    program = vnf(devices, forward, ["--mode", mode, *TO_TESTER])
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        counts = exchange(tester, program)
    assert (counts[0]["rx"]["viewed"] > 0) == (mode == "view")
    assert (counts[0]["rx"]["copied"] > 0) == (mode == "copy")
    assert (counts[1]["tx"]["in_place"] > 0) == (mode == "view")


@pytest.mark.parametrize("kind", ["virtio_user", "memif"])
def test_over_other_drivers(vnf: Callable[..., Vnf], tmp_path: Path, kind: str):
    sockets = [tmp_path / "a", tmp_path / "b"]
    ours, theirs = {
        "virtio_user": (
            "net_vhost{},iface={},queues=1",
            "net_virtio_user{},path={},queue_size=1024",
        ),
        "memif": (
            "net_memif{},role=server,socket={},socket-abstract=no",
            "net_memif{},role=client,socket={},socket-abstract=no",
        ),
    }[kind]
    ports = ["dev:" + ours.format(i, path) for i, path in enumerate(sockets)]
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        wait_for(lambda: all(path.exists() for path in sockets), 60, "the tester's sockets")
        program = vnf([theirs.format(i, path) for i, path in enumerate(sockets)], "io", TO_TESTER)
        assert exchange(tester, program)[1]["tx"]["in_place"] > 0


@pytest.mark.alone  # a socket keeps little of what comes while testpmd waits for its core
def test_over_af_packet(vnf: Callable[..., Vnf], veth: tuple[str, str]):
    with ConvoyGen([f"dev:net_af_packet0,iface={veth[1]}"], core=CORES[-1]) as tester:
        # The driver draws a number from its process id, which now and then is taken. testpmd goes
        # on without the port.
        for _ in range(5):
            program = vnf([f"net_af_packet0,iface={veth[0]}"], "macswap")
            output = program.process.stderr.wait(
                lambda line: "convoy: " in line or "No probed ethernet devices" in line, 60
            )
            if output is not None and "convoy: " in output:
                break
            program.close()
        mac = Path(f"/sys/class/net/{veth[0]}/address").read_text().strip()
        # testpmd throws away what comes before it forwards. Then the samples that the library
        # copies, and whose flags testpmd overwrites, would be among what must come back in convoys.
        until_it_forwards(tester)
        with pytest.raises(AssertionError):  # convoys to somebody else: nobody to send back to
            assert_convoys_survive(tester, program, "02:00:00:00:00:66")
        assert exchange(tester, program, mac)[0]["tx"]["in_place"] > 0


def test_what_leaves_by_another_port_goes_singly(vnf: Callable[..., Vnf], tmp_path: Path):
    """Without a next hop: whoever sent convoys to one port is nobody to another."""
    devices, ports = vhost_devices(tmp_path)
    program = vnf(devices)
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        until_it_forwards(tester)
        convoys = assert_all_back(tester.trial(GENTLE | SOME_FLOWS | {"convoys": 22}))
    assert convoys.sent_frames > 0
    assert convoys.received_frames == 0
    counts = program.stop()
    assert counts[0]["rx"]["convoys"] > 0
    assert counts[1]["tx"]["convoys"] == 0


def test_a_next_hop_aggregates_what_came_unaggregated(vnf: Callable[..., Vnf], tmp_path: Path):
    devices, ports = vhost_devices(tmp_path)
    next_hop = "dst_mac=02:00:00:00:00:09,dst=192.0.2.9,src=192.0.2.8,nfi=5,vlan=7"
    program = vnf(devices, "io", ["--next-hop", next_hop])
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        until_it_forwards(tester)
        burst = {"convoys": 1, "pacing": {"burst_pkts": 32}}
        convoys = assert_all_back(tester.trial(GENTLE | SOME_FLOWS | burst))
    assert convoys.sent_frames == 0
    assert convoys.received_frames > 0
    assert program.stop()[1]["tx"]["repacked"] > 0


def counted(folder: Path) -> dict[str, Any]:
    """Return what the library of a running program counted, or nothing before it can be asked."""
    place = next((folder / "dpdk" / "test").glob("dpdk_telemetry.v2*"), None)
    if place is None:
        return {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as telemetry:
        try:
            telemetry.connect(str(place))
        except ConnectionRefusedError:  # that of one that was killed
            return {}
        telemetry.recv(1024)
        telemetry.send(b"/convoy/preload")
        answer: dict[str, Any] = json.loads(telemetry.recv(65536))
    return dict(json.loads(answer["/convoy/preload"]))


def test_is_killed_under_load_and_comes_back(vnf: Callable[..., Vnf], tmp_path: Path):
    devices, ports = vhost_devices(tmp_path)

    def loaded() -> bool:
        seen = counted(tmp_path).get("ports") or [{"rx": {"convoys": 0}}]
        return bool(seen[0]["rx"]["convoys"] > 1_000)

    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        killed = vnf(devices, "io", TO_TESTER)
        until_it_forwards(tester)
        tester._process.say('{"rate_pps": "max", "duration_s": 3, "convoys": 22, "tolerance": 1}')
        wait_for(loaded, 60, "convoys to come")
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.process.wait(60)  # it gives its memory back first, and then its locks
        assert tester._read(90, "the end of the trial")["total"]["lost_pkts"] > 0
        for path in (tmp_path / "a", tmp_path / "b"):
            path.unlink()
        program = vnf(devices, "io", TO_TESTER)
        until_it_forwards(tester)
        assert assert_all_back(tester.trial(GENTLE | {"convoys": 22})).received_frames > 0
    assert program.stop()[1]["tx"]["in_place"] > 0


def test_says_what_it_did(vnf: Callable[..., Vnf], tmp_path: Path):
    devices, ports = vhost_devices(tmp_path)
    program = vnf(devices)
    hooked = program.process.stderr.wait(lambda line: "port 1 (net_vhost1)" in line, 60)
    assert hooked is not None
    assert "mode auto" in hooked
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=120) as tester:
        until_it_forwards(tester)
        tester.trial(GENTLE | {"convoys": 22})
        counts = counted(tmp_path)
    assert counts["ports"][0]["rx"]["convoys"] > 0
    program.stop()
    assert "convoy: ethdev: port 1: received" in program.process.stderr.text()


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
def test_under_our_own_node_on_dpdks_ports(tmp_path: Path):
    sockets = [tmp_path / side for side in "lr"]
    ends = [PortAt("vhost-user", str(path)) for path in sockets]
    configuration = plan(Setup((router(10),), ends[0], ends[1], (CORES[0],), tmp_path))
    for port in configuration["ports"]:
        port |= {"datapath": "dpdk", "trusted": True}
    under = (
        "env",
        f"LD_PRELOAD={need('libconvoy_ethdev.so')}",
        f"CONVOY_ETHDEV=mode=view {NEXT_HOP}",
    )
    routed = {"count": 50, "dst_mac": LEFT_MAC, "dst_ip": str(FEW), "dst_port": str(DPORT)}
    with (
        Node(configuration, wrapper=under, environment=dpdk_folder(tmp_path)) as node,
        ConvoyGen([f"vhost-user:{path}" for path in sockets], core=CORES[-1]) as tester,
    ):

        def routes() -> bool:
            total = tester.trial(GENTLE | {"convoys": 1, "flows": routed}).total
            return total is not None and total.received_pkts == total.offered_pkts > 0

        wait_for(routes, 60, "the node to forward")
        before = node.counts()["ports"]["right"]["tx_packets"]
        trial = tester.trial(GENTLE | {"convoys": 22, "flows": routed})
        assert assert_all_back(trial).received_frames > 0
        sent = node.counts()["ports"]["right"]["tx_packets"] - before
        assert sent == trial.total.received_pkts
