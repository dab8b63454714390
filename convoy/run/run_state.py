# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a run has finished and learnt: what is left to measure, and where to begin. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.host_state import Figures, attributed, degraded_rounds, of_trial
from convoy.results.scenario import Scenario
from convoy.results.trials import Point, PointKey, Search, Trial
from convoy.run.application import application
from convoy.run.host_state import HostState
from convoy.run.order import DeviceRun

FAILURES_MAX = 2  # in a row, after which a device's setup is left out


class RunState:
    """Grows as points end; an interrupted run's is rebuilt from its folder."""

    def __init__(self, scenarios: Mapping[str, Scenario], patient: bool = True) -> None:
        self.scenarios = scenarios
        self.host = HostState(patient=patient)
        # What is to be said of the counts of a device's setup, by packet_run; "": nothing.
        self.counted: dict[str, str] = {}
        self._searches: dict[PointKey, Search] = {}
        self._applications: set[tuple[object, ...]] = set()
        self._rates: dict[tuple[object, ...], float] = {}  # the latest, of any round
        self._failures: dict[tuple[object, ...], int] = defaultdict(int)  # in a row
        self._baselines: dict[PointKey, float] = {}  # the tester's, when a point ended
        self._host_figures: dict[PointKey, Sequence[Figures]] = {}  # that count against rounds
        self._earlier: dict[PointKey, list[Trial]] = defaultdict(list)

    def resume(self, searches: Iterable[Search], tried: Iterable[Trial | ApplicationTrial]) -> None:
        """Learn what an interrupted run has finished."""
        for search in searches:
            self.ended(search)
        figures: dict[PointKey, list[Figures]] = defaultdict(list)
        for one in tried:
            if isinstance(one, ApplicationTrial):
                self.application_ended(one)
                continue
            if one.point.key not in self._searches:
                self._earlier[one.point.key].append(one)  # learnt from as it is done again
                continue
            counts = attributed(one)
            if counts is not None:
                figures[one.point.key].append(counts)
            self.host.learn(of_trial(one))
        self._host_figures |= figures

    def ended(
        self,
        search: Search,
        baseline_pps: float | None = None,
        host_figures: Sequence[Figures] | None = None,
    ) -> None:
        """Note how a point ended, with the tester's baseline rate and the host's states."""
        key = search.point.key
        self._searches[key] = search
        if baseline_pps is not None:
            self._baselines[key] = baseline_pps
        if host_figures is not None:
            self._host_figures[key] = host_figures
        rate = search.rate("pdr") or next((g.rate_pps for g in search.goals if g.rate_pps), None)
        if rate is not None:
            self._rates[key[:-1]] = rate
        self._failures[key[:5]] = self._failures[key[:5]] + 1 if search.outcome == "failed" else 0

    def application_ended(self, trial: ApplicationTrial) -> None:
        """Note how an application's point ended."""
        point = trial.point
        self._applications.add(point.key)
        key = (point.scenario, point.setup, point.device, "applications")
        self._failures[key] = self._failures[key] + 1 if trial.outcome == "failed" else 0

    def guess_pps(self, point: Point) -> float | None:
        """Return the rate of another round of this point."""
        return self._rates.get(point.key[:-1])

    def take_earlier(self, point: Point) -> Sequence[Trial]:
        """Return the trials that an interrupted run has kept of an unfinished point, once."""
        return self._earlier.pop(point.key, ())

    def all_points(self, run: DeviceRun) -> list[Point]:
        """Return what a device run measures."""
        return [
            Point(
                scenario=run.scenario,
                setup=run.setup,
                device=run.device.name,
                role=run.role,
                functions=run.spec.functions,
                port_kind=run.port_kind,
                cpu_speed=run.cpu_speed,
                size=str(size),
                repeat=run.repeat,
            )
            for size in self.scenarios[run.scenario].sizes
            if not run.sizes or str(size) in run.sizes
        ]

    def points(self, run: DeviceRun) -> list[Point]:
        """Return what is not measured yet of a device run."""
        return [point for point in self.all_points(run) if point.key not in self._searches]

    def application_points(self, run: DeviceRun) -> list[ApplicationPoint]:
        """Return what is not measured yet of a device run with applications."""
        applications = self.scenarios[run.scenario].applications
        assert applications is not None
        points = [
            ApplicationPoint(
                scenario=run.scenario,
                setup=run.setup,
                device=run.device.name,
                functions=run.spec.functions,
                port_kind=run.port_kind,
                application=name,
                frame_bytes=size,
                repeat=run.repeat,
            )
            for name in run.applications
            for size in (applications.sizes if application(name).by_size else (None,))
        ]
        return [point for point in points if point.key not in self._applications]

    def left(self, run: DeviceRun) -> int:
        """Return how many points of a device run are not measured yet."""
        return len(self.application_points(run) if run.applications else self.points(run))

    def hopeless(self, run: DeviceRun) -> bool:
        """Return whether the device has failed too often in this setup."""
        setup = (run.scenario, run.setup, run.device.name)
        key = (*setup, "applications") if run.applications else (*setup, run.role, run.cpu_speed)
        return self._failures[key] >= FAILURES_MAX * self.left(run)

    def searches(self, run: DeviceRun) -> dict[str, list[Search]]:
        """Return by frame size how a device run's points ended, in all rounds."""
        keys = {point.key[:-1] for point in self.all_points(run)}
        result: dict[str, list[Search]] = defaultdict(list)
        for key, search in self._searches.items():
            if key[:-1] in keys:
                result[search.point.size].append(search)
        return result

    def degraded(self, searches: Iterable[Search]) -> Collection[int]:
        """Return a point's rounds on a degraded host."""
        keys = [search.point.key for search in searches]
        figures = {key[-1]: self._host_figures.get(key, ()) for key in keys}
        return degraded_rounds(figures, self.host.nominal)

    def baseline_pps(self, search: Search) -> float | None:
        """Return the tester's baseline rate when a point ended; None: not known."""
        return self._baselines.get(search.point.key)
