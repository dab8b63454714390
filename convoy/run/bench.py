# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Does a run: turn after turn, every trial kept; a device that fails is noted and left behind."""

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
from convoy.host.waited import pollers, thread_times
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.folder import RunFolder
from convoy.results.phase import Figures, charged, of_trial, slow_rounds
from convoy.results.scenario import Scenario
from convoy.results.trials import Point, PointKey, Role, Search, Trial
from convoy.run import once_more
from convoy.run.application import application
from convoy.run.application_turn import Asked, measure
from convoy.run.ceiling import Ceiling
from convoy.run.nearby import Nearby
from convoy.run.order import APPLICATION_S, Turn, both_ways_setup, chains_of, estimate_s
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
CEILING = "the tester against itself: its ceiling"
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
    once_more: float = 0.0  # share of a run's time to measure again what it knows too little of


@dataclass(frozen=True)
class Step:
    """What is told before each turn."""

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
        ceiling: Ceiling | None = None,
    ) -> None:
        """ceiling: the tester's, looked at again between rounds. None: the tester knows it."""
        self._ceiling = ceiling
        self._folder = folder
        self._scenarios = scenarios
        self._settings = settings
        self._progress = progress
        self._goals: tuple[Goal, ...] = goals(settings.goals, settings.profile)
        self._guess: dict[tuple[object, ...], float] = {}
        self._failures: dict[tuple[str, str, str, Role, float], int] = defaultdict(int)
        self._took: dict[tuple[str, str, Role, bool], list[float]] = defaultdict(list)
        self._done: dict[PointKey, Search] = {}
        self._ceilings: dict[PointKey, float] = {}  # the tester's, when a point was searched for
        self._nearby = Nearby()
        self._figures: dict[PointKey, list[Figures]] = defaultdict(
            list
        )  # that each point's trials are charged with
        self._applied: set[tuple[object, ...]] = set()  # applications' points that have ended
        self._kept: dict[PointKey, list[Trial]] = defaultdict(list)
        self._look_back()

    def _look_back(self) -> None:
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
            held = charged(trial)
            if held is not None:
                self._figures[trial.point.key].append(held)
            self._nearby.learn(of_trial(trial))

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

    def _applications(self, turn: Turn) -> list[ApplicationPoint]:
        """Return what is not measured yet of a turn with applications."""
        asked = self._scenarios[turn.scenario].applications
        assert asked is not None
        found = [
            ApplicationPoint(
                scenario=turn.scenario,
                setup=turn.setup,
                device=turn.device.name,
                functions=turn.spec.functions,
                port_kind=turn.port_kind,
                application=name,
                frame_bytes=size,
                repeat=turn.repeat,
            )
            for name in turn.applications
            for size in (asked.sizes if application(name).by_size else (None,))
        ]
        return [point for point in found if point.key not in self._applied]

    def _left(self, turn: Turn) -> int:
        """Return how many points of a turn are not measured yet."""
        if turn.applications:
            return len(self._applications(turn))
        return sum(point.key not in self._done for point in self.points(turn))

    def points(self, turn: Turn) -> list[Point]:
        """Return what a turn is to measure."""
        return [
            Point(
                scenario=turn.scenario,
                setup=turn.setup,
                device=turn.device.name,
                role=turn.role,
                functions=turn.spec.functions,
                port_kind=turn.port_kind,
                cpu_speed=turn.cpu_speed,
                size=str(size),
                repeat=turn.repeat,
            )
            for size in self._scenarios[turn.scenario].sizes
            if not turn.sizes or str(size) in turn.sizes
        ]

    def run(self, turns: tuple[Turn, ...]) -> None:
        """Do all turns that are not done yet. Raises KeyboardInterrupt and the like only.

        Then, in a bounded part of the time that took, once more those that tell too little.
        """
        began = time.monotonic()
        self._run(turns)
        end = time.monotonic() + self._settings.once_more * (time.monotonic() - began)
        for _ in range(once_more.ROUNDS):
            again = self._once_more(turns)
            fits, needed = [], 0.0
            for turn in again:
                needed += self._estimate(turn)
                if time.monotonic() + needed <= end:
                    fits.append(turn)
            if not fits:
                return
            self._run(fits)

    def _look_again(self, before: Turn | None, turn: Turn) -> None:
        """Look at the tester's ceiling again where a round begins."""
        fresh = before is None or (before.scenario, before.repeat) != (turn.scenario, turn.repeat)
        if self._ceiling is not None and fresh and self._ceiling.due() and not turn.applications:
            # It is not known better then; the run goes on.
            with suppress(ConvoyError):
                self._ceiling.look()

    def _once_more(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return a turn for each device and setup that is uncertain at some size."""
        rounds = max((turn.repeat + 1 for turn in turns), default=0)
        found = []
        for turn in turns:
            if turn.repeat or turn.applications or NO_RACE in turn.remark:
                continue
            searched = self._scenarios[turn.scenario].search
            known: dict[str, list[Search]] = defaultdict(list)
            keys = {point.key[:-1] for point in self.points(turn)}
            for key, search in self._done.items():
                if key[:-1] in keys:
                    known[search.point.size].append(search)
            sizes = [
                size
                for size, some in known.items()
                if once_more.uncertain(
                    some, rounds, sum(map(self._capped, some)), self._slow_rounds(some), searched
                )
            ]
            if sizes:
                last = max(search.point.repeat for size in sizes for search in known[size])
                found.append(replace(turn, repeat=last + 1, sizes=tuple(sizes)))
        return found

    def _slow_rounds(self, searches: Sequence[Search]) -> frozenset[int]:
        """Return the rounds of a point in which the machine was in a slow phase."""
        fast = self._nearby.fast
        keys = [search.point.key for search in searches]
        return slow_rounds({key[-1]: self._figures.get(key, []) for key in keys}, fast)

    def _capped(self, search: Search) -> bool:
        then, now = self._ceilings.get(search.point.key), self._ceiling and self._ceiling.pps
        return then is not None and once_more.capped(search, then, now or 0.0)

    def _run(self, turns: Sequence[Turn]) -> None:
        todo = [turn for turn in turns if self._left(turn)]
        before: Turn | None = None
        for index, turn in enumerate(todo):
            self._look_again(before, turn)
            before = turn
            left = sum(self._estimate(later) for later in todo[index:])
            self._progress(Step(turn.what, index, len(todo), left))
            setup = f"{turn.setup}{APPLIED}" if turn.applications else turn.setup
            failures = (turn.scenario, setup, turn.device.name, turn.role, turn.cpu_speed)
            if self._failures[failures] >= FAILURES_MAX * self._left(turn):
                continue
            began = time.monotonic()
            try:
                self._turn(turn)
            except ConvoyError as error:
                self._fail(turn, str(error))
            if not turn.sizes:
                self._took[_kind(turn)].append(time.monotonic() - began)

    def _estimate(self, turn: Turn) -> float:
        took = self._took[_kind(turn)]
        if took:
            part = len(turn.sizes) / len(self._scenarios[turn.scenario].sizes) if turn.sizes else 1
            return sum(took) / len(took) * part
        return estimate_s(turn, self._scenarios[turn.scenario], self._settings.profile)

    def _fail(self, turn: Turn, why: str) -> None:
        self._folder.log(_log_name(turn), f"# failed: {why}")
        for lost in self._applications(turn) if turn.applications else ():
            self._keep_application(
                ApplicationTrial(
                    point=lost,
                    outcome="failed",
                    why=why,
                    duration_s=0.0,
                    figure=application(lost.application).figure,
                )
            )
        if turn.applications:
            return
        for point in self.points(turn):
            if point.key not in self._done:
                self._keep(Search(point=point, outcome="failed", why=why))

    def _keep(self, search: Search) -> None:
        self._folder.append(search)
        self._done[search.point.key] = search
        if self._ceiling is not None and self._ceiling.pps is not None:
            self._ceilings[search.point.key] = self._ceiling.pps
        self._learn(search)

    def _keep_application(self, trial: ApplicationTrial) -> None:
        self._folder.append(trial)
        self._learn_application(trial)

    def _turn(self, turn: Turn) -> None:
        with private_folder() as private:
            setups = self._setups(turn, private)
            running: Running | None = None
            try:
                several = len(setups) > 1
                starting = Several(turn.device, setups) if several else turn.device.start(setups[0])
                with starting as running:
                    if turn.applications:
                        self._run_applications(turn, setups[0], running, private)
                    else:
                        self._send_packets(turn, setups, running)
            finally:
                self._log(turn, running)

    def _setups(self, turn: Turn, private: Path) -> tuple[Setup, ...]:
        """Return what the device is told: a setup for each chain, in folders that exist."""
        asked = turn.device, turn.spec, turn.port_kind, self._cores(turn), private
        setups = (both_ways_setup(*asked),) if turn.applications else chains_of(*asked)
        for setup in setups:
            setup.folder.mkdir(exist_ok=True)
        return tuple(replace(setup, hugepages=self._settings.hugepages) for setup in setups)

    def _log(self, turn: Turn, running: Running | None) -> None:
        """Keep what the device said."""
        for name, text in (running.output() if running is not None else {}).items():
            if text.strip():
                self._folder.log(_log_name(turn), f"# {name}, round {turn.repeat + 1}\n{text}")

    def _send_packets(self, turn: Turn, setups: Sequence[Setup], running: Running) -> None:
        with self._tester(turn, setups, running) as tester:
            running.ready(READY_DEADLINE_S)
            polled = self._forwards(turn, tester, running)
            with self._slow(turn):
                for point in self.points(turn):
                    if point.key not in self._done:
                        self._point(turn, point, tester, running, polled)

    def _run_applications(self, turn: Turn, setup: Setup, running: Running, private: Path) -> None:
        private.chmod(0o711)  # a server that gives up root finds its files
        with TwoHosts(self._settings.tester_core) as hosts:
            running.ready(READY_DEADLINE_S)
            asked = Asked(
                self._applications(turn),
                APPLICATION_S[self._settings.profile],
                self._settings.tester_core,
                self._settings.cores[0],
                (turn.remark,) if turn.remark else (),
            )
            measure(asked, hosts, setup, running, self._keep_application, private)

    @contextmanager
    def _slow(self, turn: Turn) -> Iterator[None]:
        """Slow down all cores that the device uses, where the turn asks for it."""
        with ExitStack() as slow:
            if turn.cpu_speed != 1.0 and turn.port_kind != "dummy":
                for core in self._cores(turn):
                    slow.enter_context(slowed(core, turn.cpu_speed))
            yield

    def _cores(self, turn: Turn) -> tuple[int, ...]:
        """Return the device's cores: the setup's own, where it has such."""
        return turn.cores or self._settings.cores

    def _speed_note(self, turn: Turn) -> tuple[str, ...]:
        if turn.cpu_speed == 1.0 or turn.port_kind == "dummy":
            return ()
        return (f"CPU speed {turn.cpu_speed:.0%}, {how(self._cores(turn)[0])}",)

    def _tester(
        self, turn: Turn, setups: Sequence[Setup], running: Running
    ) -> AbstractContextManager[Tester]:
        if isinstance(running, RunningDummy):
            return nullcontext(
                DummyTester(running, seed=crc32(f"{turn.name} {turn.repeat}".encode()))
            )
        ends = enumerate(port for setup in setups for port in (setup.left, setup.right))
        ports = [turn.device.tester_port(port, index) for index, port in ends]
        core = self._cores(turn)[0]
        return ConvoyGen(ports, self._settings.tester_core, device_core=core)

    def _forwards(self, turn: Turn, tester: Tester, running: Running) -> tuple[int, ...]:
        """Send a little until nearly all of it comes back. Returns the threads that polled."""
        reason = ""
        for _ in range(PROBES_MAX):
            # 1: singly, and what comes back in convoys is taken apart.
            convoys = min(1, turn.spec.convoys)
            chains = turn.spec.chains
            probe = specification("64", PROBE_PPS, PROBE_S, convoys=convoys, chains=chains)
            before = thread_times(running.watched())
            result = tester.trial(probe)
            total = result.total
            if result.ok and total and total.received_pkts >= 0.9 * total.offered_pkts:
                return pollers(before, thread_times(running.watched()))
            reason = result.reason or ""
            if not running.alive():
                break
        raise ConvoyError(f"{turn.what}: forwards nothing {f'({reason})' if reason else ''}")

    def _point(
        self,
        turn: Turn,
        point: Point,
        tester: Tester,
        running: Running,
        polled: tuple[int, ...],
    ) -> None:
        scenario, remark = self._scenarios[turn.scenario], turn.remark
        pacing = turn.spec.pacing or scenario.pacing
        measurement = Measurement(
            point,
            tester,
            running,
            self._folder,
            self._cores(turn)[0],
            (*((remark,) if remark else ()), *running.notes, *self._speed_note(turn)),
            scenario.flows,
            turn.spec.entries,
            self._kept.pop(point.key, ()),
            self._ceiling.pps if self._ceiling else None,
            turn.spec.convoys,
            pacing.as_trial() if pacing is not None else None,
            turn.spec.chains,
            polled,
            self._nearby,
        )
        search = Search(point=point, outcome="found")
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
            if last.verdict == "spoilt" and last.unoffered:
                break  # higher ones cannot be offered either
        changed: dict[str, object] = {}
        if scenario.full_speed:
            seconds = self._settings.latency_s
            changed["overload_pps"] = measurement.full_speed(scenario.full_speed, seconds)
        changed |= {
            "trials": measurement.trials,
            "spoilt": measurement.spoilt,
            "unoffered": measurement.unoffered,
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


def _kind(turn: Turn) -> tuple[str, str, Role, bool]:
    return turn.scenario, turn.device.name, turn.role, bool(turn.applications)


def _log_name(turn: Turn) -> str:
    applied = "-applications" if turn.applications else ""
    return f"{turn.scenario}-{turn.setup}-{turn.name}{applied}"


def _rate_name(rate_pps: float) -> str:
    if rate_pps >= 1e6:
        return f"{rate_pps / 1e6:g} Mpps"
    return f"{rate_pps / 1e3:g} kpps" if rate_pps >= 1e3 else f"{rate_pps:g} pps"
