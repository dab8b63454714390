# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy handover: flows go over with their node: answers of those that are known still pass."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.client import Client
from convoy.host.counts import RunningNode
from convoy.host.handover import HandedOver, hand_over
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .test_handover import (
    SOON_S,
    counts_of,
    ended,
    plan_of,
    runtime_folder,
)

HANDOVERS = int(os.environ.get("CONVOY_HANDOVERS", "5"))
FLOWS = 1024
OUT = {"count": FLOWS, "src_ip": "10.0.0.0/22", "dst_ip": "198.51.100.7"}
BACK = {"count": FLOWS, "src_ip": "198.51.100.7", "dst_ip": "10.0.0.0/22"}
PORTS = {"src_port": 5000, "dst_port": 5000}
OPEN = {"packets": FLOWS, "rate_pps": 20000, "duration_s": 5, "drain_s": 1, "tolerance": 1}
ANSWER = {"rate_pps": 5000, "duration_s": 0.5, "drain_s": 10, "tolerance": 1}
FEW = {"packets": 64, "rate_pps": 5000, "duration_s": 1, "drain_s": 0.3, "tolerance": 1}

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.alone


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    """A stateful firewall between two guests, which lets flows begin on the left only."""
    config = {
        "stateful": True,
        "default": "deny",
        "rules": [{"action": "allow", "src": "10.0.0.0/8", "dst": "198.51.100.0/24"}],
    }
    plan = plan_of(tmp_path, {"name": "fw", "type": "firewall", "config": config})
    back = {"name": "back", "match": {}, "in": "right", "out": "left"}
    stage = plan["stages"][0] | {
        "chain": "back",
        "source": {"port": "right"},
        "sink": {"port": "left"},
    }
    flows = {"max": 8192, "max_ipv6": 64, "per_host": 4}
    return plan | {
        "chains": [*plan["chains"], back],
        "stages": [*plan["stages"], stage],
        "flows": flows,
    }


@pytest.fixture
def tester(plan: dict[str, Any]) -> Iterator[ConvoyGen]:
    ports = [f"vhost-user:{port['path']},ring=1024" for port in plan["ports"]]
    with ConvoyGen(ports, core=CORES[-1]) as running:
        yield running


def totals(tester: ConvoyGen, trial: dict[str, Any]) -> tuple[int, int]:
    total = tester.trial(trial).total
    assert total is not None
    return total.sent_pkts, total.received_pkts


def open_flows(tester: ConvoyGen, node: RunningNode) -> None:
    """Send each flow's first packet until the node knows all of them."""
    for _ in range(20):
        totals(tester, OPEN | {"paths": ["0>1"], "flows": OUT | PORTS})
        if flows_of(node)["flows_ipv4"] == FLOWS:
            return
    raise AssertionError(flows_of(node))


def flows_of(node: RunningNode) -> dict[str, Any]:
    return dict(counts_of(node)["flows"]["fw"])


def on_workers(plan: dict[str, Any], workers: int) -> dict[str, Any]:
    """Return the plan with flows that so many workers share."""
    polled = [{**stage, "worker": i % workers} for i, stage in enumerate(plan["stages"])]
    handed = [
        {**stage, "worker": worker, "source": {"handoff": True}}
        for stage in polled
        for worker in range(workers)
    ]
    cores = [{"core": CORES[i % len(CORES)], "idle": "sleep"} for i in range(workers)]
    return plan | {"stages": polled + (handed if workers > 1 else []), "workers": cores}


@pytest.mark.parametrize("workers", [1, 2])
def test_no_flow_is_broken_by_many_handovers(plan, tester, runtime_folder, workers):
    plan = on_workers(plan, workers)
    done: list[HandedOver] = []
    errors: list[BaseException] = []

    def change(node: RunningNode) -> None:
        try:
            for _ in range(HANDOVERS):
                done.append(hand_over(node))
                node = done[-1].after
        except BaseException as error:
            errors.append(error)

    with Node(plan) as node, ended(runtime_folder):
        open_flows(tester, node.running)
        before = flows_of(node.running)
        opened = counts_of(node.running)["ports"]["left"]["drops"]["tx_full"]
        changing = threading.Thread(target=change, args=[node.running])
        changing.start()
        sent = received = 0
        while changing.is_alive() or sent < 4 * FLOWS:
            one = totals(tester, ANSWER | {"paths": ["1>0"], "flows": BACK | PORTS})
            sent += one[0]
            received += one[1]
        changing.join()
        assert not errors, errors
        last = done[-1].after
        counts, after = counts_of(last), flows_of(last)
        # All answers passed, but what found the ring of a tester full that waited for its core.
        assert counts["functions"]["fw"]["drops"]["default_denied"] == 0
        assert sent - received == counts["ports"]["left"]["drops"]["tx_full"] - opened
        assert after["flows_ipv4"] == before["flows_ipv4"] == FLOWS
        assert after["created"] == before["created"]
        assert (after["invalidated"], sum(after["drops"].values())) == (0, 0)
        # What nobody asked for is still refused.
        unknown = BACK | PORTS | {"dst_port": 6000}
        _, passed = totals(tester, FEW | {"paths": ["1>0"], "flows": unknown})
        assert passed == 0


