# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""kill -9 a node with a stateful firewall: the next one forwards before all flows came back."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from convoy.client import Client
from convoy.host.programs import need
from convoy.tester.convoy_gen import ConvoyGen

from .service_manager import ServiceManager
from .test_flow_store import manager
from .test_handover import SOON_S, runtime_folder
from .test_handover_flows import PORTS, on_workers, plan, tester, totals

FLOWS = 60_000
OUT = PORTS | {"count": FLOWS, "src_ip": "10.0.0.0/16", "dst_ip": "198.51.100.7"}
BACK = PORTS | {"count": FLOWS, "src_ip": "198.51.100.7", "dst_ip": "10.0.0.0/16"}
ALL = {"packets": FLOWS, "rate_pps": 100_000, "duration_s": 20, "drain_s": 5, "tolerance": 1}

__all__ = ["manager", "plan", "runtime_folder", "tester"]
pytestmark = pytest.mark.alone


class Process:
    """A convoyd of a service, by the events that it prints."""

    def __init__(self, manager: ServiceManager, plan: Path) -> None:
        """Start it, with what the service manager kept."""
        self._process = subprocess.Popen(
            [*manager.launch(), need("convoyd"), "--keep-flows", plan],
            text=True, env=os.environ | manager.environment, stdout=subprocess.PIPE,
        )  # fmt: skip

    def until(self, name: str) -> dict[str, Any]:
        """Return an event, when it comes."""
        assert self._process.stdout is not None
        event: dict[str, Any] = {}
        while event.get("event") != name:
            event = json.loads(self._process.stdout.readline())
        return event

    def end(self, number: int) -> int:
        """End it by a signal. Returns its exit code."""
        self._process.send_signal(number)
        self._process.communicate(timeout=SOON_S)
        return self._process.returncode


def flows_of(ready: dict[str, Any]) -> dict[str, Any]:
    with Client(Path(ready["read"])) as client:
        return dict(client.counts()["flows"]["fw"])


def denied_by(ready: dict[str, Any]) -> int:
    with Client(Path(ready["read"])) as client:
        return int(client.counts()["functions"]["fw"]["drops"]["default_denied"])


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_find_their_flows_whenever_they_come(
    plan: dict[str, Any],
    tester: ConvoyGen,
    manager: ServiceManager,
    runtime_folder: Path,
    tmp_path: Path,
    workers: int,
):
    file = tmp_path / "plan.json"
    limits = {"flows": {"max": FLOWS + 1024 * workers, "max_ipv6": 64}}
    file.write_text(json.dumps(on_workers(plan, workers) | limits))
    process = Process(manager, file)
    ready = process.until("ready")
    assert ready["flows"] | {"ms": 0} == {"restored": 0, "lost": 0, "ms": 0}
    for _ in range(20):
        totals(tester, ALL | {"paths": ["0>1"], "flows": OUT})
        if flows_of(ready)["flows_ipv4"] == FLOWS:
            break
    manager.settle()
    for _ in range(3):
        process.end(signal.SIGKILL)
        process = Process(manager, file)
        process.until("forwarding")
        process.end(signal.SIGKILL)  # while flows come back: they are kept all the same
        manager.settle()
        process = Process(manager, file)
        process.until("forwarding")
        totals(tester, ALL | {"paths": ["1>0"], "flows": BACK})
        ready = process.until("ready")
        assert ready["flows"] | {"ms": 0} == {"restored": FLOWS, "lost": 0, "ms": 0}
        flows = flows_of(ready)
        assert (flows["flows_ipv4"], flows["created"]) == (FLOWS, 0)
        assert (flows["invalidated"], sum(flows["drops"].values())) == (0, 0)
        assert denied_by(ready) == 0
        manager.settle()
    # What nobody asked for is refused.
    totals(tester, ALL | {"paths": ["1>0"], "packets": 64, "flows": BACK | {"dst_port": 6000}})
    assert denied_by(ready) == 64
    assert process.end(signal.SIGTERM) == 0
