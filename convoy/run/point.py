# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One point of a benchmark: a running device, one frame size. Every trial is kept."""

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from convoy.dut.base import Running
from convoy.errors import ConvoyError
from convoy.host.priority import uninterrupted
from convoy.host.run_queue import pollers, run_queue_delay_ns, softirqs, thread_times
from convoy.results.folder import RunFolder
from convoy.results.host_state import Figures, attributed, figures, of_trial
from convoy.results.trial_result import TrialResult
from convoy.results.trials import SATURATION, GoalResult, Point, Search, Trial
from convoy.run.changing import Changing
from convoy.run.device_cost import Spent, between
from convoy.run.flow_order import FlowOrder
from convoy.run.host_state import HostState
from convoy.run.verdict import (
    LOSS_RATIO,
    MOST_DISTURBED,
    Purpose,
    disturbed,
    kept,
    load_not_reached,
    mrr_verdict_of,
    verdict_of,
    wrong,
)
from convoy.run.workload import flows, size_of, stateful_flows
from convoy.search.goals import Goal
from convoy.tester.base import Tester

LATENCY_TRIES = 5  # where trials are invalid
REFUSALS = 2  # trials that could not be offered, after which it is not tried again
PAUSE_S = 0.02  # after an invalid trial; twice that after the next one, and so on
PAUSES_MAX = 5
OVERLOAD_TRIES = 3
START_PPS = 1e6  # where the MRR is zero
MOST_PPS = 200e6  # to search up to where no baseline rate is known, as with convoys
BASELINE_SHARE = 0.95  # of the tester's baseline rate, that it can offer evenly paced
DRAIN_S = 0.02
SOON_S = 0.001
IDLE_PPS = 1000.0
TCP_BYTES = 72  # with FCS: a segment and the tester's stamp
PROBE_PPS, PROBE_S = 20_000.0, 0.001  # a trial for its probe alone
DEGRADED_TRIES = 2  # of a latency trial on a degraded host


@dataclass(frozen=True)
class Load:
    """What is sent, at whatever rate."""

    flows: int = 1000
    entries: int = 1  # routes of the router that all flows are to meet
    convoys: int = 0  # packets in one frame; 0: each is a frame
    pacing: Mapping[str, float] | None = None  # as the tester has it; None: evenly
    chains: int = 1  # independent ones, each with a pair of ports, which share the rate
    stateful: bool = False  # from hosts behind stateful functions
    connections: Literal["udp", "tcp"] | None = None  # each packet begins one; None: known flows
    idle_s: float | None = None  # after which connections are forgotten
    service: str | None = None  # that all flows are to; None: to all that a router knows
    capture: str = ""  # a file that is replayed, in place of frames of a size and of flows

    def plain(self) -> "Load":
        """Return the simplest load of these ports: convoys come back disaggregated, and counted."""
        return Load(convoys=min(1, self.convoys), chains=self.chains, stateful=self.stateful)


PLAIN = Load()


def specification(
    size: str, rate_pps: float | None, duration_s: float, load: Load = PLAIN, first: int = 0
) -> dict[str, Any]:
    """Return a trial as the tester takes it; without a rate: as much as possible.

    first: flow that it begins with, of hosts behind stateful functions.
    """
    traffic: dict[str, Any]
    if load.capture:
        traffic = {"capture": {"file": load.capture, "timing": "rate"}}
    elif load.stateful:
        traffic = {"flows": stateful_flows(load.flows, load.connections or "udp", first)}
    else:
        traffic = {"flows": flows(load.flows, load.entries, load.service)}
    if not load.capture:
        tcp = load.connections == "tcp"
        traffic["size"] = max(TCP_BYTES, int(size)) if tcp else size_of(size)
    convoys: dict[str, Any] = {"convoys": load.convoys} if load.convoys else {}
    bursty = {"pacing": dict(load.pacing)} if load.pacing and rate_pps is not None else {}
    chains = load.chains
    paths = {"paths": [f"{2 * i}>{2 * i + 1}" for i in range(chains)]} if chains > 1 else {}
    return {
        **convoys,
        **bursty,
        **paths,
        **traffic,
        "rate_pps": "max" if rate_pps is None else rate_pps / chains,
        "duration_s": duration_s,
        "drain_s": DRAIN_S,
        # What a device does not take when it is due is lost, as on a wire.
        "on_full": "wait" if rate_pps is None else "drop",
    }


