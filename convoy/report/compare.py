# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two runs, point by point: which changes are significant (convoy/report/noise.py).

A change is the quotient of the geometric means of a point's rounds. A machine may be slower in one
run than in the other for all devices alike. So each rate is compared with the run's own first
device at the same point as well; "relative" is what is left of a change without that device's.
Points whose host state differs (degraded in one run, nominal in the other) are not compared, and
neither are those of captures that are not the same file.

Agreement within a wide noise says little. So points at which even a change by a quarter would not
have been significant are counted as underpowered.
"""

import math
import statistics
from typing import Any

from convoy.report import best_rounds
from convoy.report.noise import FLOOR_MIN, geometric_mean, half_width
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.host_state import CHANGED, slower

ENOUGH = 3  # repeats, that tell a point's noise by themselves
# Of the tester's baseline rate. Above it, a noisy neighbour of the tester's core cost a seventh of
# the rates; below, nothing.
NEAR_LIMIT = 0.4
DETECTABLE = 0.25  # a change that must be significant, or the comparison is underpowered


def _noise(one: Run, other: Run, a: Row, b: Row, *references: Row) -> float:
    """Return how far apart chance puts two means of the same, upwards: a share. Down: 1 / (1 + it).

    references: the two that both are relative to. Infinite: not known.
    """
    groups = [row.rates_pps for row in (a, b, *references)]
    both = half_width(*groups)
    share = max(FLOOR_MIN, math.expm1(both) if both < math.log(1e9) else math.inf)
    if min(map(len, groups)) >= ENOUGH:
        return share
    # Of fewer, no better than the floors at that size.
    return max(share, *(run.noise_floor(a.scenario, a.size) or FLOOR_MIN for run in (one, other)))


def _reference(run: Run, row: Row) -> Row | None:
    for device in dict.fromkeys(one.device for one in run.of(row.scenario)):
        result = run.same_point(row, device)
        if result is not None and result.rate_pps:
            return result
    return None


FIGURES = {
    "round_trip": "a cache line took {:.1f} times as long from core to core",
    "tester_work": "the tester's core took {:.1f} times as long for the SMT-contention probe",
    "device_work": "the device's core took {:.1f} times as long for the SMT-contention probe",
}


def _host_state_changed(one: Run, other: Run, a: Row, b: Row) -> dict[str, float]:
    """Return which figures were how many times as high in the second run; below 1: in the first.

    Only where that forbids a verdict.
    """
    # A tester's baseline rate that is not known is no limit that a rate is far from.
    known = [host.baseline_pps or 0.0 for host in (*one.hosts, *other.hosts)]
    limit_pps = NEAR_LIMIT * min(known, default=0.0)
    limits = dict(CHANGED)
    if max(a.rate_pps or 0.0, b.rate_pps or 0.0) < limit_pps:
        limits.pop("tester_work")  # it has time to spare
    down = slower(a.host_state, b.host_state, limits)
    return slower(b.host_state, a.host_state, limits) | {name: 1 / by for name, by in down.items()}


def _not_compared(points: list[dict[str, Any]]) -> str:
    mine = [point["host_state_changed"] for point in points if point["host_state_changed"]]
    if not mine:
        return ""
    lines = []
    for name, text in FIGURES.items():
        times = [changed[name] for changed in mine if name in changed]
        for which, some in (
            ("first", [1 / value for value in times if value < 1]),
            ("second", [value for value in times if value > 1]),
        ):
            if some:
                many = f" ({len(some)})" if len(some) < len(mine) else ""
                lines.append(f"{text.format(statistics.median(some))} in the {which} run{many}")
    return (
        f"{len(mine)} of {len(points)} points are not compared, because the host state differs: "
        f"{'; '.join(lines)}."
    )


def _within(change: float, noise: float, bounds: tuple[bool, bool]) -> bool | None:
    """Return whether a change is no more than noise. bounds: which rates are lower bounds."""
    if not math.isfinite(noise):
        return None
    # Half as fast is as far away as twice as fast; but twice the rate of a lower bound does not
    # contradict it.
    up = math.inf if bounds[0] else 1 + noise
    down = math.inf if bounds[1] else 1 + noise
    return 1 / down <= 1 + change <= up


def _tells(tell: int, agree: int, bounds: bool) -> str:
    """Return at how many of the points that agree a change would have been significant."""
    change = f"a change by {DETECTABLE:.0%} would have been significant"
    if tell == agree:
        return f"at each of these {change}"
    why = "underpowered, or lower bounds" if bounds else "underpowered"
    if not tell:
        return f"at none of these {change}: they are {why}"
    rest = "one is" if agree - tell == 1 else f"{agree - tell} are"
    return f"at {tell} of these {change}, the other {rest} {why}"


def _quotient(row: Row, over: Row) -> float:
    return geometric_mean(row.rates_pps) / geometric_mean(over.rates_pps)


def compare(one: Run, other: Run) -> dict[str, Any]:
    """Return every point that both have, and a sentence."""
    points: list[dict[str, Any]] = []
    others: set[str] = set()  # captures that are not the same file
    for a in one.rows:
        b = other.same_point(a, a.device)
        if a.role == "control" or b is None or not a.rate_pps or not b.rate_pps:
            continue
        if a.conditions.capture != b.conditions.capture:
            others.add(a.size)
            continue
        first, second = _reference(one, a), _reference(other, b)
        moved = _quotient(second, first) if first and second else 1.0
        change = _quotient(b, a) - 1
        bounds = (a.lower_bound, b.lower_bound)
        noise, changed = _noise(one, other, a, b), _host_state_changed(one, other, a, b)
        tells = math.isfinite(noise) and not changed
        relative = (change + 1) / moved - 1
        beside = None  # of a device that is its own reference, or one of a lower bound, nothing
        if first and second and first is not a and not (first.lower_bound or second.lower_bound):
            beside = _within(relative, _noise(one, other, a, b, first, second), bounds)
        points.append(
            {
                "scenario": a.scenario,
                "setup": a.setup,
                "device": a.device,
                "size": a.size,
                "cpu_speed": a.cpu_speed,
                "one_pps": a.rate_pps,
                "other_pps": b.rate_pps,
                "lower_bounds": bounds,
                "change": change,
                "relative": relative,
                # The noise of one round is not known: null, and no verdict.
                "noise": noise if math.isfinite(noise) else None,
                # A change by a quarter would have been noticed.
                "conclusive": tells and noise <= DETECTABLE and not any(bounds),
                "best": best_rounds.rates(a, b),  # null: no round is confirmed
                "machine_ns": (dict(a.host_state), dict(b.host_state)),
                "host_state_changed": changed,  # not empty: no verdict
                "within_noise": _within(change, noise, bounds) if tells else None,
                "relative_within_noise": beside if tells else None,
            }
        )
    known = [point for point in points if point["within_noise"] is not None]
    agree = sum(point["within_noise"] for point in known)
    relatives = [p["relative_within_noise"] for p in known]
    relatives = [one for one in relatives if one is not None]
    summary = "The runs have no point in common."
    if known:
        middle = statistics.median(point["noise"] for point in known)
        tell = sum(point["conclusive"] and point["within_noise"] for point in known)
        bounded = any(any(point["lower_bounds"]) for point in known)
        summary = (
            f"{agree} of {len(known)} points agree within their noise (median noise {middle:.1%}): "
            f"{_tells(tell, agree, bounded)}; beside each run's own first device, "
            f"{sum(relatives)} of {len(relatives)} do."
        )
    lines = [summary] if known or not points else []
    delays = best_rounds.latencies(one, other)
    lines += filter(None, [best_rounds.sentence(points, delays), _not_compared(points)])
    few = sum(point["noise"] is None and not point["host_state_changed"] for point in points)
    if few:
        lines.append(f"{few} of {len(points)} points have too few rounds for a verdict.")
    if others:
        lines.append(
            f"Not compared, for it is not the same file in both runs: {', '.join(sorted(others))}."
        )
    summary = " ".join(lines)
    return {"points": points, "latencies": delays, "summary": summary}
