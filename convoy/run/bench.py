# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Does a run, one device run after another; a device that fails is noted and left behind."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from convoy.dut.base import Running, Setup
from convoy.dut.dummy import KIND
from convoy.dut.several import Several
from convoy.errors import ConvoyError
from convoy.host.private import private_folder
from convoy.results.applications import ApplicationTrial
from convoy.results.folder import RunFolder
from convoy.results.host_state import Figures
from convoy.results.scenario import Scenario
from convoy.results.trials import Role, Search
from convoy.run.adaptive_repetition import ROUNDS_MAX, repeats
from convoy.run.application import application
from convoy.run.application_run import ApplicationRun
from convoy.run.baseline_rate import BaselineRate
from convoy.run.order import APPLICATION_S, DeviceRun, both_ways_setup, chains_of, estimate_s
from convoy.run.packet_run import READY_DEADLINE_S, PacketRun, Settings
from convoy.run.rehearsal import rehearsals
from convoy.run.remote.connection import ConnectionLostError
from convoy.run.run_state import RunState
from convoy.run.two_hosts import TwoHosts
from convoy.search.goals import SMOKE

BASELINE = "the tester's baseline rate"
SETTLES_S = 30.0  # expected of device runs, whose true time then counts half


@dataclass(frozen=True)
class Step:
    """Progress before each device run."""

    what: str
    done: int
    of: int
    left_s: float


