# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Processes that share a core name the threads that give it to each other."""

import os
from pathlib import Path

import pytest

from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.functions import layer2, router
from convoy.host.priority import uninterrupted

from .wire import CORES


@pytest.mark.skipif(
    bool(device("convoy").presence().missing), reason=device("convoy").presence().missing
)
@pytest.mark.parametrize(("deployment", "threads"), [("process", 2), ("inline", 0)])
def test_each_process_has_one(deployment, threads, tmp_path: Path):
    ports = [PortAt("vhost-user", str(tmp_path / side)) for side in ("l", "r")]
    path = (router(10), layer2())
    setup = Setup(path, ports[0], ports[1], (CORES[-1],), tmp_path, deployment=deployment)
    with device("convoy").start(setup) as running:
        running.ready(60)
        found = running.cooperative_threads()
        assert len(found) == threads
        with uninterrupted(found, 0.1) as raised:
            assert raised or os.geteuid() or not found
            for thread in found if raised else ():
                assert os.sched_getscheduler(thread) == os.SCHED_FIFO
        assert {os.sched_getscheduler(thread) for thread in found} <= {os.SCHED_OTHER}
