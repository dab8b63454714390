# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A switch with VNFs behind it: what it counts as its own."""

from typing import Any

import pytest

from convoy.dut import switch_vnf
from convoy.dut.base import Cost


class Part:
    def __init__(self, cycles: int, packets: int) -> None:
        self._cost = Cost(cycles, packets, "its counters")

    def cost(self) -> Cost:
        return self._cost


@pytest.mark.parametrize(
    ("own", "cooperative", "counts"), [(True, False, True), (False, True, True), (False,) * 3]
)
def test_cycles_that_run_on_while_another_has_the_core_are_none(own, cooperative, counts):
    running: Any = object.__new__(switch_vnf._Running)
    running._parts = {"switch": Part(300, 20), "VNF 1": Part(100, 10)}
    running._own, running._cooperative = own, cooperative
    cost = running.cost()
    assert (cost is not None) == counts
    assert list(running.part_costs()) == (["switch", "VNF 1"] if counts else [])
    if counts:
        assert (cost.busy_cycles, cost.packets) == (400, 10)
