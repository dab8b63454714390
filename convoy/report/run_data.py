# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One or more runs' folders as a report needs them. Reads results, nothing else."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from convoy.errors import InputError
from convoy.report.applications import Served, served
from convoy.report.noise import Difference, floor, paired
from convoy.report.rates import rows
from convoy.report.row import Row
from convoy.results.documents import Host, Plan, checked
from convoy.results.folder import HOST, PLAN, RunFolder
from convoy.results.memory import Memory

AGAIN = " (again)"


@dataclass(frozen=True)
class Run:
    """What was measured, on what, and what was not."""

    folders: tuple[Path, ...]
    scenarios: Mapping[str, Mapping[str, Any]]  # as in plan.yaml
    rows: tuple[Row, ...]
    hosts: tuple[Mapping[str, Any], ...]  # one for each folder
    plans: tuple[Mapping[str, Any], ...]
    commands: tuple[str, ...]  # the first of each device and setup
    cannot: tuple[Mapping[str, str], ...]
    tsc_hz: float | None
    memory: tuple[Memory, ...] = ()  # what was measured in memory
    applications: tuple[Served, ...] = ()

    def served(self, scenario: str) -> tuple[Served, ...]:
        """Return what applications got behind a scenario's functions."""
        return tuple(row for row in self.applications if row.scenario == scenario)

    def of(self, scenario: str) -> tuple[Row, ...]:
        """Return a scenario's rows."""
        return tuple(row for row in self.rows if row.scenario == scenario)

    def arms(self, scenario: str) -> tuple[str, ...]:
        """Return who took part, without the second of the noise measurement."""
        names = dict.fromkeys(row.arm for row in self.of(scenario))
        return tuple(name for name in names if not name.endswith(AGAIN))

    def row(
        self, scenario: str, setup: str, arm: str, size: str, cpu_speed: float = 1.0
    ) -> Row | None:
        """Return one row, if there is such."""
        key = (scenario, setup, arm, cpu_speed, size)
        return next((row for row in self.rows if row.key == key), None)

    def noise_pairs(self, scenario: str) -> tuple[tuple[Row, Difference], ...]:
        """Return what a device differed from itself by, for each size that was measured so."""
        found = []
        for row in self.of(scenario):
            if row.arm.endswith(AGAIN):
                arm = row.arm.removesuffix(AGAIN)
                first = self.row(scenario, row.setup, arm, row.size, row.cpu_speed)
                if first is not None:
                    difference = paired(row.rounds, first.rounds)
                    if difference is not None:
                        found.append((first, difference))
        return tuple(found)

    def noise_floor(self, scenario: str, size: str | None = None) -> float | None:
        """Return the noise floor at a frame size, a share; None: not measured.

        Without a size, or where that one was not measured so: the worst of the scenario.
        """
        pairs = self.noise_pairs(scenario)
        at_size = [difference for row, difference in pairs if row.size == size]
        return floor(at_size or [difference for _, difference in pairs])


def _merge(found: Sequence[tuple[RunFolder, list[Row]]]) -> tuple[Row, ...]:
    """Rows of all runs; where two runs have the same scenario, the later one's get a mark."""
    seen: dict[tuple[Any, ...], int] = {}
    merged = []
    for folder, some in found:
        for row in some:
            if row.key in seen:
                row = replace(row, arm=f"{row.arm} [{folder.path.name}]")
            seen[row.key] = 1
            merged.append(row)
    return tuple(merged)


def read(paths: Sequence[Path]) -> Run:
    """Read runs' folders. Raises InputError where one is none, or comes twice."""
    places = [path.resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise InputError(f"{path}: given twice; give each run's folder once")
    scenarios: dict[str, Mapping[str, Any]] = {}
    hosts, plans, found = [], [], []
    memory: list[Memory] = []
    applications: list[Served] = []
    commands: dict[tuple[str, str], str] = {}
    cannot: list[Mapping[str, str]] = []
    tsc_hz = None
    for path in paths:
        folder = RunFolder(path)
        plan = checked(path / PLAN, folder.plan(), Plan)
        host = checked(path / HOST, folder.host(), Host)
        trials = list(folder.trials())
        for name, scenario in plan["scenarios"].items():
            scenarios.setdefault(name, scenario)
        for trial in trials:
            key = (trial.point.device, f"{trial.point.setup}, {trial.point.port_kind}")
            commands.setdefault(key, "\n".join(trial.commands))
            if tsc_hz is None and trial.point.device != "dummy":
                tsc_hz = (trial.tester.get("tester") or {}).get("tsc_hz")
        used = list(folder.applications())
        for one in used:
            key = (one.point.device, f"{one.point.setup} between a client and a server")
            commands.setdefault(key, "\n".join(one.commands))
            both = f"{shlex.join(one.server)}\n{shlex.join(one.client)}"
            if one.server:
                commands.setdefault((one.point.application, "server and client"), both)
        fresh = served(used)
        known = {(row.scenario, row.setup, row.arm) for row in applications}
        for row in fresh:
            twice = (row.scenario, row.setup, row.arm) in known
            applications.append(replace(row, arm=f"{row.arm} [{path.name}]") if twice else row)
        hosts.append(host)
        plans.append(plan)
        cannot += host["cannot"]
        memory += folder.memory()
        found.append((folder, rows(trials, folder.searches())))
    return Run(
        tuple(paths),
        scenarios,
        _merge(found),
        tuple(hosts),
        tuple(plans),
        tuple(f"# {who}, {what}\n{line}" for (who, what), line in commands.items()),
        tuple(cannot),
        tsc_hz,
        tuple(memory),
        tuple(applications),
    )
