# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where packets are lost, hop by hop, when a device is given more than it can take.

Of the trials that a search failed: refused at the entrance (its queue was full when they were due),
dropped inside by reason (where the device counts that, as our node does), and the rest: lost inside
or at the exit without a word. Shares of what was offered.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from convoy.results.trials import Trial

ENTRANCE = "refused at the entrance"
UNTOLD = "inside or at the exit, not told"


def _drops(counters: Mapping[str, Any] | None) -> Counter[str]:
    """Return our node's drops by place and reason."""
    found: Counter[str] = Counter()
    for part in ("ports", "functions"):
        things = (counters or {}).get(part)
        for name, thing in things.items() if isinstance(things, dict) else ():
            drops = thing.get("drops") if isinstance(thing, dict) else None
            for reason, count in drops.items() if isinstance(drops, dict) else ():
                found[f"{name}: {reason}"] += int(count)
    return found


def losses(trials: Sequence[Trial]) -> tuple[tuple[str, float], ...]:
    """Return where, and the share of all offered packets, the largest first; empty: unknown."""
    lost: Counter[str] = Counter()
    offered = 0
    for trial in trials:
        total = trial.tester.get("total") or {}
        if trial.purpose != "search" or trial.verdict != "failed" or not total.get("offered_pkts"):
            continue
        offered += int(total["offered_pkts"])
        refused = int(total.get("refused_pkts") or 0)
        told = _drops(trial.device_after)
        told.subtract(_drops(trial.device_before))
        lost[ENTRANCE] += refused
        for where, count in told.items():
            lost[where] += count
        lost[UNTOLD] += max(0, int(total["lost_pkts"]) - refused - sum(told.values()))
    if not offered:
        return ()
    return tuple((where, count / offered) for where, count in lost.most_common() if count > 0)
