# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""In which phase the machine was: how far the tester's core and the device's were from each other,
and what either got done; and what follows for a trial, and for a round. Pure.

A virtual machine's cores are moved about. Behind one level-3 cache a line goes from one to the
other and back in 70 ns; behind two it takes 300, and every packet takes so much longer. Or they are
the two threads of one core. The tester looks before and after each trial. What was measured in such
a slow phase is another machine's number.

Others come and go on either core's other thread, for a tenth of a second to some seconds. Beside
the device's core they cost it a quarter to nearly half of its rate: a slow phase, too. Beside the
tester's they cost nothing, unless it is at its own limit: that only tells two runs apart.
"""

from collections.abc import Iterable, Mapping, Sequence

from convoy.results.trial_result import Probe, TrialResult
from convoy.results.trials import Trial

Figures = Mapping[str, float]  # nanoseconds, of one trial or many; what is not known is missing

# A line there and back; the same little work on the one core, on the other, and on both at least.
NAMES = ("line", "tester_work", "device_work", "both_work")
# Slow is more than so many times the best of the run. Between what moments of one phase differ by
# (1.3; 1.5 of the work on both, where each has a stranger beside it; 1.1 of the device's, where it
# has none) and what phases do (4; 2; 1.15 to 2.2).
SLOW: Figures = {"line": 2.0, "both_work": 1.6, "device_work": 1.25}
# Two runs on another machine: of their medians.
CHANGED: Figures = {"line": 2.0, "tester_work": 1.25, "device_work": 1.25}
FIRST = 0.05  # the best of a run: what so many of its trials did not exceed
MOST = 0.25  # of a round's trials that were in a slow phase, or the round was
ENOUGH = 2  # rounds in the fast phase, which then stand for all


def line_ns(probe: Probe) -> float | None:
    """Return a line's time there and back, of the two looks the slower one; None: not known."""
    return max(filter(None, (probe.before_ns, probe.after_ns)), default=None)


def figures(result: TrialResult, cpu_speed: float = 1.0) -> Figures:
    """Return all that a trial's result tells.

    cpu_speed: the share of its core that the device was left with; where that is not all, what the
    core got done says nothing of others.
    """
    probe = result.probe
    if probe is None:
        return {}
    tester, device = probe.tester_work_ns, probe.device_work_ns
    both = min(tester, device) if tester and device else None
    found = dict(zip(NAMES, (line_ns(probe), tester, device, both), strict=True))
    if cpu_speed != 1.0:
        found["device_work"] = found["both_work"] = None
    return {name: float(value) for name, value in found.items() if value}


def of_trial(trial: Trial) -> Figures:
    """Return what the machine was like in a trial."""
    return figures(trial.result, trial.point.cpu_speed)


def charged(trial: Trial) -> Figures | None:
    """Return what a trial may be held against its round for. None: it counts for nothing itself.

    A rate that was kept up with in spite of the machine has been kept up with.
    """
    if trial.verdict == "spoilt":
        return None
    return {} if trial.purpose == "search" and trial.verdict == "passed" else of_trial(trial)


def quickest(values: Sequence[float]) -> float | None:
    """Return a figure in the fast phase, of values in order of size; None: nobody looked."""
    return values[int(FIRST * len(values))] if values else None


def best(of: Iterable[Figures]) -> Figures:
    """Return each figure in the fast phase of a run."""
    found: dict[str, list[float]] = {}
    for one in of:
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return {name: quickest(sorted(values)) or 0.0 for name, values in found.items()}


def slower(one: Figures, than: Figures, limits: Figures = SLOW) -> dict[str, float]:
    """Return which figures are how many times as high, if that is more than the limits say."""
    return {
        name: one[name] / than[name]
        for name, limit in limits.items()
        if name in one and name in than and one[name] > limit * than[name]
    }


def slow_rounds(rounds: Mapping[int, Sequence[Figures]], fast: Figures) -> frozenset[int]:
    """Return the rounds that were in a slow phase, of what a point's trials are charged with."""
    return frozenset(
        number
        for number, some in rounds.items()
        if some and sum(bool(slower(one, fast)) for one in some) >= MOST * len(some)
    )


def left_out(slow: frozenset[int], told: Iterable[int]) -> frozenset[int]:
    """Return the rounds that count for nothing, where enough others told something.

    told: the rounds that have a result.
    """
    return slow if len(frozenset(told) - slow) >= ENOUGH else frozenset()
