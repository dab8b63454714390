# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""kill -9 the tester or the node while traffic flows through three functions: the other goes on."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen

DEADLINE_S = 60.0
EASY = {"rate_pps": 2000, "duration_s": 0.2, "drain_s": 1, "tolerance": 1}
LONG = '{"rate_pps": 2000, "duration_s": 30, "tolerance": 1}'


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    """Return firewall, router and l2fwd between two vhost-user servers."""
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": n, "kind": "vhost-user", "path": str(tmp_path / f"{n}.sock")}
            for n in ("left", "right")
        ],
        "functions": [
            {"name": "fw", "type": "firewall", "config": {"default": "allow"}},
            {
                "name": "rtr",
                "type": "router",
                "config": {
                    "routes": [{"prefix": "0.0.0.0/0", "via": "192.0.2.1", "dev": "right"}],
                    "neighbours": [{"address": "192.0.2.1", "mac": "02:00:00:00:00:01"}],
                },
            },
            {"name": "mac", "type": "l2fwd", "config": {"mode": "rewrite"}},
        ],
        "chains": [{"name": "all", "match": {}, "in": "left", "out": "right"}],
        "stages": [
            {
                "worker": 0,
                "chain": "all",
                "source": {"port": "left"},
                "path": ["fw", "rtr", "mac"],
                "sink": {"port": "right"},
            }
        ],
        "workers": [{"core": 0, "idle": "sleep"}],
    }


@pytest.fixture(autouse=True)
def _tester_is_built() -> Iterator[None]:
    if find("convoy-gen") is None:
        pytest.skip("convoy-gen is not built: make build")
    yield


def _ports(plan: dict[str, Any]) -> list[str]:
    return [f"vhost-user:{port['path']}" for port in plan["ports"]]


def _received(node: Node) -> int:
    return int(node.counts()["ports"]["left"]["rx_packets"])


def _until_all_comes_through(tester: ConvoyGen) -> None:
    def all_came() -> bool:
        total = tester.trial(EASY).total
        return total is not None and total.received_pkts == total.sent_pkts > 0

    wait_for(all_came, DEADLINE_S, "a trial without loss")


def test_the_tester_is_killed(plan):
    with Node(plan) as node:
        for life in range(3):
            with ConvoyGen(_ports(plan), attach_timeout_s=DEADLINE_S) as tester:
                _until_all_comes_through(tester)
                before = _received(node)
                tester._process.say(LONG)
                wait_for(lambda at=before: _received(node) > at, DEADLINE_S, "traffic")
                tester._process.signal(signal.SIGKILL)
                tester._process.wait(DEADLINE_S)
            output = ["port left: peer gone", "port right: peer gone"]
            wait_for(
                lambda lines=output, times=life + 1: all(
                    node.process.stderr.text().splitlines().count(line) == times for line in lines
                ),
                DEADLINE_S,
                "the node to say that its peer is gone",
            )
        counts = node.stop()
    accounting = counts["accounting"]
    assert accounting["received"] == accounting["sent"] + accounting["dropped"] + accounting["held"]
    assert counts["functions"]["mac"]["packets"] == counts["functions"]["fw"]["packets"] > 0


def test_the_node_is_killed(plan):
    with ConvoyGen(_ports(plan), attach_timeout_s=DEADLINE_S) as tester:
        for _ in range(3):
            with Node(plan) as node:
                _until_all_comes_through(tester)
                before = _received(node)
                tester._process.say(LONG)
                wait_for(lambda at=before, n=node: _received(n) > at, DEADLINE_S, "traffic")
                node.process.signal(signal.SIGKILL)
                node.process.wait(DEADLINE_S)
            result = tester._read(DEADLINE_S, "the trial's end")
            assert (result["ok"], result["reason_code"]) == (False, "peer_gone")
