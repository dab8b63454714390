# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our node as a device whose workers have packets in turn: one flow is dealt out, and reordered."""

from pathlib import Path

import pytest

from convoy.dut.addresses import DPORT, FEW, LEFT_MAC
from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.functions import router
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

TRIAL = {
    "rate_pps": 100_000,
    "duration_s": 0.1,
    "pacing": {"burst_pkts": 200},
    "drain_s": 5,
    "tolerance": 1,
    "flows": {
        "count": 1,
        "dst_mac": LEFT_MAC,
        "src_ip": "198.18.0.0/24",
        "dst_ip": str(FEW),
        "dst_port": str(DPORT),
    },
}


@pytest.mark.skipif(
    find("convoyd") is None or find("convoy-gen") is None, reason="not built: make build"
)
@pytest.mark.skipif(CORES[0] == CORES[-1], reason="needs two cores")
@pytest.mark.parametrize("spread", ["rss", "round-robin"])
def test_one_flow_is_one_worker_s_or_reordered_by_two(tmp_path: Path, spread: str):
    left, right = (PortAt("vhost-user", str(tmp_path / side), queues=2) for side in ("l", "r"))
    options = {"idle": "sleep", "spread": spread}
    setup = Setup((router(10),), left, right, (CORES[0], CORES[-1]), tmp_path, options=options)
    dut = device("convoy")
    assert dut.cannot(setup) == ""
    assert dut.keeps_order(setup) is (spread == "rss")
    attached = [f"{dut.tester_port(port, i)},ring=1024" for i, port in enumerate((left, right))]
    with dut.start(setup) as running, ConvoyGen(attached) as tester:
        running.ready(60)

        def reordered() -> bool:
            total = tester.trial(TRIAL).total
            assert total is not None
            assert (total.duplicated_pkts, total.corrupt_pkts, total.misrouted_pkts) == (0, 0, 0)
            return total.reordered_pkts > 0

        if spread == "rss":
            assert not any(reordered() for _ in range(5))
        else:
            wait_for(reordered, 60, "the workers to pass each other")
        counters = running.counters()
    assert counters is not None
    worked = [worker["busy_cycles"] > 0 for worker in counters["workers"]]
    assert worked.count(True) == (1 if spread == "rss" else 2)
