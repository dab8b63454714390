# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is generated from the models is current, and the examples are right."""

import json
from pathlib import Path

import pytest

from convoy.chain.load import load
from convoy.chain.plan import make_plan
from convoy.chain.reference import BEGIN, reference
from convoy.chain.schema import json_schema

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def test_reference_is_current():
    generated = (ROOT / "docs/descriptor.md").read_text().partition(BEGIN)[2]
    assert generated.strip() == reference().strip(), "run tools/descriptor-docs"


def test_schema_is_current():
    assert json.loads((ROOT / "docs/chain.schema.json").read_text()) == json_schema()


def test_the_descriptor_in_the_documentation_is_right(machine, tmp_path):
    text = (ROOT / "docs/descriptor.md").read_text().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "web.yaml").write_text(text)
    plan = make_plan(load(tmp_path / "web.yaml", machine), machine).data
    assert [chain["name"] for chain in plan["chains"]] == ["web", "web.back"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, machine):
    assert make_plan(load(path, machine), machine).data["stages"]


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} >= {
        "firewall-router",
        "bridge",
        "two-tenants",
        "vxlan",
        "pipeline",
        "three-functions",
    }
