# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One point of a benchmark: a running device, one frame size. Every trial is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from convoy.dut.base import Running
from convoy.errors import ConvoyError
from convoy.results.trials import RunFolder, Trial
from convoy.run.workload import flows
from convoy.search.bisection import Found, Verdict, highest
from convoy.tester.base import Tester

LOSS_RATIO = 0.005  # a rate at which no more is lost counts as kept up with (PDR)
WIDTH = 0.05  # share of itself to which a rate is found
LATENCY_LOAD = 0.5  # of the rate that was found
SHORTEST = 2  # times that a trial may be halved
LATENCY_TRIES = 5  # where the tester spoils a trial
START_PPS = 1e6  # where nothing came through under overload
MOST_PPS = 100e6  # to search up to: beyond any tester, which says what it cannot offer
DRAIN_S = 0.02

Purpose = Literal["overload", "search", "latency"]


def specification(size: str, rate_pps: float | None, duration_s: float) -> dict[str, Any]:
    """Return a trial as the tester takes it; without a rate: as much as possible."""
    return {
        "rate_pps": "max" if rate_pps is None else rate_pps,
        "duration_s": duration_s,
        "drain_s": DRAIN_S,
        "size": int(size) if size.isdigit() else size,
        "flows": flows(),
        # What a device does not take when it is due is lost, as on a wire.
        "on_full": "wait" if rate_pps is None else "drop",
    }


def judge(result: Mapping[str, Any], waited_ns: int = 0) -> Verdict:
    """Return what a trial's result says about the device, which others kept from running so long.

    Losses that a pause of the tester or of the device's core explains are not the device's.
    """
    ratio = (result.get("total") or {}).get("loss_ratio")
    if not result.get("ok") or ratio is None:
        return Verdict.SPOILT
    if ratio <= LOSS_RATIO:
        return Verdict.PASSED
    paused = waited_ns > LOSS_RATIO * result.get("duration_ns", 0)
    return Verdict.SPOILT if paused or result.get("suspect") else Verdict.FAILED


@dataclass(frozen=True)
class Point:
    """Who is measured, with what, for the how-many-eth time."""

    repeat: int
    device: str
    functions: tuple[str, ...]
    size: str


class Measurement:
    """Measures one point."""

    def __init__(
        self, point: Point, tester: Tester, running: Running, folder: RunFolder, trial_s: float
    ) -> None:
        self._point = point
        self._tester = tester
        self._running = running
        self._folder = folder
        self._trial_s = trial_s
        self._spoilt = 0  # trials in a row

    def _trial(self, purpose: Purpose, rate_pps: float | None) -> Trial:
        # After a spoilt trial a shorter one: on a busy machine that may fit between two pauses.
        duration_s = self._trial_s / 2 ** min(self._spoilt, SHORTEST)
        before, waited_ns = self._running.counters(), self._running.waited_ns()
        result = self._tester.trial(specification(self._point.size, rate_pps, duration_s))
        if not self._running.alive():
            raise ConvoyError(f"{self._point.device}: ended in the middle of a trial")
        waited_ns = self._running.waited_ns() - waited_ns
        trial = Trial(
            repeat=self._point.repeat,
            device=self._point.device,
            functions=self._point.functions,
            size=self._point.size,
            purpose=purpose,
            rate_pps=rate_pps,
            verdict=judge(result, waited_ns).value,
            commands=tuple(self._running.command_lines),
            tester=result,
            device_waited_ns=waited_ns,
            device_before=before,
            device_after=self._running.counters(),
        )
        self._folder.append(trial)
        self._spoilt = self._spoilt + 1 if trial.verdict == "spoilt" else 0
        return trial

    def search(self, guess_pps: float | None) -> Found:
        """Find the highest rate that it keeps up with, and the latency below that.

        guess_pps: what an earlier repeat found.
        """
        # Overload is no result, but a place to begin: an earlier repeat may have had a bad moment.
        overload = (self._trial("overload", None).received_pps or START_PPS) * 0.9
        known = guess_pps is not None and guess_pps >= overload
        found = highest(
            lambda rate: Verdict(self._trial("search", rate).verdict),
            max(guess_pps or 0, overload),
            MOST_PPS,
            WIDTH,
            WIDTH if known else 2 * WIDTH,
        )
        if found.rate_pps is not None:
            for _ in range(LATENCY_TRIES):
                if self._trial("latency", found.rate_pps * LATENCY_LOAD).verdict == "passed":
                    break
        return found
