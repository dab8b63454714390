# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A switch with VNFs behind it: what it counts as its own, and who gets a shared core."""

from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from convoy.dut import convoy, functions, switch_vnf
from convoy.dut.base import Cost, PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.openflow import joined
from convoy.errors import ConvoyError


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


def test_what_comes_back_goes_through_the_same_vnfs_in_the_other_order(tmp_path):
    left, right = (PortAt("af_packet", name) for name in ("l", "r"))
    there = (functions.firewall(10), functions.router(10))
    back = (functions.router(1), functions.firewall(1))
    setup = Setup(there, left, right, (1,), tmp_path, options={"vnf": "linux"}, back=back)
    switch, vnfs = switch_vnf.parts(device("convoy"), setup)
    assert [(one.functions, one.back) for one in vnfs] == [
        (there[:1], back[1:]), (there[1:], back[:1])
    ]  # fmt: skip
    ways = [(way["from"], way["to"]) for way in convoy.descriptor(switch)["chains"].values()]
    there_again = [("left", "vnf0"), ("vnf1", "vnf2"), ("vnf3", "right")]
    assert ways == [*there_again, *((b, a) for a, b in there_again)]


def test_the_rules_of_a_switch_join_its_ports_in_one_direction_or_in_both():
    one = ["table=0,in_port=1,actions=output:2", "table=0,in_port=3,actions=output:4"]
    other = ["table=0,in_port=2,actions=output:1", "table=0,in_port=4,actions=output:3"]
    assert (joined(4), joined(4, both_ways=True)) == (one, one + other)


class Looked:
    """A switch or a VNF, whose poll loop begins at a later look, or never."""

    def __init__(self, *looks: tuple[int, ...], ends: bool = False) -> None:
        self._looks, self._ends = list(looks), ends

    def ready(self, deadline_s: float) -> None:
        pass

    def alive(self) -> bool:
        return not self._ends

    def poll_threads(self) -> tuple[int, ...]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


def shared(monkeypatch: pytest.MonkeyPatch, **parts: Looked) -> tuple[Any, list[Any]]:
    """Return a switch and VNFs that get a core in turn, and whom turns are given to."""
    turns: list[Any] = []
    monkeypatch.setattr(
        switch_vnf, "in_turn", lambda core, threads: nullcontext(turns.append(threads))
    )
    running: Any = object.__new__(switch_vnf._Running)
    running._kept, running._parts, running._core = ExitStack(), parts, 0
    running._in_turn, running._turns = True, False
    return running, turns


def test_turns_begin_when_all_poll(monkeypatch: pytest.MonkeyPatch):
    running, turns = shared(monkeypatch, switch=Looked((1,)), vnf=Looked((), (), (2,)))
    running.ready(5.0)
    running.ready(5.0)
    assert turns == [[1, 2]]


def test_who_ends_before_it_polls_is_named(monkeypatch: pytest.MonkeyPatch):
    running, turns = shared(monkeypatch, switch=Looked((1,)), vnf=Looked((), ends=True))
    with pytest.raises(ConvoyError, match="vnf: it ended before it polled"):
        running.ready(5.0)
    assert turns == []
