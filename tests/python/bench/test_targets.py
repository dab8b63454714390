# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A scenario's targets beside what was reached."""

import pytest
from pydantic import ValidationError

from convoy.report.export import document
from convoy.report.run_data import read
from convoy.report.targets import table
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.scenario import SetupSpec, Target
from convoy.results.trials import Point

from .results import plan, scenario
from .test_rates import search, trial

SETUPS = {"a": SetupSpec(functions=("stateful", "nat"), flows=5), "b": SetupSpec()}
TARGETS = (
    Target(setup="a", device="convoy", mpps=20),
    Target(setup="a", device="convoy", over="ovs-dpdk", times=8),
    Target(setup="a", device="ovs-dpdk", mpps=3),
    Target(setup="b", device="convoy", mpps=1),
)


def kept(one, device, repeat):
    point = Point(scenario="x", setup="a", device=device, functions=("firewall", "nat"),
                  size="64", repeat=repeat)  # fmt: skip
    return one.model_copy(update={"point": point})


def run(tmp_path, rates):
    """rates: by device, of the rounds; a negative one is a lower bound."""
    folder = RunFolder(tmp_path / "run")
    folder.create(plan(x=scenario(setups=SETUPS, targets=TARGETS)))
    folder.write_host(Host())
    for device, of in rates.items():
        for i, rate in enumerate(of):
            folder.append(kept(trial(received=abs(rate)), device, i))
            bound = rate < 0
            folder.append(kept(search(abs(rate), i, not bound, lower_bound=bound), device, i))
    return read([folder.path])


def test_a_median_meets_a_target_or_not_and_quotients_are_of_the_same_round(tmp_path):
    result = run(tmp_path, {"convoy": (21e6, 24e6, 18e6), "ovs-dpdk": (3e6, 2e6, 1e6)})
    mpps, over, others, missing = document(result)["targets"]
    assert (mpps["median"], mpps["min"], mpps["max"], mpps["met"]) == (21, 18, 24, True)
    assert (over["median"], over["min"], over["max"], over["met"]) == (12, 7, 18, True)
    assert (others["median"], others["met"]) == (2, False)
    assert (missing["median"], missing["met"]) == (None, None)
    words = [[cell.written for cell in row] for row in table(result, "x").rows]
    assert words[0] == ["a: convoy", "Mpps", "≥ 20", "21.00 [18.00 .. 24.00]", "met"]
    assert words[1][0] == "a: convoy / ovs-dpdk"
    assert words[2][-1] == "not met"
    assert words[3][-1] == "not known"


def test_a_bound_below_a_target_says_nothing(tmp_path):
    result = run(tmp_path, {"convoy": (-9e6, -9e6)})
    mpps, over, *_ = document(result)["targets"]
    assert (mpps["lower_bound"], mpps["met"]) == (True, None)
    assert (over["median"], over["met"]) == (None, None)


@pytest.mark.parametrize(
    ("ours", "theirs", "written", "met"),
    [
        (21e6, -2e6, "≤ 10.50", None),  # of 8; theirs may be more
        (12e6, -2e6, "≤ 6.00", False),
        (-21e6, 2e6, "≥ 10.50", True),
        (-12e6, 2e6, "≥ 6.00", None),
        (-21e6, -2e6, "", None),
        (-12e6, -2e6, "", None),
    ],
)
def test_a_quotient_with_a_bound_is_one_or_is_not_known(tmp_path, ours, theirs, written, met):
    result = run(tmp_path, {"convoy": (ours, ours), "ovs-dpdk": (theirs, theirs)})
    over = document(result)["targets"][1]
    assert (over["lower_bound"], over["upper_bound"]) == (ours < 0, theirs < 0)
    assert over["met"] is met
    here = table(result, "x").rows[1][3]
    assert here.written.startswith(written) if written else here.value is None


@pytest.mark.parametrize(
    "wrong", [{}, {"mpps": 1, "times": 2, "over": "vpp"}, {"times": 2}, {"mpps": 1, "over": "vpp"}]
)
def test_a_target_is_one_thing(wrong):
    with pytest.raises(ValidationError, match="give either mpps, or over and times"):
        Target(setup="a", device="convoy", **wrong)
