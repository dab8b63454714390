# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One point of a benchmark: a running device, one frame size. Every trial is kept."""

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from convoy.dut.base import Running
from convoy.errors import ConvoyError
from convoy.host.cpu_time import core_time, cpu_ns
from convoy.host.priority import uninterrupted
from convoy.host.waited import pollers, softirqs, thread_times, waited_ns
from convoy.results.folder import RunFolder
from convoy.results.phase import Figures, charged, figures, of_trial
from convoy.results.trial_result import TrialResult
from convoy.results.trials import FULL_SPEED, Cost, Goal, Point, Search, Trial
from convoy.run.judge import (
    LOSS_RATIO,
    MOST_DISTURBED,
    Purpose,
    disturbed,
    judge,
    judge_overload,
    kept,
    unoffered,
)
from convoy.run.nearby import Nearby
from convoy.run.workload import flows, size_of
from convoy.search.goals import Goal as Wanted
from convoy.tester.base import Tester

LATENCY_TRIES = 5  # where the machine spoils a trial
REFUSALS = 2  # trials that could not be offered, after which it is not tried again
PAUSE_S = 0.02  # after a trial that the machine spoilt; twice that after the next one, and so on
PAUSES_MAX = 5
OVERLOAD_TRIES = 3
START_PPS = 1e6  # where nothing came through under overload
MOST_PPS = 200e6  # to search up to where the tester's ceiling is not known, as with convoys
CEILING_SHARE = 0.95  # of the tester's ceiling, that it can offer evenly paced
DRAIN_S = 0.02
SOON_S = 0.001
IDLE_PPS = 1000.0
LOOK_PPS, LOOK_S = 20_000.0, 0.001  # a trial of which only the probe is asked
SLOW_TRIES = 2  # of a latency trial, where the machine was in a slow phase


def specification(
    size: str,
    rate_pps: float | None,
    duration_s: float,
    flow_count: int = 1000,
    entries: int = 1,
    convoys: int = 0,
    pacing: Mapping[str, float] | None = None,
    chains: int = 1,
) -> dict[str, Any]:
    """Return a trial as the tester takes it; without a rate: as much as possible.

    convoys: packets that are sent in one frame; 0: each is a frame. pacing: as the tester has it;
    None: evenly. chains: independent ones, each with a pair of ports, which share the rate.
    """
    together: dict[str, Any] = {"convoys": convoys} if convoys else {}
    bursty: dict[str, Any] = {"pacing": dict(pacing)} if pacing and rate_pps is not None else {}
    paths = {"paths": [f"{2 * i}>{2 * i + 1}" for i in range(chains)]} if chains > 1 else {}
    return {
        **together,
        **bursty,
        **paths,
        "rate_pps": "max" if rate_pps is None else rate_pps / chains,
        "duration_s": duration_s,
        "drain_s": DRAIN_S,
        "size": size_of(size),
        "flows": flows(flow_count, entries),
        # What a device does not take when it is due is lost, as on a wire.
        "on_full": "wait" if rate_pps is None else "drop",
    }


def in_kernel(port_kind: str) -> bool:
    """Return whether packets of such ports cross the kernel, whose threads work on any core."""
    return port_kind.startswith("af_") or port_kind == "tap"


