# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Trials meet all flows; new ones are new."""

import math

import pytest

from convoy.run.flow_order import PARTS, SLACK_S, FlowOrder
from convoy.run.workload import PORTS, hosts_of


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_known_flows_go_on_where_the_trial_before_ended_and_nothing_waits():
    clock = Clock()
    order = FlowOrder(1000, None, clock.now, clock.sleep)
    begins = []
    for sent in (300, 900, 5000, 1):
        begins.append(order.first())
        order.sent(sent)
    assert begins == [0, 300, 200, 200]
    assert order.most == 0
    assert clock.time == 100.0


@pytest.mark.parametrize("each", [1, 100, 249, 250])
def test_connections_are_of_flows_that_no_device_remembers(each):
    clock = Clock()
    order = FlowOrder(1000, 3, clock.now, clock.sleep)
    assert order.most == 1000 // PARTS
    opened: dict[int, float] = {}
    waited = 0.0
    for _ in range(5000 // each):
        before = clock.time
        first = order.first()
        waited += clock.time - before
        # It may open as many as it is allowed to: none of them is remembered.
        for i in range(order.most):
            assert clock.time - opened.get((first + i) % 1000, -math.inf) >= 3 + SLACK_S
        clock.time += 0.01
        for i in range(each):
            opened[(first + i) % 1000] = clock.time
        order.sent(each)
    assert waited <= 5 * (3 + SLACK_S) * 1000 / (1000 - 250) + 3 + SLACK_S


@pytest.mark.parametrize("count", [1, 63, 64, 1000, 65536, 1_000_000, 4_000_000, 10_000_000])
def test_hosts_and_ports_together_are_as_many_flows_as_there_are(count):
    hosts = hosts_of(count)
    assert math.lcm(hosts, PORTS) >= count
    assert hosts <= count // PORTS + 4
