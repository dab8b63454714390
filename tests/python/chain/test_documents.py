# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is generated from the models is current, and the examples are right."""

import ast
import json
import subprocess
from pathlib import Path

import pytest

from convoy.base.model_reference import BEGIN
from convoy.chain.functions import FUNCTIONS
from convoy.chain.generate import parameters
from convoy.chain.load import load
from convoy.chain.parameters import MORE
from convoy.chain.plan import make_plan
from convoy.chain.reference import reference
from convoy.chain.schema import json_schema
from convoy.host.programs import need

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def test_reference_is_current():
    generated = (ROOT / "docs/descriptor.md").read_text().partition(BEGIN)[2]
    assert generated.strip() == reference().strip(), "run `make generated`"


def test_schema_is_current():
    assert json.loads((ROOT / "docs/chain.schema.json").read_text()) == json_schema()


def test_parameters_are_those_of_the_functions():
    output = subprocess.run(
        [need("convoyd"), "--functions"], check=True, capture_output=True, text=True
    )
    made = parameters(json.loads(output.stdout))
    current = (ROOT / "convoy/chain/parameters.py").read_text()
    assert declared(made) == declared(current), "run `make generated`"


def declared(source: str) -> str:
    """Return Python source as it is whatever its layout, without imports."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom)]
    return ast.dump(tree)


def test_models_have_what_is_not_generated():
    for name, keys in MORE.items():
        inner = FUNCTIONS[name.replace("_", "-")].model_fields[name].annotation
        assert set(keys) <= set(inner.model_fields)


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
