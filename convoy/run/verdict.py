# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a trial's result says about the device: it passed, it failed, or nothing; and what of it is
kept. Pure.
"""

from typing import Literal

from convoy.results.trial_result import TrialResult

LOSS_RATIO = 0.005  # a rate at which no more is lost counts as kept up with (PDR)
# Beyond that share of a trial, its latencies, frames, or packets per second are the machine's.
MOST_DISTURBED = {"latency": 0.01, "rate": 0.05, "mrr": 0.05}
DISTURBED = 0.001  # of a trial: who was preempted for longer was disturbed

Purpose = Literal["mrr", "search", "latency", "rate"]
Verdict = Literal["passed", "failed", "invalid"]


def wrong(result: TrialResult) -> bool:
    """Return whether packets came out twice, by another port, or with other bytes."""
    total = result.total
    return total is not None and bool(
        total.corrupt_pkts or total.duplicated_pkts or total.misrouted_pkts
    )


def verdict_of(result: TrialResult, waited: int = 0, loss_ratio: float = LOSS_RATIO) -> Verdict:
    """Return what a trial's result says about the device, which others kept waiting (ns).

    Losses that a pause of the tester or of the device's core explains are not the device's; a
    trial in which no more was lost than is allowed has passed in spite of any pause, and one that
    lost more than pauses explain has failed. So has one with packets that came out twice, by
    another port, or with other bytes.
    """
    total = result.total
    if not result.ok or total is None or total.loss_ratio is None:
        return "invalid"
    if wrong(result):
        return "failed"  # no load and no pause explains that
    ratio = total.loss_ratio
    if ratio <= loss_ratio:
        return "passed"
    # While it could not run, a device can have lost no more than what came in that time.
    explained = waited / result.duration_ns if result.duration_ns else 0.0
    if result.suspect:
        if result.suspect_pkts is None:
            return "invalid"  # nobody knows how many
        explained += result.suspect_pkts / max(1, total.offered_pkts)
    return "invalid" if ratio - explained <= loss_ratio else "failed"


def mrr_verdict_of(result: TrialResult, waited: int = 0, own: int = 0) -> Verdict:
    """Return whether a trial shows the MRR: losses are no matter, wrong packets are."""
    if result.ok and wrong(result):
        return "failed"
    invalid = not result.ok or preempted(result, waited, MOST_DISTURBED["mrr"], own)
    return "invalid" if invalid else "passed"


def kept(result: TrialResult, purpose: Purpose) -> TrialResult:
    """Return what is kept of a result: all; but histograms of latency trials alone, and once."""
    if purpose != "latency":
        return result.without_histograms()
    return result.without_histograms(of_total=False) if len(result.paths) == 1 else result


def _descheduled_ns(result: TrialResult) -> int:
    return (result.tester.lost_time.descheduled_ns or 0) if result.tester else 0


def preempted(result: TrialResult, waited: int, share: float = DISTURBED, own: int = 0) -> bool:
    """Return whether others kept the tester or the device off its core for so much of a trial.

    own: time (ns) in which the kernel's threads did the device's work there.
    """
    longest_ns = max(waited, _descheduled_ns(result) - own)
    return longest_ns > share * result.duration_ns


def disturbed(result: TrialResult, waited: int, share: float = DISTURBED, own: int = 0) -> bool:
    """Return that, or whether the tester may have lost packets itself."""
    return bool(result.suspect) or preempted(result, waited, share, own)


def load_not_reached(result: TrialResult, own: int = 0) -> bool:
    """Return whether the tester could not offer what was asked for, and that not for a pause.

    A tester in its own system calls is not disturbed: it has no more. One that was
    preempted for at least half of the time that it lacks might have had more.
    """
    if result.reason_code != "rate_not_reached":
        return False
    total = result.total
    lacking = total.unsent_pkts / max(1, total.offered_pkts) if total else 0.0
    others_ns = max(0, _descheduled_ns(result) - own)
    return not lacking or 2 * others_ns < lacking * result.duration_ns