def test_time_outs_and_limits_of_hosts_go_on(plan, tester, runtime_folder):
    plan["flows"] = plan["flows"] | {"timeouts": {"udp": 2, "udp_new": 2}}
    of_one_host = {"src_ip": "10.0.0.1", "src_port": "5000-5003", "count": 4}
    few = OPEN | {"packets": 4, "paths": ["0>1"]}
    with Node(plan) as node, ended(runtime_folder):
        wait_for(
            lambda: totals(tester, few | {"flows": OUT | PORTS | of_one_host})[1] == 4,
            SOON_S,
            "the flows",
        )
        after = hand_over(node.running).after
        totals(tester, few | {"flows": OUT | PORTS | of_one_host | {"src_port": "6000-6003"}})
        flows = flows_of(after)
        assert (flows["drops"]["flow_host_limit"], flows["created"]) == (4, 4)
        wait_for(lambda: flows_of(after)["flows_ipv4"] == 0, SOON_S, "the flows' end")
        assert flows_of(after)["timed_out"] == 4
        totals(tester, few | {"flows": OUT | PORTS | of_one_host})
        assert flows_of(after)["created"] == 8


def test_flows_of_a_function_that_was_added_go_along(plan, tester, runtime_folder):
    changed = json.loads(json.dumps(plan))
    plan["stages"] = [stage | {"path": []} for stage in plan["stages"]]
    plan["functions"] = []
    first = FEW | {"paths": ["0>1"], "flows": OUT | PORTS | {"count": 64}}
    answers = FEW | {"paths": ["1>0"], "flows": BACK | PORTS | {"count": 64}}
    with Node(plan) as node, ended(runtime_folder):
        with Client(node.running.control, SOON_S) as client:
            client.apply(changed)
        wait_for(
            lambda: (totals(tester, first), flows_of(node.running)["flows_ipv4"])[1] == 64,
            SOON_S,
            "the flows",
        )
        after = hand_over(node.running).after
        assert totals(tester, answers | {"drain_s": 10}) == (64, 64)
        assert flows_of(after)["created"] == 64


def with_function(plan: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """Return the plan with another function in the firewall's place, the same both ways."""
    stages = [stage | {"path": [function["name"]]} for stage in plan["stages"]]
    return plan | {"functions": [function], "stages": stages, "flows": {"max": 8192}}


@pytest.mark.parametrize("workers", [1, 2])
def test_flows_of_nat_keep_their_ports(plan, tester, runtime_folder, workers):
    config = {"outside": ["right"], "inside": ["10.0.0.0/8"], "pool": ["203.0.113.1"]}
    nat = {"name": "nat", "type": "nat", "config": config | {"ports": "4096-65535"}}
    # Each of 64 hosts asks for port 5000, which one gets; the others are elsewhere.
    hosts = {"count": 64, "src_ip": "10.0.0.0/26", "dst_ip": "198.51.100.7"}
    out = OPEN | {"packets": 64, "paths": ["0>1"], "flows": OUT | PORTS | hosts}
    back = {"count": 59904, "src_ip": "198.51.100.7", "dst_ip": "203.0.113.1"}
    back |= {"src_port": 5000, "dst_port": "4096-63999"}
    answers = {"packets": 59904, "rate_pps": 100000, "duration_s": 5, "drain_s": 1, "tolerance": 1}

    def mappings(node: RunningNode) -> int:
        return int(counts_of(node)["functions"]["nat"]["info"]["mappings"])

    with Node(on_workers(with_function(plan, nat), workers)) as node, ended(runtime_folder):
        running = node.running
        wait_for(lambda: (totals(tester, out), mappings(running))[1] == 64, SOON_S, "the flows")
        for _ in range(3):
            running = hand_over(running).after
        assert mappings(running) == 64
        before = counts_of(running)["flows"]["nat"]
        _, passed = totals(tester, answers | {"paths": ["1>0"], "flows": back})
        after = counts_of(running)["flows"]["nat"]
        assert passed <= 64  # those that were sent while their ring was full did not come
        assert (after["created"], after["invalidated"]) == (before["created"], 0)
        assert totals(tester, out) == (64, 64)
        assert counts_of(running)["flows"]["nat"]["created"] == before["created"]


def test_flows_of_a_balancer_stay_with_their_backends(plan, tester, runtime_folder):
    backends = [{"address": f"10.1.0.{i}", "mac": f"02:bb:00:00:00:0{i}"} for i in (1, 2, 3)]
    config = {"services": [{"address": "198.51.100.7"}], "backends": backends}
    plan = with_function(plan, {"name": "lb", "type": "balancer", "config": config})
    out = OPEN | {"paths": ["0>1"], "flows": OUT | PORTS}

    def flows(node: RunningNode) -> list[int]:
        info = counts_of(node)["functions"]["lb"]["info"]
        return [backend["flows"] for backend in info["backends"]]

    with Node(plan) as node, ended(runtime_folder):
        running = node.running
        wait_for(
            lambda: (totals(tester, out), sum(flows(running)))[1] == FLOWS, SOON_S, "the flows"
        )
        before = flows(running)
        running = hand_over(running).after
        assert flows(running) == before
        totals(tester, out)
        assert flows(running) == before
        assert counts_of(running)["flows"]["lb"]["created"] == FLOWS
