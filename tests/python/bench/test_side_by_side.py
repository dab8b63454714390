# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Setups that need more than one device, or cores of their own: in which order, or why not."""

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from convoy.dut.base import Running
from convoy.dut.dummy import Dummy
from convoy.dut.several import Several
from convoy.errors import ConvoyError, InputError
from convoy.report.gains import pairs
from convoy.results.scenario import Scenario, SetupSpec
from convoy.run.bench import Bench
from convoy.run.order import DeviceRun, chains_of, order
from convoy.run.packet_run import Settings, throttle
from convoy.run.point import Load, specification
from convoy.run.scenario import load

ROUTER = {"functions": ["router"]}


def scenario(setups, **more):
    head = {"title": "t", "from": "f", "asks": "a", "devices": ["a"], "noise": False}
    return Scenario.model_validate({**head, "setups": setups, **more})


class Yields(Dummy):
    name = "a"
    ability = Dummy.ability.__class__(**{**vars(Dummy.ability), "yields": True})


def test_the_tester_shares_a_rate_among_chains():
    trial = specification("64", 3e6, 0.1, Load(chains=3))
    assert trial["paths"] == ["0>1", "2>3", "4>5"]
    assert trial["rate_pps"] == 1e6  # of each
    assert specification("64", None, 0.1, Load(chains=2))["rate_pps"] == "max"
    assert "paths" not in specification("64", 3e6, 0.1)


def test_chains_meet_the_tester_in_places_of_their_own(tmp_path):
    spec = SetupSpec.model_validate({**ROUTER, "chains": 3})
    for kind in ("vhost-user", "af_packet"):
        setups = chains_of(Dummy(), spec, kind, (1,), tmp_path)
        ends = [port.address for setup in setups for port in (setup.left, setup.right)]
        assert len(set(ends)) == 6
        assert all(setup.oversubscribed for setup in setups)
        assert all(len(end) < 16 for end in ends if kind == "af_packet")


def test_several_are_seen_as_one(tmp_path):
    setups = chains_of(Dummy(), SetupSpec(chains=2), "dummy", (1,), tmp_path)
    with Several(Dummy(), setups) as both:
        assert both.alive()
        assert both.cost().packets == 0
        assert "2 independent chains share a core; their poll loops yield" in both.notes
        assert list(both.counters()) == ["chain 1", "chain 2"]
    assert not both.alive()


def test_chains_have_a_core_each_where_there_are_as_many(tmp_path):
    spec = SetupSpec(chains=2, cores=2)
    setups = chains_of(Dummy(), spec, "dummy", (3, 5), tmp_path)
    assert [(setup.cores, setup.oversubscribed) for setup in setups] == [
        ((3,), False),
        ((5,), False),
    ]
    with Several(Dummy(), setups) as both:
        assert "2 independent chains have a core each" in both.notes
    devices = {"dummy": Dummy()}  # which does not yield, and need not
    plan = order(
        {"s": scenario({"2": {"chains": 2, "cores": 2}}, devices=["dummy"])}, devices, 1, 3, 1,
        place=lambda spec: (3, 5),
    )  # fmt: skip
    assert [run.cores for run in plan.device_runs] == [(3, 5)]


def test_where_the_second_does_not_start_the_first_is_stopped(tmp_path):
    started: list[Running] = []

    class Once(Dummy):
        def start(self, setup):
            if started:
                raise ConvoyError("no more")
            started.append(super().start(setup))
            return started[0]

    with pytest.raises(ConvoyError, match="no more"):
        Several(Once(), chains_of(Dummy(), SetupSpec(chains=2), "dummy", (1,), tmp_path))
    assert not started[0].alive()


def test_a_device_that_does_not_yield_is_left_out():
    setups = {"1": ROUTER, "2": {**ROUTER, "chains": 2}}
    devices = {"a": Yields(), "dummy": Dummy()}
    plan = order({"s": scenario(setups, devices=list(devices))}, devices, 1, 2, 1)
    device_runs = [(device_run.setup, device_run.name) for device_run in plan.device_runs]
    assert device_runs == [("1", "a"), ("1", "dummy"), ("2", "a")]
    assert [(c.setup, c.device) for c in plan.cannot] == [("2", "dummy")]


def test_a_setup_gets_cores_of_its_own_or_is_left_out_with_the_reason():
    setups = {
        "near": {**ROUTER, "placement": "same-node"},
        "far": {**ROUTER, "placement": "other-node"},
        "any": ROUTER,
    }

    def place(spec):
        if spec.placement == "other-node":
            raise InputError("one NUMA node")
        return (5,)

    plan = order({"s": scenario(setups)}, {"a": Yields()}, 1, 2, 1, place=place)
    assert [(device_run.setup, device_run.cores) for device_run in plan.device_runs] == [
        ("near", (5,)),
        ("any", ()),
    ]
    assert [c.as_json() for c in plan.cannot] == [
        {"scenario": "s", "setup": "far", "device": "", "why": "one NUMA node"}
    ]


