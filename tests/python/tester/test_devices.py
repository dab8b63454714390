# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports that are DPDK devices: tester to tester, or with dpdk-testpmd between."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from convoy.errors import ConvoyError
from convoy.host.node import Node
from convoy.host.programs import need
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES
from port.plans import joined

from .conftest import Device
from .vhost import assert_all_came_back, until_it_forwards

GENTLE = {"rate_pps": 2000, "packets": 400, "duration_s": 30, "drain_s": 5, "tolerance": 1}


def test_memif_to_memif(tmp_path: Path):
    path = f"{tmp_path}/"  # each port's text is its own: the same socket by two names
    with ConvoyGen([f"memif:{path}s,server", f"memif:{path}./s"]) as tester:
        for traffic in ({}, {"size": "imix", "paths": ["0>1", "1>0"]}):
            assert_all_came_back(tester.trial(GENTLE | traffic))


def test_memif_without_a_peer_waits_and_says_so(tmp_path: Path):
    port = f"memif:{tmp_path / 'memif'},server"
    with (
        ConvoyGen([port], attach_timeout_s=0.2) as tester,
        pytest.raises(ConvoyError, match="link is down"),
    ):
        tester.wait_ready()


def test_virtio_user_through_a_device(device: Callable[..., Device]):
    running = device()
    running.start()
    with ConvoyGen([f"virtio-user:{path}" for path in running.sockets], core=CORES[-1]) as tester:
        until_it_forwards(tester)
        assert_all_came_back(tester.trial(GENTLE))


def test_af_packet(veth: tuple[str, str]):
    with ConvoyGen([f"af_packet:{name}" for name in veth]) as tester:
        assert_all_came_back(tester.trial(GENTLE | {"size": 1518}))


def test_a_slow_interface_has_a_full_queue(slow_wire: tuple[str, str]):
    with ConvoyGen([f"af_packet:{name}" for name in slow_wire]) as tester:
        fast = {"rate_pps": 200_000, "duration_s": 0.2, "drain_s": 5, "on_full": "drop"}
        total = tester.trial(fast | {"tolerance": 1}).total
    # 17,000 packets a second go through. What the interface does not take is lost at once, rather
    # than that the tester waits for it (as for what is due while the tester itself is kept away).
    assert total is not None
    assert total.refused_pkts > 10_000
    assert total.received_pkts > 256


def test_bursts_find_room():
    # 40 of 64 buffers are taken by one burst, the next one needs more than are left.
    bursts = {"rate_pps": 20_000, "duration_s": 0.2, "pacing": {"burst_pkts": 40}}
    with ConvoyGen(["dev:net_ring0"]) as tester:
        total = tester.trial(bursts | {"on_full": "drop", "tolerance": 1}).total
    assert total is not None
    assert total.refused_pkts == 0
    assert total.sent_pkts > 1_000


def links(folder: Path, server: bool) -> dict[str, dict[str, str]]:
    """Two memif ports of a node that forwards between them."""
    role = "server" if server else "client"
    return {
        name: {"kind": "memif", "role": role, "path": str(folder / name)} for name in ("a", "b")
    }


@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
def test_the_peer_of_a_memif_is_killed_and_comes_back(tmp_path: Path, server: bool):
    ways = [("a", "b"), ("b", "a")]
    plan = joined(links(tmp_path, not server), ways, CORES[0])
    options = ",server" if server else ""
    ports = [f"memif:{tmp_path / name}{options}" for name in ("a", "b")]
    with ConvoyGen(ports, core=CORES[-1], attach_timeout_s=60) as tester:
        for _ in range(3):
            with Node(plan) as node:
                until_it_forwards(tester)
                assert_all_came_back(tester.trial(GENTLE))
                tester._process.say('{"rate_pps": 10000, "duration_s": 20, "tolerance": 1}')
                node.process.signal(9)
                result = tester._read(90, "the trial's end")
                assert (result["ok"], result["reason_code"]) == (False, "peer_gone")
                assert result["duration_ns"] < 19e9


@pytest.mark.parametrize("kind", ["ring", "memif", "virtio-user", "af_packet"])
def test_tester_to_tester(kind: str):
    if kind == "af_packet" and os.getuid() != 0:
        pytest.skip("only root makes network namespaces: sudo make check")
    done = subprocess.run(
        [need("convoy-gen"), f"--self-test={kind}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kind"] == kind
    assert report["baseline_pps"] > 0
    assert (report["baseline_both_paths_pps"] is None) == (kind == "ring")
    assert report["noise_latency"]["count"] > 0
    assert report["reflector_core"] is None


def test_what_the_machine_was_like_is_known_of_each_trial():
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    with ConvoyGen(["dev:net_ring0"], core=CORES[-1], device_core=CORES[0]) as tester:
        probes = [tester.trial(GENTLE).probe for _ in range(3)]
    assert all(probe is not None and probe.device_core == CORES[0] for probe in probes)
    # On a busy machine one look may fail; not all of them.
    known = [p for p in probes if p.before_ns is not None]
    assert known and all(p.before_ns > 1 for p in known)
    assert all(p.tester_work_ns > 50 and p.device_work_ns > 50 for p in known)


def test_the_ports_say_which_self_test():
    with ConvoyGen(["dev:net_ring0"], self_test=True) as tester:
        assert tester.self_test is not None and tester.self_test.model_dump()["kind"] == "ring"
        assert tester.trial(GENTLE).baseline_pps == tester.baseline_pps
