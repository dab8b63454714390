# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is compared before a rate: bytes in each device run, counts once for each setup of a run."""

from types import SimpleNamespace
from typing import Any

import pytest

from convoy.dut.base import Presence
from convoy.dut.dummy import Dummy
from convoy.results.scenario import Scenario
from convoy.run import packet_run
from convoy.run.order import order, setup_of
from convoy.run.packet_run import PacketRun, Settings
from convoy.run.run_state import RunState


class Device(Dummy):
    """One whose results need no remark."""

    name = "a"

    def presence(self) -> Presence:
        return Presence("1")


@pytest.fixture
def compared(monkeypatch):
    """Return what was compared: bytes or counts, of whom."""
    calls: list[tuple[str, str]] = []

    def output(tester, what, *rest):
        calls.append(("bytes", what))

    def counts(tester, what, traffic, times, seconds, in_order):
        calls.append(("counts" if times else "counts, in the kernel", what))
        return "may lose packets" if "firewall" in what else ""

    monkeypatch.setattr(packet_run, "compare_output", output)
    monkeypatch.setattr(packet_run, "compare_counts", counts)
    return calls


def scenario(**setups) -> Scenario:
    head = {"title": "t", "from": "f", "asks": "a", "devices": ["a"], "noise": False}
    return Scenario.model_validate({**head, "setups": setups})


def test_counts_are_compared_once_for_what_is_the_same_to_a_device(compared, tmp_path):
    router: dict[str, Any] = {"functions": ["router"], "entries": 3}
    scenarios = {
        "one": scenario(router=router, firewall={"functions": ["firewall"]}),
        "two": scenario(again=router, firewall={"functions": ["firewall"]}),
        "three": scenario(more={**router, "entries": 4}, flows={**router, "flows": 9}),
    }
    runs = order(scenarios, {"a": Device()}, 2, 2, 1).device_runs
    state = RunState(scenarios)
    settings = Settings(0, (1,), False, "quick", ("pdr",), 0.2)
    notes = {}
    for run in runs:
        folder = tmp_path / f"{run.what.replace(' ', '')}{run.repeat}"
        folder.mkdir()
        own = setup_of(run.device, run.spec, run.port_kind, (1,), folder)
        one = PacketRun(run, settings, state, None, None, None)  # type: ignore[arg-type]
        one._referee(None, SimpleNamespace(process_times=dict, in_kernel=False), own)  # type: ignore[arg-type]
        notes[run.what, run.repeat] = one._compared
    assert sum(kind == "bytes" for kind, _ in compared) == len(runs) == 12
    assert sorted(what for kind, what in compared if kind == "counts") == [
        "one: a, firewall", "one: a, router", "three: a, flows", "three: a, more"
    ]  # fmt: skip
    assert notes["two: a, firewall", 0] == ("may lose packets",)
    assert notes["two: a, again", 0] == ()


def test_losses_tell_nothing_where_the_kernel_does_a_part_of_the_work(compared, tmp_path):
    scenarios = {"one": scenario(router={"functions": ["router"]})}
    (run,) = order(scenarios, {"a": Device()}, 1, 2, 1).device_runs
    own = setup_of(run.device, run.spec, run.port_kind, (1,), tmp_path)
    settings = Settings(0, (1,), False, "quick", ("pdr",), 0.2)
    one = PacketRun(run, settings, RunState(scenarios), None, None, None)  # type: ignore[arg-type]
    switch = SimpleNamespace(process_times=dict, in_kernel=True)
    one._referee(None, switch, own)  # type: ignore[arg-type]
    assert [kind for kind, _ in compared] == ["bytes", "counts, in the kernel"]
