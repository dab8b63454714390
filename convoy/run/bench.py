# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Does a run, one device run after another; a device that fails is noted and left behind."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from zlib import crc32

from convoy.dut.base import Running, Setup
from convoy.dut.dummy import RunningDummy
from convoy.dut.several import Several
from convoy.errors import ConvoyError
from convoy.host.cpu_speed import how, slowed
from convoy.host.private import private_folder
from convoy.host.run_queue import pollers, thread_times
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.folder import RunFolder
from convoy.results.host_state import Figures, attributed, degraded_rounds, of_trial
from convoy.results.scenario import Scenario
from convoy.results.trials import Point, PointKey, Role, Search, Trial
from convoy.run.adaptive_repetition import ROUNDS_MAX, capped, uncertain
from convoy.run.application import application
from convoy.run.application_run import Asked, measure
from convoy.run.baseline_rate import BaselineRate
from convoy.run.host_state import HostState
from convoy.run.order import APPLICATION_S, DeviceRun, both_ways_setup, chains_of, estimate_s
from convoy.run.point import IDLE_PPS, Measurement, specification
from convoy.run.two_hosts import TwoHosts
from convoy.search.goals import LONGEST_S, Goal, goals
from convoy.tester.base import Tester
from convoy.tester.convoy_gen import ConvoyGen
from convoy.tester.dummy import DummyTester

READY_DEADLINE_S = 60.0
PROBE_PPS = 20_000.0
PROBE_S = 0.05
PROBES_MAX = 100
FAILURES_MAX = 2  # in a row, after which a device's setup is left out
LEAST_PKTS = 60  # of a latency trial: at 100 packets/s short enough not to be interrupted
BASELINE = "the tester's baseline rate"
APPLIED = ", applications"  # apart from the setup's packets
NO_RACE = "not comparable"  # in a device's remark: measured again, it would not be either
DEVICE: Role = "device"
LATENCY_LONGEST_S = 3.0  # a latency trial, however low its rate


