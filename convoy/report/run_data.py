# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One or more runs' folders as a report needs them. Reads results, nothing else."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from convoy.report.applications import Served, served
from convoy.report.noise import Difference, floor, paired
from convoy.report.rates import rows
from convoy.report.row import Row, conditions
from convoy.results.applications import ApplicationTrial
from convoy.results.archive import unpacked
from convoy.results.documents import BenchPlan, Cannot, Host
from convoy.results.folder import RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import Scenario
from convoy.results.simulated import Simulated
from convoy.results.trials import Trial


@dataclass(frozen=True)
class Run:
    """What was measured, on what, and what was not."""

    folders: tuple[Path, ...]
    scenarios: Mapping[str, Scenario]
    rows: tuple[Row, ...]
    hosts: tuple[Host, ...]  # one for each folder
    plans: tuple[BenchPlan, ...]
    commands: tuple[str, ...]  # the first of each device and setup
    cannot: tuple[Cannot, ...]
    memory: tuple[Memory, ...] = ()  # what was measured in memory
    simulated: tuple[Simulated, ...] = ()
    applications: tuple[Served, ...] = ()

    def served(self, scenario: str) -> tuple[Served, ...]:
        """Return what applications got behind a scenario's functions."""
        return tuple(row for row in self.applications if row.scenario == scenario)

    def of(self, scenario: str) -> tuple[Row, ...]:
        """Return a scenario's rows."""
        return tuple(row for row in self.rows if row.scenario == scenario)

    def names(self, scenario: str) -> tuple[str, ...]:
        """Return who took part: the contenders, without the A/A controls."""
        mine = (row for row in self.of(scenario) if row.role == "device")
        return tuple(dict.fromkeys(row.name for row in mine))

    def same_point(self, row: Row, device: str, run: str | None = None) -> Row | None:
        """Return what a device reached at another row's point, if it was measured there.

        run: of several, which; the row's own unless told.
        """
        run = row.run if run is None else run
        key = (run, row.scenario, row.setup, device, "device", row.cpu_speed, row.size)
        return next((result for result in self.rows if result.key == key), None)

    def noise_pairs(
        self, scenario: str, run: str | None = None
    ) -> tuple[tuple[Row, Difference], ...]:
        """Return what a device differed from its A/A control by, for each size that has one.

        run: of several, which; all unless told.
        """
        result = []
        for row in self.of(scenario):
            if row.role == "control" and run in (None, row.run):
                first = self.same_point(row, row.device)
                if first is not None:
                    difference = paired(row.rounds, first.rounds)
                    if difference is not None:
                        result.append((first, difference))
        return tuple(result)

    def noise_floor(
        self, scenario: str, size: str | None = None, run: str | None = None
    ) -> float | None:
        """Return the noise floor at a frame size, a share; None: not measured.

        Without a size, or where that one was not measured so: the worst of the scenario.
        """
        pairs = self.noise_pairs(scenario, run)
        at_size = [difference for row, difference in pairs if row.size == size]
        return floor(at_size or [difference for _, difference in pairs])


T = TypeVar("T", Row, Served)


def _merge(result: Sequence[tuple[str, Sequence[T]]]) -> tuple[T, ...]:
    """Return what all runs have; where several have a scenario, each says of which run it is."""
    runs: dict[str, set[str]] = {}
    for run, some in result:
        for one in some:
            runs.setdefault(one.scenario, set()).add(run)
    return tuple(
        replace(one, run=run) if len(runs[one.scenario]) > 1 else one
        for run, some in result
        for one in some
    )


def _run_names(paths: Sequence[Path]) -> list[str]:
    """Return the folders' names; of folders that are called alike, their whole paths."""
    names = [path.resolve().name for path in paths]
    return [str(path) if names.count(name) > 1 else name
            for path, name in zip(paths, names, strict=True)]  # fmt: skip


def read(paths: Sequence[Path]) -> Run:
    """Read runs' folders, and archives of them. Raises InputError where one is none, or twice."""
    with unpacked(paths) as folders:
        return _read(folders)


def _read(folders: Mapping[Path, Path]) -> Run:
    """Return what was measured. folders: where they lie, by what they are called."""
    scenarios: dict[str, Scenario] = {}
    hosts, plans = [], []
    result: list[tuple[str, list[Row]]] = []
    applications: list[tuple[str, tuple[Served, ...]]] = []
    memory: list[Memory] = []
    simulated: list[Simulated] = []
    commands: dict[tuple[str, str], str] = {}
    cannot: list[Cannot] = []
    for name, place in zip(_run_names(list(folders)), folders.values(), strict=True):
        folder = RunFolder(place)
        plan, host = folder.plan(), folder.host()
        tried = list(folder.tried())
        trials = [trial for trial in tried if isinstance(trial, Trial)]
        known = (trial.tsc_hz for trial in trials if trial.point.device != "dummy")
        tsc_hz = next(filter(None, known), None)
        for title, scenario in plan.scenarios.items():
            scenarios.setdefault(title, scenario)
        for trial in trials:
            key = (trial.point.device, f"{trial.point.setup}, {trial.point.port_kind}")
            commands.setdefault(key, "\n".join(trial.commands))
        used = [trial for trial in tried if isinstance(trial, ApplicationTrial)]
        for one in used:
            key = (one.point.device, f"{one.point.setup} between a client and a server")
            commands.setdefault(key, "\n".join(one.commands))
            both = f"{shlex.join(one.server)}\n{shlex.join(one.client)}"
            if one.server:
                commands.setdefault((one.point.application, "server and client"), both)
        hosts.append(host)
        plans.append(plan)
        cannot += host.cannot
        memory += folder.memory()
        simulated += folder.simulated()
        mine = [
            replace(row, tsc_hz=tsc_hz, conditions=conditions(
                plan.scenarios.get(row.scenario), row.setup, row.device, row.size
            ))
            for row in rows(trials, folder.searches())
        ]  # fmt: skip
        result.append((name, mine))
        applications.append((name, served(used)))
    return Run(
        tuple(folders),
        scenarios,
        _merge(result),
        tuple(hosts),
        tuple(plans),
        tuple(f"# {who}, {what}\n{line}" for (who, what), line in commands.items()),
        tuple(cannot),
        tuple(memory),
        tuple(simulated),
        _merge(applications),
    )