class Measurement:
    """Measures one point. Trials that an earlier, interrupted run has kept are not done again."""

    def __init__(
        self,
        point: Point,
        tester: Tester,
        running: Running,
        folder: RunFolder,
        core: int,
        notes: Sequence[str] = (),
        flow_count: int = 1000,
        entries: int = 1,
        earlier: Iterable[Trial] = (),
        ceiling_pps: float | None = None,
        convoys: int = 0,
        pacing: Mapping[str, float] | None = None,
        chains: int = 1,
        polled: tuple[int, ...] = (),
        nearby: Nearby | None = None,
    ) -> None:
        """core: the device's. earlier: the trials of this point that there are already.

        polled: the threads that are known to poll for packets. nearby: what the run knows of the
        machine's phases.
        """
        self._point = point
        self._tester = tester
        self._running = running
        self._folder = folder
        self._core = core
        self._notes = tuple(notes)
        self._flow_count, self._entries = flow_count, entries
        self._kept = list(earlier)
        self._convoys, self._pacing, self._chains = convoys, pacing, chains
        # It is that of single packets.
        self._ceiling_pps = None if convoys else ceiling_pps or tester.ceiling_pps
        self._nearby = nearby or Nearby()
        self._fast = True  # what is slow from there on is another machine's
        self._pauses = 0  # in a row
        self._pollers = polled  # then, as the trial before has shown
        self._in_kernel = in_kernel(point.port_kind)
        self._softirqs = softirqs() if self._in_kernel else ()
        self.trials = 0
        self.spoilt = 0
        self.unoffered = 0
        self.figures: list[Figures] = []  # of the machine, that trials are charged with

    def _trial(
        self,
        purpose: Purpose,
        rate_pps: float | None,
        duration_s: float,
        load: str = "",
        loss_ratio: float = LOSS_RATIO,
    ) -> Trial:
        self.trials += 1
        trial = self._again(purpose, rate_pps, duration_s)
        if trial is None:
            trial = self._measure(purpose, rate_pps, duration_s, load, loss_ratio)
            self._folder.append(trial)
            self._wait(trial)
        held = charged(trial)
        if held is not None:
            self.figures.append(held)
        self._nearby.learn(of_trial(trial))
        self.spoilt += trial.verdict == "spoilt" and not trial.unoffered
        self.unoffered += trial.unoffered
        return trial

    def _wait(self, trial: Trial) -> None:
        """After a trial that the machine spoilt: what disturbed it may go away."""
        bad = trial.verdict == "spoilt" and disturbed(
            trial.result, trial.device_waited_ns, own=trial.kernel_ns
        )
        bad = bad and not trial.unoffered
        if trial.verdict == "spoilt" and self._slow(trial.result):
            # Where it does not pass, what comes is measured as it is.
            self._fast = self._wait_for_fast()
        elif bad:
            time.sleep(PAUSE_S * 2 ** min(self._pauses, PAUSES_MAX))
        self._pauses = self._pauses + 1 if bad else 0

    def _machine(self, result: TrialResult) -> Figures:
        return figures(result, self._point.cpu_speed)

    def _slow(self, result: TrialResult) -> bool:
        return self._nearby.slow(self._machine(result))

    def _wait_for_fast(self) -> bool:
        """Wait until the machine is in its fast phase; returns whether it is."""
        asked = specification("64", LOOK_PPS, LOOK_S, convoys=min(1, self._convoys),
                              chains=self._chains)  # fmt: skip
        return self._nearby.wait(lambda: self._machine(self._tester.trial(asked)))

    def _again(self, purpose: Purpose, rate_pps: float | None, duration_s: float) -> Trial | None:
        """Return the kept trial that this one would be."""
        if self._kept:
            first = self._kept[0]
            if (first.purpose, first.rate_pps, first.duration_s) == (purpose, rate_pps, duration_s):
                return self._kept.pop(0)
            self._kept.clear()  # another path from here on
        return None

    def _measure(
        self,
        purpose: Purpose,
        rate_pps: float | None,
        duration_s: float,
        load: str,
        loss_ratio: float,
    ) -> Trial:
        running, pids = self._running, self._running.processes()
        before, cost = running.counters(), running.cost()
        used_ns, core = cpu_ns(pids), core_time(self._core)
        asked = specification(
            self._point.size,
            rate_pps,
            duration_s,
            self._flow_count,
            self._entries,
            self._convoys,
            self._pacing,
            self._chains,
        )
        began_ns = time.monotonic_ns()
        with uninterrupted(self._alone(), duration_s + DRAIN_S) as alone:
            if alone:
                time.sleep(SOON_S)  # a wait is counted when it ends, which it now does
            kernel = thread_times(self._softirqs)
            threads = thread_times(running.watched())
            result = self._tester.trial(asked)
            threads_after = thread_times(running.watched())
        if not running.alive():
            raise ConvoyError(f"{self._point.device}: ended in the middle of a trial")
        own = sum(t.ran_ns for t in thread_times(self._softirqs).values())
        own -= sum(thread.ran_ns for thread in kernel.values())
        self._pollers = pollers(threads, threads_after)
        # The probe had the device's core before and after.
        probe_ns = result.probe.took_ns if result.probe else 0
        waited = max(0, waited_ns(threads, threads_after) - probe_ns)
        if self._point.cpu_speed != 1.0:
            waited = 0  # whoever takes the core away does so on purpose
        used_ns, elapsed_ns = cpu_ns(pids) - used_ns, time.monotonic_ns() - began_ns
        busy = core_time(self._core).share_since(core)
        if purpose == "overload":
            verdict = judge_overload(result, waited, own)
        else:
            verdict = judge(result, waited, loss_ratio)
            most = MOST_DISTURBED.get(purpose)
            if most is not None and disturbed(result, waited, most, own):
                verdict = "spoilt"
            if verdict == "failed" and purpose == "search" and self._fast and self._slow(result):
                verdict = "spoilt"  # it might have kept up, had the machine stayed as it was
        cost_after = running.cost()
        return Trial(
            point=self._point,
            purpose=purpose,
            load=load,
            rate_pps=rate_pps,
            duration_s=duration_s,
            verdict=verdict,
            unoffered=verdict == "spoilt" and unoffered(result, own),
            commands=tuple(running.command_lines),
            notes=self._notes,
            result=kept(result, purpose),
            device_waited_ns=waited,
            uninterrupted=alone,
            kernel_ns=own,
            elapsed_ns=elapsed_ns,
            device_cpu_ns=used_ns if pids else None,
            core_busy_share=busy,
            cost=Cost(
                cycles=cost_after.busy_cycles - cost.busy_cycles,
                packets=cost_after.packets - cost.packets,
                source=cost_after.source,
            )
            if cost is not None and cost_after is not None
            else None,
            device_before=before,
            device_after=running.counters(),
            ended_unix_s=round(time.time(), 3),
        )

    def _alone(self) -> tuple[int, ...]:
        """Return the threads that need nobody else during a trial: the tester's and the device's.

        None where there is more than one poll loop on a core and they do not yield to each other,
        where the kernel's own threads do the device's work, or where the core is taken away on
        purpose.
        """
        tester, loops = self._tester.thread, self._running.yielders()
        if not loops and len(self._pollers) == 1 and self._running.polls_alone:
            loops = self._pollers
        if tester is None or self._in_kernel or not loops or self._point.cpu_speed != 1.0:
            return ()
        return (tester, *loops)

    def _overload(self, duration_s: float) -> Trial:
        """Measure what comes through under more than the device can take."""
        for _ in range(OVERLOAD_TRIES):
            trial = self._trial("overload", None, duration_s)
            if trial.verdict != "spoilt":
                break
        return trial

    def search(
        self, goals: Sequence[Wanted], guess_pps: float | None, longest_s: float = 1200.0
    ) -> Search:
        """Find the rates that meet the goals. guess_pps: what an earlier repeat found.

        longest_s: how long that may take; what is not known by then is missing or irregular.
        """
        from convoy.search.mlr import Answer, Nothing, search  # half a second, wherever it stands

        began = time.monotonic()
        self._fast = bool(self._kept) or self._wait_for_fast()
        strictest = min(goal.loss_ratio for goal in goals)
        # Overload is no result, but a place to begin: an earlier repeat may have had a bad moment.
        flat_out = self._overload(goals[0].trial_s)
        overload = flat_out.received_pps
        # The ceiling may be of a slower moment: what came through now, it can offer and take.
        ceiling = max(self._ceiling_pps or MOST_PPS / CEILING_SHARE, overload or 0.0)
        most = ceiling * CEILING_SHARE
        if self._in_kernel and flat_out.sent_pps:
            # The tester's core does the kernel's work: this is all that can be offered.
            most = min(most, flat_out.sent_pps)

        def measure(rate_pps: float, duration_s: float) -> Answer | Nothing:
            trial = self._trial("search", rate_pps, duration_s, loss_ratio=strictest)
            if trial.verdict == "spoilt":
                return Nothing.UNOFFERED if trial.unoffered else Nothing.DISTURBED
            total = trial.result.total
            if total is None:
                return Nothing.DISTURBED
            return Answer(max(total.offered_pkts, total.lost_pkts), total.lost_pkts)

        guess = max(guess_pps or 0.0, overload or START_PPS)
        found = search(measure, goals, most, guess, longest_s)
        return Search(
            point=self._point,
            outcome="found",
            goals=tuple(Goal(**asdict(goal)) for goal in found),
            overload_pps=overload if flat_out.verdict != "spoilt" else None,
            trials=self.trials,
            spoilt=self.spoilt,
            unoffered=self.unoffered,
            seconds=round(time.monotonic() - began, 3),
        )

    def full_speed(self, trials: int, duration_s: float) -> float | None:
        """Return what came in a second, the median of trials that the machine left alone.

        The tester waits where a device does not take more: what is measured is the device, or,
        where that has time left, the tester. None: the machine spoilt all.
        """
        found: list[float] = []
        for _ in range(trials * LATENCY_TRIES):
            trial = self._trial("overload", None, duration_s, FULL_SPEED)
            if trial.verdict != "spoilt" and trial.received_pps:
                found.append(trial.received_pps)
            if len(found) == trials:
                break
        return statistics.median(found) if found else None

    def at(
        self,
        rate_pps: float,
        load: str,
        duration_s: float,
        purpose: Literal["latency", "rate"] = "latency",
    ) -> Trial:
        """Measure at a rate; a trial that the machine spoilt is done again.

        purpose: latency, or only what came and in which frames, which bears longer pauses.
        """
        refused = slow = 0
        for _ in range(LATENCY_TRIES):
            if not self._kept:
                self._wait_for_fast()
            trial = self._trial(purpose, rate_pps, duration_s, load)
            refused += trial.unoffered
            slow += self._slow(trial.result)
            done = trial.verdict != "spoilt" and (
                slow in (0, SLOW_TRIES) or not self._slow(trial.result)
            )
            if done or refused == REFUSALS:
                break
        return trial
