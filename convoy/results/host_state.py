# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The host's state in a trial, nominal or degraded, and what follows for the trial and its round.

A hypervisor moves a virtual machine's cores. Within one level-3 cache a core-to-core round trip of
a cache line takes 70 ns, across two it takes 300, and every packet takes as much longer; or both
are threads of one core. The tester probes before and after each trial. A result of a degraded host
is another machine's.

A noisy neighbour on the SMT sibling of either core comes and goes within a tenth of a second to
some seconds. Beside the device's core it costs a quarter to nearly half of the rate: a degraded
state, too. Beside the tester's core it costs nothing, unless the tester is at its own limit: that
only distinguishes two runs. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from convoy.results.trial_result import Probe, TrialResult
from convoy.results.trials import Trial

Figures = Mapping[str, float]  # nanoseconds, of one trial or many; what is not known is missing

# A core-to-core round trip; the SMT-contention probe on the one core, on the other, on both at
# least.
NAMES = ("round_trip", "tester_work", "device_work", "both_work")
# Degraded is more than so many times the best of the run. Trials of one state differ by 1.3 (1.5 in
# the work on both cores where each has a neighbour, 1.1 in the device's where it has none), states
# by 4 (2; 1.15 to 2.2).
DEGRADED: Figures = {"round_trip": 2.0, "both_work": 1.6, "device_work": 1.25}
# Two runs on another machine: of their medians.
CHANGED: Figures = {"round_trip": 2.0, "tester_work": 1.25, "device_work": 1.25}
NOMINAL_QUANTILE = 0.05  # of a run's trials; its value is the nominal one
TRIALS_MAX = 0.25  # of a round's trials in a degraded state, or the round is degraded
ROUNDS_MIN = 2  # in the nominal state, which then stand for all


def round_trip_ns(probe: Probe) -> float | None:
    """Return the core-to-core round trip, the slower of two probes; None: not known."""
    return max(filter(None, (probe.before_ns, probe.after_ns)), default=None)


def figures(result: TrialResult, cpu_speed: float = 1.0) -> Figures:
    """Return what a trial's result shows of the host.

    cpu_speed: the share of its core that the device was left with; where that is not all, the
    contention probe on that core shows nothing.
    """
    probe = result.probe
    if probe is None:
        return {}
    tester, device = probe.tester_work_ns, probe.device_work_ns
    both = min(tester, device) if tester and device else None
    values = dict(zip(NAMES, (round_trip_ns(probe), tester, device, both), strict=True))
    if cpu_speed != 1.0:
        values["device_work"] = values["both_work"] = None
    return {name: float(value) for name, value in values.items() if value}


def of_trial(trial: Trial) -> Figures:
    """Return the host's state in a trial."""
    return figures(trial.result, trial.point.cpu_speed)


def attributed(trial: Trial) -> Figures | None:
    """Return the state that counts against a trial's round. None: the trial counts for nothing.

    A rate that was sustained on a degraded host was sustained.
    """
    if trial.verdict == "invalid":
        return None
    return {} if trial.purpose == "search" and trial.verdict == "passed" else of_trial(trial)


def nominal_value(values: Sequence[float]) -> float | None:
    """Return a figure in the nominal state, of values in order of size; None: not known."""
    return values[int(NOMINAL_QUANTILE * len(values))] if values else None


def nominal(of: Iterable[Figures]) -> Figures:
    """Return each figure in the nominal state of a run."""
    values: dict[str, list[float]] = {}
    for one in of:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    return {name: nominal_value(sorted(some)) or 0.0 for name, some in values.items()}


def slower(one: Figures, than: Figures, limits: Figures = DEGRADED) -> dict[str, float]:
    """Return by which factors figures exceed others, where that is more than the limits."""
    return {
        name: one[name] / than[name]
        for name, limit in limits.items()
        if name in one and name in than and one[name] > limit * than[name]
    }


def degraded_rounds(rounds: Mapping[int, Sequence[Figures]], reference: Figures) -> frozenset[int]:
    """Return the degraded rounds, of the states that count against them.

    reference: the nominal state.
    """
    return frozenset(
        number
        for number, some in rounds.items()
        if some and sum(bool(slower(one, reference)) for one in some) >= TRIALS_MAX * len(some)
    )


def excluded_rounds(degraded: frozenset[int], measured: Iterable[int]) -> frozenset[int]:
    """Return the rounds to exclude: the degraded ones, where enough others have a result."""
    return degraded if len(frozenset(measured) - degraded) >= ROUNDS_MIN else frozenset()