class Bench:
    """One run, into one folder."""

    def __init__(
        self,
        folder: RunFolder,
        scenarios: Mapping[str, Scenario],
        settings: Settings,
        progress: Callable[[Step], None],
        baseline: BaselineRate | None = None,
    ) -> None:
        """baseline: measured again between rounds. None: the tester knows it."""
        self._folder, self._settings = folder, settings
        self._progress, self._baseline = progress, baseline
        # Seconds for a point, of each device run.
        self._took: dict[tuple[str, str, Role, bool], list[float]] = defaultdict(list)
        # Of all device runs: what was expected, and what they took.
        self._expected_s, self._passed_s = 0.0, 0.0
        self._state = RunState(scenarios, patient=settings.profile != SMOKE)
        folder.repair()
        self._state.resume(folder.searches(), folder.tried())

    def run(self, device_runs: Sequence[DeviceRun], end: float = math.inf) -> int:
        """Do all device runs that are not done yet. Raises KeyboardInterrupt and the like, and
        ConnectionLostError where the devices' machine is not reached any more.

        Then, in a bounded part of the time that took, repeats those that are uncertain.

        end: when to stop, by time.monotonic(). Each scenario then gets a round before any gets its
        next one, and rounds that do not fit are left out. Returns how many device runs that were.
        """
        began = time.monotonic()
        if end < math.inf:
            device_runs = sorted(device_runs, key=lambda run: run.repeat)
        left_out = self._run(device_runs, end)
        now = time.monotonic()
        end = min(end, now + self._settings.repetition_share * (now - began))
        for _ in range(ROUNDS_MAX):
            fits, needed = [], 0.0
            for one in repeats(device_runs, self._state, self._baseline_pps):
                needed += self._estimate(one)
                if time.monotonic() + needed <= end:
                    fits.append(one)
            if not fits:
                break
            self._run(fits)
        return left_out

    @property
    def _baseline_pps(self) -> float | None:
        return self._baseline.pps if self._baseline else None

    def _renew_baseline(self, before: DeviceRun | None, run: DeviceRun) -> None:
        """Measure the tester's baseline rate again where a round begins."""
        same = before and _round(before) == _round(run)
        if self._baseline is not None and not same and not run.applications:
            # Where that fails it is not known better; the run goes on.
            with suppress(ConvoyError):
                if self._baseline.due():
                    self._baseline.measure()

    def _run(self, device_runs: Sequence[DeviceRun], end: float = math.inf) -> int:
        """Return how many are left out, as run() does."""
        todo = [run for run in device_runs if self._state.left(run)]
        before: DeviceRun | None = None
        left_out = 0
        for _, of_round in groupby(enumerate(todo), key=lambda one: _round(one[1])):
            one_round = list(of_round)
            needed_s = sum(self._estimate(run) for _, run in one_round)
            fits = time.monotonic() + needed_s <= end
            for index, run in one_round:
                now = time.monotonic()
                if not fits or now > end:
                    left_out += 1
                    continue
                self._renew_baseline(before, run)
                before = run
                left_s = sum(self._estimate(later) for later in todo[index:])
                self._progress(Step(run.what, index, len(todo), min(left_s, end - now)))
                if not self._state.hopeless(run):
                    self._do(run)
        return left_out

    def _do(self, run: DeviceRun) -> None:
        began, points = time.monotonic(), self._state.left(run)
        try:
            self._measure(run)
        except ConnectionLostError:
            raise  # nothing can be measured any more; resumed, it is done again
        except ConvoyError as error:
            self._fail(run, str(error))
        took_s = time.monotonic() - began
        self._took[_kind(run)].append(took_s / points)
        self._expected_s += self._expectation(run)
        self._passed_s += took_s

    def _estimate(self, run: DeviceRun) -> float:
        took = self._took[_kind(run)]
        if took:
            return sum(took) / len(took) * self._state.left(run)
        # On this machine, today; the first ones say little.
        pace = (SETTLES_S + self._passed_s) / (SETTLES_S + self._expected_s)
        return self._expectation(run) * pace

    def _expectation(self, run: DeviceRun) -> float:
        scenario = self._state.scenarios[run.scenario]
        return estimate_s(run, scenario, self._settings.profile)

    def _fail(self, run: DeviceRun, why: str) -> None:
        self._folder.log(_log_name(run), f"# failed: {why}")
        for lost in self._state.application_points(run) if run.applications else ():
            figure = application(lost.application).figure
            self._keep_application(
                ApplicationTrial(
                    point=lost, outcome="failed", why=why, duration_s=0.0, figure=figure
                )
            )
        for point in self._state.points(run) if not run.applications else ():
            self._keep(Search(point=point, outcome="failed", why=why))

    def _keep(self, search: Search, host_figures: Sequence[Figures] | None = None) -> None:
        self._folder.append(search)
        self._state.ended(search, self._baseline_pps, host_figures)

    def _keep_application(self, trial: ApplicationTrial) -> None:
        self._folder.append(trial)
        self._state.application_ended(trial)

    def _measure(self, run: DeviceRun) -> None:
        with private_folder() as private:
            setups = self._setups(run, private)
            running: Running | None = None
            try:
                if not run.applications and run.repeat == 0 and run.port_kind != KIND:
                    self._rehearse(run)
                several = len(setups) > 1
                starting = Several(run.device, setups) if several else run.device.start(setups[0])
                with starting as running:
                    if run.applications:
                        self._run_applications(run, setups[0], running, private)
                    else:
                        self._packet_run(run).measure(setups, running)
            finally:
                self._log(run, running)

    def _packet_run(self, run: DeviceRun) -> PacketRun:
        settings, pps = self._settings, self._baseline_pps
        return PacketRun(run, settings, self._state, self._folder, pps, self._keep)

    def _rehearse(self, run: DeviceRun) -> None:
        """See what cannot be seen of a device while it is measured. Raises ConvoyError."""
        with private_folder() as private:
            wanted = rehearsals(self._setups(run, private)[0].functions)
        for rehearsal in wanted:
            with private_folder() as private:
                setup = replace(self._setups(run, private)[0], functions=rehearsal.functions)
                with run.device.start(setup) as running:
                    self._packet_run(run).rehearse(setup, rehearsal.check, running)

    def _setups(self, run: DeviceRun, private: Path) -> tuple[Setup, ...]:
        """Return the device's configuration: a setup for each chain, in folders that exist."""
        place = run.device, run.spec, run.port_kind, self._settings.cores_of(run), private
        setups = (both_ways_setup(*place),) if run.applications else chains_of(*place)
        for setup in setups:
            setup.folder.mkdir(exist_ok=True)
        return tuple(replace(setup, hugepages=self._settings.hugepages) for setup in setups)

    def _log(self, run: DeviceRun, running: Running | None) -> None:
        """Keep the device's output."""
        for name, text in (running.output() if running is not None else {}).items():
            if text.strip():
                self._folder.log(_log_name(run), f"# {name}, round {run.repeat + 1}\n{text}")

    def _run_applications(
        self, run: DeviceRun, setup: Setup, running: Running, private: Path
    ) -> None:
        private.chmod(0o711)  # a server that gives up root finds its files
        with TwoHosts(self._settings.tester_core) as hosts:
            running.ready(READY_DEADLINE_S)
            ApplicationRun(
                hosts,
                APPLICATION_S[self._settings.profile],
                self._settings.tester_core,
                self._settings.cores_of(run)[0],
                (run.remark,) if run.remark else (),
            ).measure(
                self._state.application_points(run), setup, running, self._keep_application, private
            )


def _round(run: DeviceRun) -> tuple[str, int]:
    """Return what the device runs have in common that are compared with each other."""
    return run.scenario, run.repeat


def _kind(run: DeviceRun) -> tuple[str, str, Role, bool]:
    return run.scenario, run.device.name, run.role, bool(run.applications)


def _log_name(run: DeviceRun) -> str:
    applied = "-applications" if run.applications else ""
    return f"{run.scenario}-{run.setup}-{run.name}{applied}"
