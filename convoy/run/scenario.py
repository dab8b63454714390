# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Reads scenario files (scenarios/*.yaml): one file per table or figure."""

from collections.abc import Sequence
from pathlib import Path

from convoy.base.validate import validate
from convoy.base.yaml_text import read
from convoy.errors import InputError
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.results.scenario import Scenario
from convoy.run.replay import with_captures
from convoy.run.scenario_check import problems

FOLDER = SCENARIOS


def load_file(path: Path) -> Scenario:
    """Read a scenario. Raises InputError with file, line, field, value and fix."""
    text = read(path, "begin with title: (see scenarios/)")
    scenario = validate(text, Scenario)
    result, folder = list(problems(scenario)), scenario.needs.folder
    if folder is not None and not (path.parent / folder).is_dir():
        pending = f"needs captures in {folder}: no such folder; copy the scenario, name your own"
        scenario = scenario.model_copy(update={"pending": pending})
    if not scenario.pending:
        scenario, wrong = with_captures(scenario, path.parent)
        result += wrong
    if result:
        raise text.error(result)
    return scenario


def names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all scenarios."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml") if path.name != LEDGER.name))


def load(name: str, folder: Path = FOLDER) -> Scenario:
    """Return a scenario by its name, or by its file. Raises InputError."""
    if name.endswith((".yaml", ".yml")):
        return load_file(Path(name))
    if name not in names(folder):
        raise InputError(
            f"scenario '{name}': there is none called so; `convoy bench list` shows "
            f"{', '.join(names(folder)) or 'none'}"
        )
    return load_file(folder / f"{name}.yaml")


def choose(scenario: Scenario, devices: Sequence[str] | None) -> Scenario:
    """Return the scenario with these devices rather than its own."""
    return scenario if devices is None else scenario.model_copy(update={"devices": tuple(devices)})
