# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A mistake in the ledger is answered with file, line, value and fix."""

import subprocess
import sys

import pytest

from convoy.errors import InputError
from convoy.host.programs import SCENARIOS
from convoy.report.ledger.load import load, scenarios

from .test_ledger import rates, run_of

THERE = scenarios(SCENARIOS)
GOOD = """\
documents: {paper: A paper}
claims:
  - id: one
    source: {document: paper, section: "1"}
    says: Something is so.
    scenario: baseline
    predicate: {order: {of: [{setup: firewall, size: 64}, {setup: router, size: 64}]}}
    each: {device: [convoy, bess]}
  - id: two
    source: {document: paper, section: "2"}
    says: Something else is so.
    scenario: a-scenario-that-is-not-there
    predicate: {value: {of: {metric: lost, setup: any, pps: 1.0e+6}, least: 1, most: 2}}
"""
WRONG = [
    ("id: two", "id: one", "9: claims[1].id: 'one': given twice", "rename"),
    ("id: two", "id: 2.5", "9: claims[1].id: 2.5: must be text", "quotes"),
    ('{document: paper, section: "1"}', '{document: papr, section: "1"}',
     "4: claims[0].source.document: 'papr': is none of the documents", "mean 'paper'?"),
    ("    says: Something is so.\n", "", "3: claims[0]: the key 'says' is missing", "add says:"),
    ("{order:", "{ordr:", "7: claims[0].predicate.ordr: unknown", "mean 'order'?"),
    ("{order: {of", "{value: {of: {}, least: 1}, order: {of", "7: claims[0].predicate: order and",
     "keep one"),
    ("setup: firewall", "setup: firewal", "7: claims[0].predicate: setup 'firewal': the scenario",
     "mean 'firewall'?"),
    ("setup: firewall, size: 64", "setup: firewall, size: 65",
     "7: claims[0].predicate: size '65': the scenario has none", "64"),
    ("setup: firewall, size: 64", "setup: firewall",
     "7: claims[0].predicate: a quantity has no size", "give it one"),
    ("setup: firewall, size: 64", "setup: firewall, size: 64, colour: red",
     "7: claims[0].predicate.order.of[0].colour: unknown key", "keys"),
    ("[convoy, bess]", "[convoi, bess]", "7: claims[0].predicate: device 'convoi': the scenario",
     "mean 'convoy'?"),
    ("metric: lost", "metric: los", "13: claims[1].predicate.value.of.metric: 'los': must be one",
     "mean 'lost'?"),
    ("least: 1, most: 2", "least: 3, most: 2", "13: claims[1].predicate.value: least 3 is above",
     "exchange"),
    (", least: 1, most: 2", "", "13: claims[1].predicate.value: claims nothing", "give least"),
    ("setup: any, pps: 1.0e+6", "setup: any, plus: [{plus: [{per: {}}]}]",
     "13: claims[1].predicate.value.of", "one level"),
    ("{value: {of: {metric: lost, setup: any, pps: 1.0e+6}, least: 1, most: 2}}", "{all: []}",
     "13: claims[1].predicate.all: needs 2 or more items", ""),
    ("device: [convoy, bess]", "device: [convoy], pps: [" + "1, " * 65 + "1]",
     "3: claims[0]: each: 66 cases", "64 is the most"),
]  # fmt: skip


def test_the_one_that_the_mistakes_are_made_in_is_right(tmp_path):
    (tmp_path / "claims.yaml").write_text(GOOD)
    assert [one.id for one in load(tmp_path / "claims.yaml", THERE).claims] == ["one", "two"]


@pytest.mark.parametrize(("old", "new", "where", "fix"), WRONG, ids=lambda text: text[:30])
def test_a_mistake_is_answered_with_its_line(tmp_path, old, new, where, fix):
    path = tmp_path / "claims.yaml"
    assert GOOD.count(old) == 1
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as error:
        load(path, THERE)
    first = str(error.value).splitlines()[0]
    assert first.startswith(f"{path}:{where}")
    assert fix in first


def test_the_command_says_how_many_claims_hold_and_refuses_a_wrong_ledger(tmp_path):
    folder = run_of(tmp_path, rates(a=(1, 1, 1))).folders[0]
    (tmp_path / "claims.yaml").write_text(GOOD)
    command = [sys.executable, "-c", "from convoy.cli.main import main; main()", "report", folder,
               "--claims", tmp_path / "claims.yaml", "-o", tmp_path / "out.html"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 of 2 claims of the papers hold, 0 are contradicted" in done.stderr
    assert "2 are not testable here, 2 of these for want of their scenarios" in done.stderr
    assert (
        "needs scenario a-scenario-that-is-not-there" in (tmp_path / "out-claims.html").read_text()
    )
    (tmp_path / "claims.yaml").write_text(GOOD.replace("{order:", "{ordr:"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "claims.yaml:7: claims[0].predicate.ordr: unknown" in done.stderr
