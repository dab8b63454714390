# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a trial's result says about the device: it passed, it failed, or nothing; and what of it is
kept. Pure.
"""

from collections.abc import Mapping
from typing import Any, Literal

LOSS_RATIO = 0.005  # a rate at which no more is lost counts as kept up with (PDR)
# Beyond that share of a trial, its latencies, frames, or packets per second are the machine's.
MOST_DISTURBED = {"latency": 0.01, "rate": 0.05, "overload": 0.05}
DISTURBED = 0.001  # of a trial: who was kept off its core for longer was disturbed

Purpose = Literal["overload", "search", "latency", "rate"]
Verdict = Literal["passed", "failed", "spoilt"]


def judge(result: Mapping[str, Any], waited: int = 0, loss_ratio: float = LOSS_RATIO) -> Verdict:
    """Return what a trial's result says about the device, which others kept waiting (ns).

    Losses that a pause of the tester or of the device's core explains are not the device's; a
    trial in which no more was lost than is allowed has passed in spite of any pause, and one that
    lost more than pauses explain has failed.
    """
    total = result.get("total") or {}
    ratio = total.get("loss_ratio")
    if not result.get("ok") or ratio is None:
        return "spoilt"
    if ratio <= loss_ratio:
        return "passed"
    # While it could not run, a device can have lost no more than what came in that time.
    explained = waited / result["duration_ns"] if result.get("duration_ns") else 0.0
    if result.get("suspect"):
        most = result.get("suspect_pkts")
        if most is None:
            return "spoilt"  # nobody knows how many
        explained += most / max(1, int(total["offered_pkts"]))
    return "spoilt" if ratio - explained <= loss_ratio else "failed"


def judge_overload(result: Mapping[str, Any], waited: int = 0, own: int = 0) -> Verdict:
    """Return whether an overload trial says what the device lets through: losses are no matter."""
    spoilt = not result.get("ok") or kept_off(result, waited, MOST_DISTURBED["overload"], own)
    return "spoilt" if spoilt else "passed"


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


def _descheduled_ns(result: Mapping[str, Any]) -> int:
    lost = (result.get("tester") or {}).get("lost_time") or {}
    return int(lost.get("descheduled_ns") or 0)


def kept_off(
    result: Mapping[str, Any], waited: int, share: float = DISTURBED, own: int = 0
) -> bool:
    """Return whether others kept the tester or the device off its core for so much of a trial.

    own: time (ns) in which the kernel's threads did the device's work there.
    """
    longest_ns = max(waited, _descheduled_ns(result) - own)
    return bool(longest_ns > share * result.get("duration_ns", 0))


def disturbed(
    result: Mapping[str, Any], waited: int, share: float = DISTURBED, own: int = 0
) -> bool:
    """Return that, or whether the tester may have lost packets itself."""
    return bool(result.get("suspect")) or kept_off(result, waited, share, own)


def unoffered(result: Mapping[str, Any], own: int = 0) -> bool:
    """Return whether the tester could not offer what was asked for, and that not for a pause.

    A tester in its own system calls is not disturbed: it has no more. One that others kept off its
    core for at least half of the time that it lacks might have had more.
    """
    if result.get("reason_code") != "rate_not_reached":
        return False
    total = result.get("total") or {}
    lacking = int(total.get("unsent_pkts") or 0) / max(1, int(total.get("offered_pkts") or 0))
    others_ns = max(0, _descheduled_ns(result) - own)
    return not lacking or 2 * others_ns < lacking * result.get("duration_ns", 0)
