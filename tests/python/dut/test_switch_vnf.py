# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A switch with VNFs behind it: what it counts as its own, and who gets a shared core."""

from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from convoy.dut import switch_vnf
from convoy.dut.base import Cost
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
