# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Processes that share a core name the threads that give it to each other, and what each costs."""

import os
from pathlib import Path

import pytest

from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.functions import layer2, router
from convoy.host.priority import VARIABLE, uninterrupted
from cores import CORES


def process_of(thread: int) -> int:
    status = Path(f"/proc/{thread}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line[:5] == "Tgid:")


@pytest.mark.skipif(
    bool(device("convoy").presence().missing), reason=device("convoy").presence().missing
)
@pytest.mark.parametrize(("deployment", "threads"), [("process", 2), ("inline", 0)])
def test_each_process_has_one(deployment, threads, tmp_path: Path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    ports = [PortAt("vhost-user", str(tmp_path / side)) for side in ("l", "r")]
    path = (router(10), layer2())
    setup = Setup(path, ports[0], ports[1], (CORES[-1],), tmp_path, deployment=deployment)
    with device("convoy").start(setup) as running:
        running.ready(60)
        costs = running.part_costs()
        assert list(costs) == ["1: router", "2: l2fwd"][:threads]
        whole = running.cost()
        assert not costs or sum(one.busy_cycles for one in costs.values()) <= whole.busy_cycles
        result = running.cooperative_threads()
        assert len(result) == threads
        assert sorted(process_of(thread) for thread in result) == sorted(
            running.processes()[:threads]
        )
        assert {os.sched_getscheduler(thread) for thread in result} <= {os.SCHED_OTHER}
        with uninterrupted(result, 0.1) as raised:
            assert raised == (threads > 0 and os.geteuid() == 0)
            kind = os.SCHED_FIFO if raised else os.SCHED_OTHER
            assert [os.sched_getscheduler(thread) for thread in result] == [kind] * threads
        assert {os.sched_getscheduler(thread) for thread in result} <= {os.SCHED_OTHER}
