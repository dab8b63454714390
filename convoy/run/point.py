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
from convoy.results.folder import RunFolder
from convoy.results.trials import FULL_SPEED, Cost, Goal, Point, Search, Trial
from convoy.run.workload import flows, size_of
from convoy.search.goals import Goal as Wanted
from convoy.search.mlr import Answer, Nothing, search
from convoy.tester.base import Tester

LOSS_RATIO = 0.005  # a rate at which no more is lost counts as kept up with (PDR)
LATENCY_TRIES = 5  # where the machine spoils a trial
REFUSALS = 2  # trials that could not be offered, after which it is not tried again
PAUSE_S = 0.02  # after a trial that the machine spoilt; twice that after the next one, and so on
PAUSES_MAX = 5
# Of a trial at a fixed rate: beyond that, its latencies, or its frames, are the machine's.
MOST_DISTURBED = {"latency": 0.01, "rate": 0.05}
DISTURBED = 0.001  # of a trial: who was kept off its core for longer was disturbed
START_PPS = 1e6  # where nothing came through under overload
MOST_PPS = 50e6  # to search up to where the tester's ceiling is not known
CEILING_SHARE = 0.95  # of the tester's ceiling, that it can offer evenly paced
DRAIN_S = 0.02
IDLE_PPS = 1000.0

Purpose = Literal["overload", "search", "latency", "rate"]
Verdict = Literal["passed", "failed", "spoilt"]


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


def judge(result: Mapping[str, Any], waited_ns: int = 0, loss_ratio: float = LOSS_RATIO) -> Verdict:
    """Return what a trial's result says about the device, which others kept from running so long.

    Losses that a pause of the tester or of the device's core explains are not the device's.
    """
    total = result.get("total") or {}
    ratio = total.get("loss_ratio")
    if not result.get("ok") or ratio is None:
        return "spoilt"
    if ratio <= loss_ratio:
        return "passed"
    # While it could not run, a device can have lost no more than what came in that time.
    away = waited_ns / result["duration_ns"] if result.get("duration_ns") else 0.0
    return "spoilt" if ratio - away <= loss_ratio or result.get("suspect") else "failed"


def without_histograms(value: Any) -> Any:
    """Return a result without its histograms, which are most of its bytes; quantiles stay."""
    if isinstance(value, dict):
        return {k: without_histograms(v) for k, v in value.items() if k != "histogram_ns"}
    return [without_histograms(item) for item in value] if isinstance(value, list) else value


def kept(result: dict[str, Any], purpose: Purpose) -> dict[str, Any]:
    """Return what is kept of a result: all; but histograms of latency trials alone, and once."""
    if purpose != "latency":
        return dict(without_histograms(result))
    paths = result.get("paths") or []
    return {**result, "paths": without_histograms(paths)} if len(paths) == 1 else result


def paused(result: Mapping[str, Any], waited_ns: int) -> float:
    """Return for which share of a trial others kept the tester or the device off its core."""
    lost = (result.get("tester") or {}).get("lost_time") or {}
    longest_ns = max(waited_ns, int(lost.get("descheduled_ns") or 0))
    return longest_ns / result["duration_ns"] if result.get("duration_ns") else 0.0


def disturbed(result: Mapping[str, Any], waited_ns: int, share: float = DISTURBED) -> bool:
    """Return whether others kept the tester or the device off its core for so much of a trial."""
    return bool(result.get("suspect")) or paused(result, waited_ns) > share


def unoffered(trial: Trial) -> bool:
    """Return whether the tester could not offer what was asked for."""
    return trial.tester.get("reason_code") == "rate_not_reached"


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
    ) -> None:
        """core: the device's. earlier: the trials of this point that there are already."""
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
        self._pauses = 0  # in a row
        self.trials = 0
        self.spoilt = 0

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
        self.spoilt += trial.verdict == "spoilt"
        return trial

    def _wait(self, trial: Trial) -> None:
        """After a trial that the machine spoilt: what disturbed it may go away."""
        bad = trial.verdict == "spoilt" and disturbed(trial.tester, trial.device_waited_ns)
        bad = bad and not unoffered(trial)
        if bad:
            time.sleep(PAUSE_S * 2 ** min(self._pauses, PAUSES_MAX))
        self._pauses = self._pauses + 1 if bad else 0

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
        waited_ns, used_ns, core = running.waited_ns(), cpu_ns(pids), core_time(self._core)
        began_ns = time.monotonic_ns()
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
        result = self._tester.trial(asked)
        if not running.alive():
            raise ConvoyError(f"{self._point.device}: ended in the middle of a trial")
        waited_ns = running.waited_ns() - waited_ns
        if self._point.cpu_speed != 1.0:
            waited_ns = 0  # whoever takes the core away does so on purpose
        used_ns, elapsed_ns = cpu_ns(pids) - used_ns, time.monotonic_ns() - began_ns
        busy = core_time(self._core).share_since(core)
        verdict = judge(result, waited_ns, loss_ratio)
        if load == FULL_SPEED:
            # Its losses are those of a full ring at the end, and say nothing.
            away = paused(result, waited_ns) > MOST_DISTURBED["rate"]
            verdict = "spoilt" if away or not result.get("ok") else "passed"
        if purpose in MOST_DISTURBED and disturbed(result, waited_ns, MOST_DISTURBED[purpose]):
            verdict = "spoilt"
        cost_after = running.cost()
        return Trial(
            point=self._point,
            purpose=purpose,
            load=load,
            rate_pps=rate_pps,
            duration_s=duration_s,
            verdict=verdict,
            commands=tuple(running.command_lines),
            notes=self._notes,
            tester=kept(result, purpose),
            device_waited_ns=waited_ns,
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

    def search(
        self, goals: Sequence[Wanted], guess_pps: float | None, longest_s: float = 1200.0
    ) -> Search:
        """Find the rates that meet the goals. guess_pps: what an earlier repeat found.

        longest_s: how long that may take; what is not known by then is missing or irregular.
        """
        began = time.monotonic()
        strictest = min(goal.loss_ratio for goal in goals)
        # Overload is no result, but a place to begin: an earlier repeat may have had a bad moment.
        overload = self._trial("overload", None, goals[0].trial_s).received_pps
        most = (self._ceiling_pps or MOST_PPS / CEILING_SHARE) * CEILING_SHARE

        def measure(rate_pps: float, duration_s: float) -> Answer | Nothing:
            trial = self._trial("search", rate_pps, duration_s, loss_ratio=strictest)
            if trial.verdict == "spoilt":
                # A tester that is paused in its own system calls is not disturbed: it has no more.
                busy = disturbed(trial.tester, trial.device_waited_ns) and not unoffered(trial)
                return Nothing.DISTURBED if busy else Nothing.UNOFFERED
            total = trial.tester["total"]
            lost = int(total["lost_pkts"])
            return Answer(max(int(total["offered_pkts"]), lost), lost)

        guess = max(guess_pps or 0.0, overload or START_PPS)
        found = search(measure, goals, most, guess, longest_s)
        return Search(
            point=self._point,
            outcome="found",
            goals=tuple(Goal(**asdict(goal)) for goal in found),
            overload_pps=overload,
            trials=self.trials,
            spoilt=self.spoilt,
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
        refused = 0
        for _ in range(LATENCY_TRIES):
            trial = self._trial(purpose, rate_pps, duration_s, load)
            refused += unoffered(trial)
            if trial.verdict != "spoilt" or refused == REFUSALS:
                break
        return trial
