# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices that are configured to aggregate get convoys, and send some."""

from pathlib import Path

import pytest

from convoy.dut.addresses import DPORT, FEW, LEFT_MAC
from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.functions import macswap, router
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

TOGETHER = 8
TRIAL = {
    "rate_pps": 20_000,
    "duration_s": 0.1,
    "drain_s": 20,  # ends when all came
    "tolerance": 1,
    "convoys": TOGETHER,
    "flows": {
        "count": 10,
        "dst_mac": LEFT_MAC,
        "src_ip": "198.18.0.0/24",
        "dst_ip": str(FEW),
        "dst_port": str(DPORT),
    },
}


@pytest.mark.skipif(find("convoy-gen") is None, reason="convoy-gen is not built: make build")
@pytest.mark.parametrize(
    ("name", "path", "convoys", "kind"),
    [
        ("convoy", (router(10),), "native", "vhost-user"),
        ("testpmd", (), "ethdev-view", "vhost-user"),
        ("testpmd", (macswap(),), "ethdev-view", "virtio-user"),
        ("testpmd", (), "ethdev-copy", "vhost-user"),
        ("ovs-dpdk", (), "vhost", "vhost-user"),
    ],
)
def test_convoys_come_and_go(name, path, convoys, kind, tmp_path: Path):
    dut = device(name)
    if dut.presence().missing:
        pytest.skip(dut.presence().missing)
    ports = [PortAt(kind, str(tmp_path / side)) for side in ("l", "r")]
    setup = Setup(path, ports[0], ports[1], (CORES[-1],), tmp_path, options={"convoys": convoys})
    assert dut.cannot(setup) == ""
    more = ",ring=4096" if kind == "vhost-user" else ""
    attached = [f"{dut.tester_port(port, i)}{more}" for i, port in enumerate(ports)]
    with dut.start(setup) as running, ConvoyGen(attached) as tester:
        running.ready(60)

        def all_came() -> bool:
            total = tester.trial(TRIAL | {"drain_s": 1}).total  # the first are lost
            return total is not None and total.received_pkts == total.offered_pkts > 0

        wait_for(all_came, 60, f"{name} to forward all")
        # What guests of a switch send in one go is made convoys there.
        guests = name == "ovs-dpdk"
        result = tester.trial(TRIAL | {"convoys": 1 if guests else TOGETHER})
        assert result.ok, result.reason
        total, together = result.total, result.convoys
        assert total.lost_pkts == total.corrupt_pkts == 0
        assert together.sent_frames == (0 if guests else total.offered_pkts / TOGETHER)
        # The switch gives guests packets.
        assert (together.received_pkts > 0) == (not guests)
        cost = running.cost()
        assert cost is None or cost.packets >= total.received_pkts
        assert any("aggregated" in note or "convoys" in note for note in running.notes)