@dataclass(frozen=True)
class Testbed:
    """A tester and a running device between its ports."""

    tester: Tester
    running: Running
    folder: RunFolder  # of all trials
    core: int  # the device's
    host: HostState
    polled: tuple[int, ...] = ()  # threads that are known to poll for packets
    changing: Changing | None = None  # None: the device's configuration stays


def in_kernel(port_kind: str) -> bool:
    """Return whether packets of such ports cross the kernel, whose threads work on any core."""
    return port_kind.startswith("af_") or port_kind == "tap"


def _spent(before_ns: int | None, after_ns: int | None) -> int | None:
    return None if before_ns is None or after_ns is None else after_ns - before_ns


class Measurement:
    """Measures one point. Trials that an earlier, interrupted run has kept are not done again."""

    def __init__(
        self,
        point: Point,
        testbed: Testbed,
        load: Load = PLAIN,
        notes: Sequence[str] = (),
        earlier: Iterable[Trial] = (),
        baseline_pps: float | None = None,
    ) -> None:
        """earlier: the trials of this point that there are already."""
        self._point = point
        self._tester, self._running = testbed.tester, testbed.running
        self._folder, self._core = testbed.folder, testbed.core
        self._host_state = testbed.host
        self._changing = testbed.changing
        self._load = load
        self._order = FlowOrder(load.flows, load.idle_s)
        self._notes = tuple(notes)
        self._kept = list(earlier)
        # It is that of single packets.
        self._baseline_pps = None if load.convoys else baseline_pps or self._tester.baseline_pps
        self._nominal = True  # else all from there on is measured as it is
        self._pauses = 0  # in a row
        self._pollers = testbed.polled  # then, as the trial before has shown
        self._in_kernel = self._running.in_kernel or in_kernel(point.port_kind)
        self._softirqs = softirqs() if self._in_kernel else ()
        self.trials = 0
        self.invalid = 0
        self.load_not_reached = 0
        self.figures: list[Figures] = []  # of the host, that trials are attributed with

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
        held = attributed(trial)
        if held is not None:
            self.figures.append(held)
        self._host_state.learn(of_trial(trial))
        self.invalid += trial.verdict == "invalid" and not trial.load_not_reached
        self.load_not_reached += trial.load_not_reached
        return trial

    def _wait(self, trial: Trial) -> None:
        """After an invalid trial: what disturbed it may go away."""
        bad = trial.verdict == "invalid" and disturbed(
            trial.result, trial.device_run_queue_delay_ns, own=trial.kernel_ns
        )
        bad = bad and not trial.load_not_reached
        if trial.verdict == "invalid" and self._degraded(trial.result):
            # Where it does not pass, what comes is measured as it is.
            self._nominal = self._wait_for_nominal()
        elif bad:
            time.sleep(PAUSE_S * 2 ** min(self._pauses, PAUSES_MAX))
        self._pauses = self._pauses + 1 if bad else 0

    def _machine(self, result: TrialResult) -> Figures:
        return figures(result, self._point.cpu_speed)

    def _degraded(self, result: TrialResult) -> bool:
        return self._host_state.degraded(self._machine(result))

    def _wait_for_nominal(self) -> bool:
        """Wait until the host is nominal; returns whether it is."""
        trial_specification = specification("64", PROBE_PPS, PROBE_S, self._load.plain())
        return self._host_state.wait(lambda: self._machine(self._tester.trial(trial_specification)))

    def _specification(self, rate_pps: float | None, duration_s: float) -> dict[str, Any]:
        load = self._load
        if not load.stateful:
            return specification(self._point.size, rate_pps, duration_s, load)
        result = specification(self._point.size, rate_pps, duration_s, load, self._order.first())
        if load.connections is not None:
            result |= {"answers": True, "packets": self._order.most}
        return result

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
        running = self._running
        trial_specification = self._specification(rate_pps, duration_s)
        before, cost = running.counters(), Spent.now(running)
        if self._changing is not None:
            self._changing.take()  # what came before
        used_ns, core = running.cpu_ns(), running.core_time(self._core)
        began_ns = time.monotonic_ns()
        with uninterrupted(self._alone(), duration_s + DRAIN_S) as alone:
            if alone:
                time.sleep(SOON_S)  # a wait is counted when it ends, which it now does
            kernel = thread_times(self._softirqs)
            threads = running.thread_times()
            result = self._tester.trial(trial_specification)
            threads_after = running.thread_times()
        if result.total is not None:
            self._order.sent(result.total.sent_pkts)
        if not running.alive():
            raise ConvoyError(f"{self._point.device}: ended in the middle of a trial")
        own = sum(t.ran_ns for t in thread_times(self._softirqs).values())
        own -= sum(thread.ran_ns for thread in kernel.values())
        self._pollers = pollers(threads, threads_after)
        # The probe had the device's core before and after.
        probe_ns = result.probe.took_ns if result.probe else 0
        waited = max(0, run_queue_delay_ns(threads, threads_after) - probe_ns)
        if self._point.cpu_speed != 1.0 or self._changing is not None:
            waited = 0  # whoever takes the core away does so on purpose
        used_after_ns, elapsed_ns = running.cpu_ns(), time.monotonic_ns() - began_ns
        busy = running.core_time(self._core).share_since(core)
        if purpose == "mrr":
            verdict = mrr_verdict_of(result, waited, own)
        else:
            verdict = verdict_of(result, waited, loss_ratio)
            most = MOST_DISTURBED.get(purpose)
            if most is not None and disturbed(result, waited, most, own):
                verdict = "invalid"
            if (
                verdict == "failed"
                and purpose == "search"
                and self._nominal
                and self._degraded(result)
            ):
                verdict = "invalid"  # it might have kept up, had the machine stayed as it was
        whole, parts = between(cost, Spent.now(running))
        return Trial(
            point=self._point,
            purpose=purpose,
            load=load,
            rate_pps=rate_pps,
            duration_s=duration_s,
            verdict=verdict,
            load_not_reached=verdict == "invalid" and load_not_reached(result, own),
            commands=tuple(running.command_lines),
            notes=self._notes,
            result=kept(result, purpose),
            device_run_queue_delay_ns=waited,
            uninterrupted=alone,
            kernel_ns=own,
            elapsed_ns=elapsed_ns,
            device_cpu_ns=_spent(used_ns, used_after_ns),
            core_busy_share=busy,
            cost=whole,
            part_costs=parts,
            device_before=before,
            device_after=running.counters(),
            changes_ns=self._changing.take() if self._changing is not None else None,
            ended_unix_s=round(time.time(), 3),
        )

    def _alone(self) -> tuple[int, ...]:
        """Return the threads that need nobody else during a trial: the tester's and the device's.

        None where there is more than one poll loop on a core and they do not yield to each other,
        where the kernel's own threads do the device's work, or where the core is taken away on
        purpose.
        """
        tester, loops = self._tester.thread, self._running.cooperative_threads()
        if not loops and len(self._pollers) == 1 and self._running.polls_alone:
            loops = self._pollers
        if tester is None or self._in_kernel or not loops or self._point.cpu_speed != 1.0:
            return ()
        if self._changing is not None:
            return (tester,)  # changes may need the device's core
        return (tester, *loops)

    def _mrr(self, duration_s: float) -> Trial:
        """Measure the maximum receive rate (MRR)."""
        for _ in range(OVERLOAD_TRIES):
            trial = self._trial("mrr", None, duration_s)
            if trial.verdict != "invalid":
                break
        return trial

    def search(
        self, goals: Sequence[Goal], guess_pps: float | None, longest_s: float = 1200.0
    ) -> Search:
        """Find the rates that meet the goals. guess_pps: what an earlier repeat found.

        longest_s: how long that may take; what is not known by then is missing or irregular.
        """
        from convoy.search.mlr import Answer, Nothing, search  # half a second, wherever it stands

        began = time.monotonic()
        self._nominal = bool(self._kept) or self._wait_for_nominal()
        strictest = min(goal.loss_ratio for goal in goals)
        # The MRR is no result, but a place to begin: an earlier repeat may have had a bad moment.
        trial_at_max = self._mrr(goals[0].trial_s)
        mrr = trial_at_max.received_pps if trial_at_max.verdict != "failed" else None
        # The baseline may be of a degraded moment: what came through now, it can offer and take.
        baseline = max(self._baseline_pps or MOST_PPS / BASELINE_SHARE, mrr or 0.0)
        most = baseline * BASELINE_SHARE
        if self._in_kernel and trial_at_max.sent_pps:
            # The tester's core does the kernel's work: this is all that can be offered.
            most = min(most, trial_at_max.sent_pps)

        def measure(rate_pps: float, duration_s: float) -> Answer | Nothing:
            trial = self._trial("search", rate_pps, duration_s, loss_ratio=strictest)
            if trial.verdict == "invalid":
                return Nothing.LOAD_NOT_REACHED if trial.load_not_reached else Nothing.DISTURBED
            total = trial.result.total
            if total is None:
                return Nothing.DISTURBED
            offered = max(total.offered_pkts, total.lost_pkts)
            return Answer(offered, offered if wrong(trial.result) else total.lost_pkts)

        guess = max(guess_pps or 0.0, mrr or START_PPS)
        result = search(measure, goals, most, guess, longest_s)
        return Search(
            point=self._point,
            outcome="measured",
            goals=tuple(GoalResult(**asdict(goal)) for goal in result),
            mrr_pps=mrr if trial_at_max.verdict != "invalid" else None,
            trials=self.trials,
            invalid=self.invalid,
            load_not_reached=self.load_not_reached,
            seconds=round(time.monotonic() - began, 3),
        )

    def saturation(self, trials: int, duration_s: float) -> float | None:
        """Return what came in a second, the median of trials that the machine left alone.

        The tester waits where a device does not take more: what is measured is the device, or,
        where that has time left, the tester. None: all were invalid, or had wrong packets.
        """
        result: list[float] = []
        for _ in range(trials * LATENCY_TRIES):
            trial = self._trial("mrr", None, duration_s, SATURATION)
            if trial.verdict == "passed" and trial.received_pps:
                result.append(trial.received_pps)
            if len(result) == trials:
                break
        return statistics.median(result) if result else None

    def at(
        self,
        rate_pps: float,
        load: str,
        duration_s: float,
        purpose: Literal["latency", "rate"] = "latency",
    ) -> Trial:
        """Measure at a rate; an invalid trial is repeated.

        purpose: latency, or only what came and in which frames, which bears longer pauses.
        """
        refused = degraded = 0
        for _ in range(LATENCY_TRIES):
            if not self._kept:
                self._wait_for_nominal()
            trial = self._trial(purpose, rate_pps, duration_s, load)
            refused += trial.load_not_reached
            degraded += self._degraded(trial.result)
            done = trial.verdict != "invalid" and (
                degraded in (0, DEGRADED_TRIES) or not self._degraded(trial.result)
            )
            if done or refused == REFUSALS:
                break
        return trial