def test_virtual_functions_of_a_card_are_not_taken_for_granted():
    wanted = {"s": scenario({"1": ROUTER}, needs={"virtual-functions": True})}
    plan = order(wanted, {"a": Yields()}, 1, 2, 1)
    assert not plan.device_runs
    assert plan.cannot[0].why.startswith("needs virtual functions of a network card")
    assert order(wanted, {"a": Yields()}, 1, 2, 1, virtual_functions=True).device_runs


@pytest.mark.parametrize("name", ["switch-vnf", "switch-vnf-convoys"])
def test_switch_and_vnfs_have_a_core_each_in_setups_that_say_so(name):
    setups = load(name).setups
    own = [spec for key, spec in setups.items() if key.endswith("own cores")]
    assert len(own) == len(setups) / 2
    assert all(spec.cores == 1 + len(spec.functions) for spec in own)
    # On two cores they are left out with the reason, and the others are not.
    devices = {"a": Yields()}
    here = scenario({key: {"cores": spec.cores} for key, spec in setups.items()})

    def place(spec):
        raise InputError(f"needs {spec.cores} cores beside the tester's")

    plan = order({name: here}, devices, 1, 2, 1, place=place)
    assert {run.setup for run in plan.device_runs} == {
        key for key, spec in setups.items() if spec.cores == 1
    }
    assert {c.why for c in plan.cannot} == {
        f"needs {spec.cores} cores beside the tester's" for spec in own
    }


def test_convoys_are_compared_on_as_many_cores():
    spec = {"functions": ["bridge"]}
    aggregated = {"options": {"a": {"convoys": "native"}}}
    setups = {
        "plain": spec, "plain, own": {**spec, "cores": 2},
        "convoys, own": {**spec, **aggregated, "cores": 2}, "convoys": {**spec, **aggregated},
    }  # fmt: skip
    one = {"device": "a", "name": "a", "size": "64", "contends": True}
    rows = [SimpleNamespace(setup=setup, **one) for setup in setups]
    run = SimpleNamespace(scenarios={"s": scenario(setups)}, of=lambda name: rows)
    assert [(row.setup, other.setup) for row, other in pairs(cast(Any, run), "s")] == [
        ("convoys, own", "plain, own"), ("convoys", "plain"),
    ]  # fmt: skip


def test_a_scenario_without_a_search_says_what_is_tried_instead():
    with pytest.raises(ValidationError, match="rates-pps to try, saturation, or applications"):
        scenario({"x": ROUTER}, search=False)


def test_the_cores_that_a_setup_has_are_those_that_are_slowed_down(monkeypatch):
    slowed = []

    @contextmanager
    def slow(core, share):
        slowed.append((core, share))
        yield
        slowed.append((core, 1.0))

    monkeypatch.setattr("convoy.run.packet_run.slowed", slow)
    settings = Settings(0, (1,), False, "quick", ("pdr",), 0.2)
    device_run = DeviceRun("s", "x", SetupSpec(cores=2), Yields(), "device", "vhost-user", 0.5, 0)
    for cores, expected in (((), [1]), ((3, 4), [3, 4])):
        slowed.clear()
        one = replace(device_run, cores=cores)
        with throttle(one, settings.cores_of(one)):
            assert slowed == [(core, 0.5) for core in expected]
        assert slowed[len(expected) :] == [(core, 1.0) for core in reversed(expected)]
    slowed.clear()
    with throttle(replace(device_run, cpu_speed=1.0), (1,)):
        assert slowed == []


def test_the_core_that_is_watched_under_applications_is_the_setups_own(monkeypatch, tmp_path):
    watched = []

    def applications(hosts, seconds, core, device_core, remarks):
        watched.append((core, device_core))
        return SimpleNamespace(measure=lambda *_: None)

    monkeypatch.setattr("convoy.run.bench.ApplicationRun", applications)
    monkeypatch.setattr("convoy.run.bench.TwoHosts", lambda core: nullcontext())
    bench = SimpleNamespace(
        _settings=Settings(0, (1,), False, "quick", ("pdr",), 0.2),
        _state=SimpleNamespace(application_points=lambda run: ()),
        _keep_application=None,
    )
    device_run = DeviceRun("s", "x", SetupSpec(cores=2), Yields(), "device", "vhost-user", 1.0, 0)
    running = SimpleNamespace(ready=lambda deadline_s: None)
    for cores in ((), (3, 4)):
        Bench._run_applications(
            cast("Any", bench), replace(device_run, cores=cores), cast("Any", None),
            cast("Any", running), tmp_path,
        )  # fmt: skip
    assert watched == [(0, 1), (0, 3)]
