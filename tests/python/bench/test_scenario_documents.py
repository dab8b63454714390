# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""docs/scenarios.md and its schema are those of the models."""

import json
from pathlib import Path

import pytest

from convoy.base.model_reference import BEGIN
from convoy.results.reference import SECTIONS, json_schema, reference
from convoy.run import scenario as scenarios

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_reference_is_current():
    generated = (DOCS / "scenarios.md").read_text().partition(BEGIN)[2]
    assert generated.strip() == reference().strip(), "run `make generated`"


def test_the_schema_is_current():
    assert json.loads((DOCS / "scenario.schema.json").read_text()) == json_schema()


def test_every_model_has_a_section_and_every_key_a_description():
    schema = json_schema()
    models = {"Scenario": schema, **schema["$defs"]}
    assert {model.__name__ for model in SECTIONS.values()} == set(models)
    for name, model in models.items():
        for key, option in model["properties"].items():
            assert option.get("description"), f"{name}: {key}"


def test_the_scenario_in_the_documentation_is_right(tmp_path):
    text = (DOCS / "scenarios.md").read_text()
    (tmp_path / "mine.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    assert scenarios.load(str(tmp_path / "mine.yaml")).setups["chain"].entries == 100


@pytest.mark.parametrize("name", scenarios.names())
def test_every_key_of_every_scenario_is_in_the_schema(name):
    keys = set(json_schema()["properties"])
    lines = (scenarios.FOLDER / f"{name}.yaml").read_text().splitlines()
    used = {line.split(":")[0] for line in lines if line[:1].isalpha() and ":" in line}
    assert used <= keys