@dataclass(frozen=True)
class Settings:
    """How a run is made, the same for all devices."""

    tester_core: int
    cores: tuple[int, ...]  # the device's
    hugepages: bool  # for every device, or for none
    profile: str  # of the search: quick, standard, full
    goals: tuple[str, ...]
    latency_s: float  # of a latency trial
    repetition_share: float = 0.0  # of a run's time, for adaptive repetition


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
        self._baseline = baseline
        self._folder = folder
        self._scenarios = scenarios
        self._settings = settings
        self._progress = progress
        self._goals: tuple[Goal, ...] = goals(settings.goals, settings.profile)
        self._guess: dict[tuple[object, ...], float] = {}
        self._failures: dict[tuple[str, str, str, Role, float], int] = defaultdict(int)
        self._took: dict[tuple[str, str, Role, bool], list[float]] = defaultdict(list)
        self._done: dict[PointKey, Search] = {}
        self._baselines: dict[PointKey, float] = {}  # the tester's, when a point was searched for
        self._host_state = HostState()
        self._figures: dict[PointKey, list[Figures]] = defaultdict(
            list
        )  # that each point's trials are attributed with
        self._applied: set[tuple[object, ...]] = set()  # applications' points that have ended
        self._kept: dict[PointKey, list[Trial]] = defaultdict(list)
        self._resume()

    def _resume(self) -> None:
        """Learn what an earlier, interrupted run of this folder has finished."""
        self._folder.repair()
        for search in self._folder.searches():
            self._done[search.point.key] = search
            self._learn(search)
        for ended in self._folder.applications():
            self._learn_application(ended)
        for trial in self._folder.trials():
            if trial.point.key not in self._done:
                self._kept[trial.point.key].append(trial)  # learnt from as it is done again
                continue
            held = attributed(trial)
            if held is not None:
                self._figures[trial.point.key].append(held)
            self._host_state.learn(of_trial(trial))

    def _learn(self, search: Search) -> None:
        key = search.point.key
        rate = search.rate("pdr") or next((g.rate_pps for g in search.goals if g.rate_pps), None)
        if rate is not None:
            self._guess[key[:-1]] = rate
        if search.outcome == "failed":
            self._failures[key[:5]] += 1
        else:
            self._failures[key[:5]] = 0

    def _learn_application(self, trial: ApplicationTrial) -> None:
        self._applied.add(trial.point.key)
        point = trial.point
        key = (point.scenario, f"{point.setup}{APPLIED}", point.device, DEVICE, 1.0)
        self._failures[key] = self._failures[key] + 1 if trial.outcome == "failed" else 0

    def _applications(self, device_run: DeviceRun) -> list[ApplicationPoint]:
        """Return what is not measured yet of a device run with applications."""
        asked = self._scenarios[device_run.scenario].applications
        assert asked is not None
        result = [
            ApplicationPoint(
                scenario=device_run.scenario,
                setup=device_run.setup,
                device=device_run.device.name,
                functions=device_run.spec.functions,
                port_kind=device_run.port_kind,
                application=name,
                frame_bytes=size,
                repeat=device_run.repeat,
            )
            for name in device_run.applications
            for size in (asked.sizes if application(name).by_size else (None,))
        ]
        return [point for point in result if point.key not in self._applied]

    def _left(self, device_run: DeviceRun) -> int:
        """Return how many points of a device run are not measured yet."""
        if device_run.applications:
            return len(self._applications(device_run))
        return sum(point.key not in self._done for point in self.points(device_run))

    def points(self, device_run: DeviceRun) -> list[Point]:
        """Return what a device run is to measure."""
        return [
            Point(
                scenario=device_run.scenario,
                setup=device_run.setup,
                device=device_run.device.name,
                role=device_run.role,
                functions=device_run.spec.functions,
                port_kind=device_run.port_kind,
                cpu_speed=device_run.cpu_speed,
                size=str(size),
                repeat=device_run.repeat,
            )
            for size in self._scenarios[device_run.scenario].sizes
            if not device_run.sizes or str(size) in device_run.sizes
        ]

    def run(self, device_runs: tuple[DeviceRun, ...]) -> None:
        """Do all device runs that are not done yet. Raises KeyboardInterrupt and the like only.

        Then, in a bounded part of the time that took, repeats those that are uncertain.
        """
        began = time.monotonic()
        self._run(device_runs)
        end = time.monotonic() + self._settings.repetition_share * (time.monotonic() - began)
        for _ in range(ROUNDS_MAX):
            again = self._adaptive_repetition(device_runs)
            fits, needed = [], 0.0
            for device_run in again:
                needed += self._estimate(device_run)
                if time.monotonic() + needed <= end:
                    fits.append(device_run)
            if not fits:
                return
            self._run(fits)

    def _renew_baseline(self, before: DeviceRun | None, device_run: DeviceRun) -> None:
        """Measure the tester's baseline rate again where a round begins."""
        fresh = before is None or (before.scenario, before.repeat) != (
            device_run.scenario,
            device_run.repeat,
        )
        if (
            self._baseline is not None
            and fresh
            and self._baseline.due()
            and not device_run.applications
        ):
            # It is not known better then; the run goes on.
            with suppress(ConvoyError):
                self._baseline.measure()

    def _adaptive_repetition(self, device_runs: Sequence[DeviceRun]) -> list[DeviceRun]:
        """Return a device run for each device and setup that is uncertain at some size."""
        rounds = max((device_run.repeat + 1 for device_run in device_runs), default=0)
        result = []
        for device_run in device_runs:
            if device_run.repeat or device_run.applications or NO_RACE in device_run.remark:
                continue
            searched = self._scenarios[device_run.scenario].search
            known: dict[str, list[Search]] = defaultdict(list)
            keys = {point.key[:-1] for point in self.points(device_run)}
            for key, search in self._done.items():
                if key[:-1] in keys:
                    known[search.point.size].append(search)
            sizes = [
                size
                for size, some in known.items()
                if uncertain(
                    some,
                    rounds,
                    sum(map(self._capped, some)),
                    self._degraded_rounds(some),
                    searched,
                )
            ]
            if sizes:
                last = max(search.point.repeat for size in sizes for search in known[size])
                result.append(replace(device_run, repeat=last + 1, sizes=tuple(sizes)))
        return result

    def _degraded_rounds(self, searches: Sequence[Search]) -> frozenset[int]:
        """Return a point's rounds on a degraded host."""
        nominal = self._host_state.nominal
        keys = [search.point.key for search in searches]
        return degraded_rounds({key[-1]: self._figures.get(key, []) for key in keys}, nominal)

    def _capped(self, search: Search) -> bool:
        then, now = self._baselines.get(search.point.key), self._baseline and self._baseline.pps
        return then is not None and capped(search, then, now or 0.0)

    def _run(self, device_runs: Sequence[DeviceRun]) -> None:
        todo = [device_run for device_run in device_runs if self._left(device_run)]
        before: DeviceRun | None = None
        for index, device_run in enumerate(todo):
            self._renew_baseline(before, device_run)
            before = device_run
            left = sum(self._estimate(later) for later in todo[index:])
            self._progress(Step(device_run.what, index, len(todo), left))
            setup = f"{device_run.setup}{APPLIED}" if device_run.applications else device_run.setup
            failures = (
                device_run.scenario,
                setup,
                device_run.device.name,
                device_run.role,
                device_run.cpu_speed,
            )
            if self._failures[failures] >= FAILURES_MAX * self._left(device_run):
                continue
            began = time.monotonic()
            try:
                self._device_run(device_run)
            except ConvoyError as error:
                self._fail(device_run, str(error))
            if not device_run.sizes:
                self._took[_kind(device_run)].append(time.monotonic() - began)

    def _estimate(self, device_run: DeviceRun) -> float:
        took = self._took[_kind(device_run)]
        if took:
            part = (
                len(device_run.sizes) / len(self._scenarios[device_run.scenario].sizes)
                if device_run.sizes
                else 1
            )
            return sum(took) / len(took) * part
        return estimate_s(device_run, self._scenarios[device_run.scenario], self._settings.profile)

    def _fail(self, device_run: DeviceRun, why: str) -> None:
        self._folder.log(_log_name(device_run), f"# failed: {why}")
        for lost in self._applications(device_run) if device_run.applications else ():
            self._keep_application(
                ApplicationTrial(
                    point=lost,
                    outcome="failed",
                    why=why,
                    duration_s=0.0,
                    figure=application(lost.application).figure,
                )
            )
        if device_run.applications:
            return
        for point in self.points(device_run):
            if point.key not in self._done:
                self._keep(Search(point=point, outcome="failed", why=why))

    def _keep(self, search: Search) -> None:
        self._folder.append(search)
        self._done[search.point.key] = search
        if self._baseline is not None and self._baseline.pps is not None:
            self._baselines[search.point.key] = self._baseline.pps
        self._learn(search)

    def _keep_application(self, trial: ApplicationTrial) -> None:
        self._folder.append(trial)
        self._learn_application(trial)

    def _device_run(self, device_run: DeviceRun) -> None:
        with private_folder() as private:
            setups = self._setups(device_run, private)
            running: Running | None = None
            try:
                several = len(setups) > 1
                starting = (
                    Several(device_run.device, setups)
                    if several
                    else device_run.device.start(setups[0])
                )
                with starting as running:
                    if device_run.applications:
                        self._run_applications(device_run, setups[0], running, private)
                    else:
                        self._send_packets(device_run, setups, running)
            finally:
                self._log(device_run, running)

    def _setups(self, device_run: DeviceRun, private: Path) -> tuple[Setup, ...]:
        """Return the device's configuration: a setup for each chain, in folders that exist."""
        asked = (
            device_run.device,
            device_run.spec,
            device_run.port_kind,
            self._cores(device_run),
            private,
        )
        setups = (both_ways_setup(*asked),) if device_run.applications else chains_of(*asked)
        for setup in setups:
            setup.folder.mkdir(exist_ok=True)
        return tuple(replace(setup, hugepages=self._settings.hugepages) for setup in setups)

    def _log(self, device_run: DeviceRun, running: Running | None) -> None:
        """Keep the device's output."""
        for name, text in (running.output() if running is not None else {}).items():
            if text.strip():
                self._folder.log(
                    _log_name(device_run), f"# {name}, round {device_run.repeat + 1}\n{text}"
                )

    def _send_packets(
        self, device_run: DeviceRun, setups: Sequence[Setup], running: Running
    ) -> None:
        with self._tester(device_run, setups, running) as tester:
            running.ready(READY_DEADLINE_S)
            polled = self._forwards(device_run, tester, running)
            with self._slow(device_run):
                for point in self.points(device_run):
                    if point.key not in self._done:
                        self._point(device_run, point, tester, running, polled)

    def _run_applications(
        self, device_run: DeviceRun, setup: Setup, running: Running, private: Path
    ) -> None:
        private.chmod(0o711)  # a server that gives up root finds its files
        with TwoHosts(self._settings.tester_core) as hosts:
            running.ready(READY_DEADLINE_S)
            asked = Asked(
                self._applications(device_run),
                APPLICATION_S[self._settings.profile],
                self._settings.tester_core,
                self._settings.cores[0],
                (device_run.remark,) if device_run.remark else (),
            )
            measure(asked, hosts, setup, running, self._keep_application, private)

    @contextmanager
    def _slow(self, device_run: DeviceRun) -> Iterator[None]:
        """Slow down all cores that the device uses, where the device run asks for it."""
        with ExitStack() as slow:
            if device_run.cpu_speed != 1.0 and device_run.port_kind != "dummy":
                for core in self._cores(device_run):
                    slow.enter_context(slowed(core, device_run.cpu_speed))
            yield

    def _cores(self, device_run: DeviceRun) -> tuple[int, ...]:
        """Return the device's cores: the setup's own, where it has such."""
        return device_run.cores or self._settings.cores

    def _speed_note(self, device_run: DeviceRun) -> tuple[str, ...]:
        if device_run.cpu_speed == 1.0 or device_run.port_kind == "dummy":
            return ()
        return (f"CPU speed {device_run.cpu_speed:.0%}, {how(self._cores(device_run)[0])}",)

    def _tester(
        self, device_run: DeviceRun, setups: Sequence[Setup], running: Running
    ) -> AbstractContextManager[Tester]:
        if isinstance(running, RunningDummy):
            return nullcontext(
                DummyTester(running, seed=crc32(f"{device_run.name} {device_run.repeat}".encode()))
            )
        ends = enumerate(port for setup in setups for port in (setup.left, setup.right))
        ports = [device_run.device.tester_port(port, index) for index, port in ends]
        core = self._cores(device_run)[0]
        return ConvoyGen(ports, self._settings.tester_core, device_core=core)

    def _forwards(self, device_run: DeviceRun, tester: Tester, running: Running) -> tuple[int, ...]:
        """Send a little until nearly all of it comes back. Returns the threads that polled."""
        reason = ""
        for _ in range(PROBES_MAX):
            # 1: singly, and what comes back in convoys is taken apart.
            convoys = min(1, device_run.spec.convoys)
            chains = device_run.spec.chains
            probe = specification("64", PROBE_PPS, PROBE_S, convoys=convoys, chains=chains)
            before = thread_times(running.watched())
            result = tester.trial(probe)
            total = result.total
            if result.ok and total and total.received_pkts >= 0.9 * total.offered_pkts:
                return pollers(before, thread_times(running.watched()))
            reason = result.reason or ""
            if not running.alive():
                break
        raise ConvoyError(f"{device_run.what}: forwards nothing {f'({reason})' if reason else ''}")

    def _point(
        self,
        device_run: DeviceRun,
        point: Point,
        tester: Tester,
        running: Running,
        polled: tuple[int, ...],
    ) -> None:
        scenario, remark = self._scenarios[device_run.scenario], device_run.remark
        pacing = device_run.spec.pacing or scenario.pacing
        measurement = Measurement(
            point,
            tester,
            running,
            self._folder,
            self._cores(device_run)[0],
            (*((remark,) if remark else ()), *running.notes, *self._speed_note(device_run)),
            scenario.flows,
            device_run.spec.entries,
            self._kept.pop(point.key, ()),
            self._baseline.pps if self._baseline else None,
            device_run.spec.convoys,
            pacing.as_trial() if pacing is not None else None,
            device_run.spec.chains,
            polled,
            self._host_state,
        )
        search = Search(point=point, outcome="measured")
        if scenario.search:
            search = measurement.search(
                self._goals,
                self._guess.get(point.key[:-1]),
                LONGEST_S[self._settings.profile],
            )
            rate = search.rate("pdr") or search.rate("ndr")
            for load in scenario.latency if rate else ():
                if load == "idle":
                    self._latency(measurement, IDLE_PPS, "idle")
                else:
                    self._latency(measurement, float(load) * (rate or 0), f"{load:.0%} of PDR")
        purpose: Literal["latency", "rate"] = "rate" if scenario.figure.y == "ratio" else "latency"
        for fixed in scenario.rates_pps:
            last = self._latency(measurement, fixed, _rate_name(fixed), purpose)
            if last.verdict == "invalid" and last.load_not_reached:
                break  # higher ones cannot be offered either
        changed: dict[str, object] = {}
        if scenario.saturation:
            seconds = self._settings.latency_s
            changed["mrr_pps"] = measurement.saturation(scenario.saturation, seconds)
        changed |= {
            "trials": measurement.trials,
            "invalid": measurement.invalid,
            "load_not_reached": measurement.load_not_reached,
        }
        self._figures[point.key] = measurement.figures
        self._keep(search.model_copy(update=changed))

    def _latency(
        self,
        measurement: Measurement,
        rate_pps: float,
        load: str,
        purpose: Literal["latency", "rate"] = "latency",
    ) -> Trial:
        longer = min(LEAST_PKTS / rate_pps, LATENCY_LONGEST_S)
        return measurement.at(rate_pps, load, max(self._settings.latency_s, longer), purpose)


def _kind(device_run: DeviceRun) -> tuple[str, str, Role, bool]:
    return (
        device_run.scenario,
        device_run.device.name,
        device_run.role,
        bool(device_run.applications),
    )


def _log_name(device_run: DeviceRun) -> str:
    applied = "-applications" if device_run.applications else ""
    return f"{device_run.scenario}-{device_run.setup}-{device_run.name}{applied}"


def _rate_name(rate_pps: float) -> str:
    if rate_pps >= 1e6:
        return f"{rate_pps / 1e6:g} Mpps"
    return f"{rate_pps / 1e3:g} kpps" if rate_pps >= 1e3 else f"{rate_pps:g} pps"
