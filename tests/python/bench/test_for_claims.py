# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""bench run --for-claims: exactly what a ledger's claims need is measured, and no more."""

import pytest

from convoy.cli.bench_run import _for_claims
from convoy.dut.base import Presence
from convoy.dut.dummy import Dummy
from convoy.errors import InputError
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report.ledger.load import load, quantities, scenarios
from convoy.report.ledger.model import APPLICATIONS
from convoy.report.ledger.needed import needed
from convoy.results.documents import BenchPlan, Chosen
from convoy.results.scenario import Applications, Scenario, SetupSpec
from convoy.run.order import order
from convoy.run.session import wanted

TEXT = """\
documents: {paper: A paper}
claims:
"""
CLAIM = """\
  - id: c%d
    source: {document: paper, section: "1"}
    says: Something is so.
    scenario: x
    predicate: %s
"""
SCENARIO = Scenario(
    title="x", source="x", asks="x", devices=("a", "b", "c"), sizes=(64, 128, 1500),
    setups={"one": SetupSpec(), "two": SetupSpec(), "three": SetupSpec()},
    cpu_speeds=(1.0, 0.75, 0.5), latency=("idle", 0.5), rates_pps=(1e6, 2e6), saturation=3,
    applications=Applications(run=("iperf3-udp", "http", "ftp"), sizes=(64, 1500)),
)  # fmt: skip


def left(tmp_path, *predicates):
    path = tmp_path / "claims.yaml"
    path.write_text(TEXT + "".join(CLAIM % numbered for numbered in enumerate(predicates)))
    return needed(load(path, {"x": SCENARIO}), "x", SCENARIO)


def test_only_the_points_that_a_claim_names_are_left(tmp_path):
    scenario, points = left(
        tmp_path,
        "{order: {of: [{setup: two, device: b, size: 64}, {setup: one, device: a, size: 64}]}}",
        "{value: {of: {setup: two, device: b, size: 128, cpu-speed: 0.5}, least: 1}}",
        "{monotone: {of: {setup: one, device: a}, along: size, points: [64, 1500],"
        " direction: rises}}",
    )
    assert {(one.setup, one.device, one.cpu_speed, one.sizes) for one in points} == {
        ("two", "b", 1.0, ("64",)), ("one", "a", 1.0, ("64", "1500")), ("two", "b", 0.5, ("128",)),
    }  # fmt: skip
    assert list(scenario.setups) == ["one", "two"]
    assert (scenario.devices, scenario.sizes) == (("a", "b"), (64, 128, 1500))
    assert scenario.cpu_speeds == (1.0, 0.5)
    assert (scenario.search, scenario.latency, scenario.rates_pps) == (True, (), ())
    assert (scenario.saturation, scenario.applications) == (0, None)


@pytest.mark.parametrize(
    ("quantity", "search", "saturation", "latency", "rates"),
    [
        ("metric: rate", True, 0, (), ()),
        ("metric: core-busy", True, 0, (), ()),
        ("metric: saturation", False, 3, (), ()),
        ("metric: cycles", True, 3, (), ()),
        ("metric: latency-p50, pps: 2.0e+6", False, 0, (), (2e6,)),
        ("metric: latency-p99, load: 0.5", True, 0, (0.5,), ()),
        ("metric: latency-p99, load: idle", True, 0, ("idle",), ()),
    ],
)
def test_only_what_a_metric_needs_is_done(tmp_path, quantity, search, saturation, latency, rates):
    one = f"{{value: {{of: {{setup: one, device: a, size: 64, {quantity}}}, least: 1}}}}"
    scenario, _ = left(tmp_path, one)
    assert (scenario.search, scenario.saturation) == (search, saturation)
    assert (scenario.latency, scenario.rates_pps) == (latency, rates)


def test_applications_that_no_claim_is_about_do_not_run(tmp_path):
    scenario, points = left(
        tmp_path,
        "{value: {of: {metric: iperf3-udp, setup: one, device: a, size: 1500}, least: 1}}",
        "{value: {of: {metric: http, setup: two, device: b}, least: 1}}",
    )
    assert scenario.applications == Applications(run=("iperf3-udp", "http"), sizes=(1500,))
    assert {(one.setup, one.applications) for one in points} == {
        ("one", ("iperf3-udp",)), ("two", ("http",)),
    }  # fmt: skip
    assert not any(one.sizes for one in points)


