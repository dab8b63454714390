# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our node as a device whose queues go to workers by load."""

from dataclasses import replace
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
    "rate_pps": 20_000,
    "duration_s": 0.2,
    "drain_s": 5,
    "tolerance": 1,
    "flows": {
        "count": 64,
        "dst_mac": LEFT_MAC,
        "src_ip": "198.18.0.0/24",
        "dst_ip": str(FEW),
        "dst_port": str(DPORT),
    },
}


@pytest.mark.skipif(
    find("convoyd") is None or find("convoy-gen") is None, reason="not built: make build"
)
def test_one_worker_is_enough_where_there_is_little_to_do(tmp_path: Path):
    left, right = (PortAt("vhost-user", str(tmp_path / side), queues=2) for side in ("l", "r"))
    options = {"idle": "sleep", "scale": "auto"}
    setup = Setup((router(10),), left, right, (CORES[0], CORES[-1]), tmp_path, options=options)
    dut = device("convoy")
    assert dut.cannot(setup) == ""
    assert "scale=fixed|auto" in dut.cannot(replace(setup, options={"scale": "always"}))
    attached = [f"{dut.tester_port(port, i)},ring=1024" for i, port in enumerate((left, right))]
    with dut.start(setup) as running, ConvoyGen(attached) as tester:
        running.ready(60)

        def one_has_all() -> bool:
            total = tester.trial(TRIAL).total
            assert total is not None
            counters = running.counters()
            assert counters is not None
            busy = [len(worker["queues"]) for worker in counters["workers"]]
            return total.received_pkts == total.offered_pkts > 0 and 0 in busy

        wait_for(one_has_all, 60, "both queues to be one worker's")
