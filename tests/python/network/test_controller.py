# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The controller without os-ken and without nodes: who is silent, by a clock of the test's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.network import controller as under_test
from convoy.network.controller import LOOK_S, Controller, Event
from convoy.network.load import load

EXAMPLE = Path(__file__).parents[3] / "examples/network/pa-flow.yaml"
NODES = 5


class Osken:
    """What os-ken would say and be told; its clock goes on as somebody waits for a line."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.now = 1000.0
        self.lines: list[str] = []
        self.orders: list[dict[str, Any]] = []
        self.stdout = self

    def wait_line(self, *_: Any) -> str:
        return ""

    def line(self, at: int, deadline_s: float) -> str | None:
        if at < len(self.lines):
            return self.lines[at]
        self.now += deadline_s
        return None

    def say(self, line: str) -> None:
        self.orders.append(json.loads(line))

    def running(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def monotonic(self) -> float:
        return self.now

    def each(self, event: str, nodes: range, **values: Any) -> None:
        self.lines += [json.dumps({"event": event, "node": one, **values}) for one in nodes]


@pytest.fixture
def osken(monkeypatch: pytest.MonkeyPatch) -> Osken:
    osken = Osken()
    monkeypatch.setattr(under_test, "Process", lambda *_, **__: osken)
    monkeypatch.setattr(under_test, "python_with_osken", lambda: "python3")
    monkeypatch.setattr(under_test, "time", osken)
    return osken


@pytest.fixture
def events(osken: Osken) -> list[Event]:
    return []


@pytest.fixture
def controller(osken: Osken, events: list[Event]) -> Iterator[Controller]:
    with Controller(load(EXAMPLE), ("127.0.0.1", 1), events.append) as controller:
        yield controller


def gone(events: list[Event]) -> int:
    return sum(event.what == "gone" for event in events)


def test_a_controller_that_was_held_up_takes_nobody_for_dead(
    osken: Osken, events: list[Event], controller: Controller
) -> None:
    numbers = range(1, NODES + 1)
    osken.each("connected", numbers)
    controller.step()
    assert len(controller.there) == NODES
    osken.now += 5.0  # it did not run
    osken.orders.clear()
    controller.step()
    assert gone(events) == 0
    assert [order["do"] for order in osken.orders].count("echo") == NODES
    osken.each("echo", numbers)
    for _ in range(5):
        controller.step()
    assert gone(events) == 0
    # Who says nothing while it listens is gone, however slow its looks are.
    for _ in range(5):
        osken.now += 3 * LOOK_S
        controller.step()
    assert gone(events) == NODES