class Fake(Dummy):
    """A device of another name."""

    def __init__(self, name, remark="", remarks=None):
        """remark: of the device; remarks: of it in a setup, by number of its entries."""
        super().__init__()
        self.name, self._remark, self._remarks = name, remark, remarks or {}

    def presence(self):
        return Presence("1.0", remark=self._remark)

    def remark(self, setup):
        return self._remarks.get(setup.spec.entries, "")


def runs(devices, points):
    plain = SCENARIO.model_copy(update={"applications": None})
    there = {device.name: device for device in devices}
    return order({"x": plain}, there, 2, 2, 1, only={"x": points})


def test_device_runs_are_those_of_the_points_and_the_control(tmp_path):
    points = (
        Chosen(setup="one", device="a", sizes=("64", "1500")),
        Chosen(setup="two", device="b", cpu_speed=0.5, sizes=("128",)),
    )
    plan = runs([Fake("a"), Fake("b"), Fake("c")], points)
    done = [(r.repeat, r.setup, r.name, r.cpu_speed, r.sizes) for r in plan.device_runs]
    assert done == [
        (repeat, *rest)
        for repeat in range(2)
        for rest in (
            ("one", "a", 1.0, ("64", "1500")),
            ("one", "a (A/A control)", 1.0, ("64", "1500")),
            ("two", "b", 0.5, ("128",)),
        )
    ]


def test_an_emulated_device_is_left_out_with_the_reason():
    points = tuple(Chosen(setup="one", device=name, sizes=("64",)) for name in "ab")
    plan = runs([Fake("a"), Fake("b", "emulated: not comparable")], points)
    assert {run.device.name for run in plan.device_runs} == {"a"}
    assert any((c.device, c.why) == ("b", "emulated: not comparable") for c in plan.cannot)


def test_a_device_is_left_out_of_the_setup_in_which_it_is_emulated():
    plain = SCENARIO.model_copy(
        update={
            "applications": None,
            "setups": {"one": SetupSpec(), "two": SetupSpec(entries=2)},
        }
    )
    points = tuple(Chosen(setup=name, device="a", sizes=("64",)) for name in plain.setups)
    there = {"a": Fake("a", remarks={2: "emulated: not comparable"})}
    claims = order({"x": plain}, there, 1, 2, 1, only={"x": points})
    assert {run.setup for run in claims.device_runs} == {"one"}
    assert any((c.setup, c.why) == ("two", "emulated: not comparable") for c in claims.cannot)
    whole = order({"x": plain}, there, 1, 2, 1)
    assert {(run.setup, run.remark) for run in whole.device_runs} == {
        ("one", ""), ("two", "emulated: not comparable"),
    }  # fmt: skip


def test_all_that_the_papers_claims_name_is_measured_and_kept():
    names, choose = _for_claims(None)
    plan = wanted(names, quick=True, choose=choose)
    assert BenchPlan.model_validate(plan.as_document()).only == plan.only  # so it can be resumed
    ledger = load(LEDGER, scenarios(SCENARIOS))
    pairs = [(c.scenario, q) for c in ledger.claims if c.scenario in names for q in quantities(c)]
    assert len(pairs) > 100
    for name, quantity in pairs:
        if quantity.part is not None:
            continue
        of = plan.scenarios[name]
        mine = [one for one in plan.only[name] if (one.setup, one.device, one.cpu_speed) ==
                (quantity.setup, quantity.device, quantity.cpu_speed or 1.0)]  # fmt: skip
        if quantity.metric in APPLICATIONS:
            assert any(quantity.metric in one.applications for one in mine)
            assert quantity.size is None or quantity.size in of.applications.sizes
        else:
            sizes = {size for one in mine for size in one.sizes}
            assert sizes >= {str(quantity.size or of.sizes[0])}
            assert quantity.pps is None or quantity.pps in of.rates_pps


def test_a_scenario_that_no_claim_is_about_is_refused():
    with pytest.raises(InputError, match="no claim is about scenario 'vpn'; leave it out, or give"):
        wanted(["vpn"], choose=_for_claims(["vpn"])[1])
