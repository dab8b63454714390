# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which points of a run that has ended are measured once more: those it knows too little about.

Pure. A point whose searches were spoilt has fewer rates than the run asked for; one whose rates lie
far apart has a median that the next run will not meet; rounds in a slow phase of the machine are no
rounds. A search that only says "at least", because the tester could not offer more, has
said all there is, unless it can offer more by now; a device that fails is left alone.
"""

import statistics
from collections.abc import Collection, Sequence

from convoy.results.trials import Search
from convoy.run.point import CEILING_SHARE

WIDE = 0.1  # range of the rates, as a share of their median
ROUNDS = 3  # most, beyond those asked for
TIME_SHARE = 0.3  # of the time that the run has taken


def _rates(searches: Sequence[Search]) -> list[float]:
    firsts = [search.goals[0] for search in searches if search.goals]
    return [goal.rate_pps for goal in firsts if goal.regular and goal.rate_pps]


def capped(search: Search, then_pps: float, now_pps: float) -> bool:
    """Return whether a search ended at the ceiling that the tester had then, which rose since."""
    rate = search.goals[0].rate_pps if search.goals and search.goals[0].at_least else None
    return (rate or 0.0) > (1 - WIDE) * CEILING_SHARE * then_pps and now_pps > (1 + WIDE) * then_pps


def uncertain(
    searches: Sequence[Search],
    wanted: int,
    again: int = 0,
    slow: Collection[int] = (),
    searched: bool = True,
) -> bool:
    """Return whether a point's searches, one for each round, leave too much open.

    wanted: rounds that the run was asked for. again: of the searches, those that were capped.
    slow: rounds in a slow phase of the machine. searched: for rates, rather than only
    measured at some.
    """
    if len(searches) >= wanted + ROUNDS:
        return False
    fast = [search for search in searches if search.point.repeat not in slow]
    if not searched:
        return len(fast) < len(searches) and len(fast) < wanted
    if not any(search.goals for search in searches):
        return False
    searches = fast
    rates = _rates(searches)
    at_least = sum(bool(search.goals) and search.goals[0].at_least for search in searches)
    if len(rates) < wanted - at_least + again:
        return True
    return len(rates) > 1 and max(rates) - min(rates) > WIDE * statistics.median(rates)
