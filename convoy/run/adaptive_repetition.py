# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Adaptive repetition: which points are measured again when a run's rounds are done. Pure.

A point with invalid searches has fewer rates than the run asked for; one with widely spread rates
has a median that the next run will not meet; degraded rounds do not count. A search that ended in a
lower bound, because the tester could not offer more, is complete, unless the tester can offer more
by now. A device that fails is not measured again.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import replace

from convoy.results.trials import Search
from convoy.run.order import NO_RACE, DeviceRun
from convoy.run.point import BASELINE_SHARE
from convoy.run.run_state import RunState

WIDE = 0.1  # range of the rates, as a share of their median
ROUNDS_MAX = 3  # beyond those asked for
TIME_SHARE = 0.3  # of the time that the run has taken


def _rates(searches: Sequence[Search]) -> list[float]:
    firsts = [search.goals[0] for search in searches if search.goals]
    return [goal.rate_pps for goal in firsts if goal.regular and goal.rate_pps]


def capped(search: Search, then_pps: float, now_pps: float) -> bool:
    """Return whether a search ended at the tester's baseline rate, and that has risen since."""
    rate = search.goals[0].rate_pps if search.goals and search.goals[0].lower_bound else None
    limit_pps = (1 - WIDE) * BASELINE_SHARE * then_pps
    return (rate or 0.0) > limit_pps and now_pps > (1 + WIDE) * then_pps


def uncertain(
    searches: Sequence[Search],
    wanted: int,
    again: int = 0,
    degraded: Collection[int] = (),
    searched: bool = True,
) -> bool:
    """Return whether a point's searches, one for each round, leave too much open.

    wanted: rounds that the run was asked for. again: of the searches, those that were capped.
    degraded: rounds on a degraded host. searched: for rates, rather than only measured at some.
    """
    if len(searches) >= wanted + ROUNDS_MAX:
        return False
    nominal = [search for search in searches if search.point.repeat not in degraded]
    if not searched:
        return len(nominal) < len(searches) and len(nominal) < wanted
    if not any(search.goals for search in searches):
        return False
    rates = _rates(nominal)
    bounds = sum(bool(search.goals) and search.goals[0].lower_bound for search in nominal)
    if len(rates) < wanted - bounds + again:
        return True
    return len(rates) > 1 and max(rates) - min(rates) > WIDE * statistics.median(rates)


def repeats(
    device_runs: Sequence[DeviceRun], state: RunState, baseline_pps: float | None
) -> list[DeviceRun]:
    """Return a device run for each device and setup that is uncertain at some size."""
    rounds = max((run.repeat + 1 for run in device_runs), default=0)
    result = []
    for run in device_runs:
        if run.repeat or run.applications or NO_RACE in run.remark:
            continue
        known = state.searches(run)
        sizes = []
        for size, searches in known.items():
            again = sum(
                capped(search, then, baseline_pps or 0.0)
                for search in searches
                if (then := state.baseline_pps(search)) is not None
            )
            searched = state.scenarios[run.scenario].search
            if uncertain(searches, rounds, again, state.degraded(searches), searched):
                sizes.append(size)
        if sizes:
            last = max(search.point.repeat for size in sizes for search in known[size])
            result.append(replace(run, repeat=last + 1, sizes=tuple(sizes), again=True))
    return result
