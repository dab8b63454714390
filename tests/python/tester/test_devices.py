# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports that are DPDK devices: tester to tester, or with dpdk-testpmd between."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convoy.tester.convoy_gen import ConvoyGen

from .conftest import CORES, Device
from .vhost import assert_all_came_back, until_it_forwards

GENTLE = {"rate_pps": 2000, "duration_s": 0.2, "drain_s": 5, "tolerance": 1}


def test_memif_to_memif(tmp_path: Path):
    socket = tmp_path / "memif"
    ports = [
        f"dev:net_memif{i},role={r},socket={socket}" for i, r in enumerate(("server", "client"))
    ]
    with ConvoyGen(ports) as tester:
        for traffic in ({}, {"size": "imix", "paths": ["0>1", "1>0"]}):
            assert_all_came_back(tester.trial(GENTLE | traffic))


def test_memif_without_a_peer_waits_and_says_so(tmp_path: Path):
    port = f"dev:net_memif0,role=server,socket={tmp_path / 'memif'}"
    with (
        ConvoyGen([port], attach_timeout_s=0.2) as tester,
        pytest.raises(Exception, match="link is down"),
    ):
        tester.wait_ready()


def test_virtio_user_through_a_device(device: Callable[..., Device]):
    running = device()
    running.start()
    ports = [
        f"dev:net_virtio_user{i},path={path},queue_size=1024"
        for i, path in enumerate(running.sockets)
    ]
    with ConvoyGen(ports, core=CORES[-1]) as tester:
        until_it_forwards(tester)
        assert_all_came_back(tester.trial(GENTLE))


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    """A pair of network interfaces of our own."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root makes network interfaces")
    pair = (f"cvg{os.getpid() % 10**6}a", f"cvg{os.getpid() % 10**6}b")
    made = subprocess.run(
        ["ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1]],
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("no veth here")
    for name in pair:
        # Without IPv6 nobody else sends on them.
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield pair
    subprocess.run(["ip", "link", "del", pair[0]], check=True)


def test_af_packet(veth: tuple[str, str]):
    with ConvoyGen([f"dev:net_af_packet{i},iface={name}" for i, name in enumerate(veth)]) as tester:
        assert_all_came_back(tester.trial(GENTLE | {"size": 1518}))
