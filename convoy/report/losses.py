# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where packets are lost, hop by hop, when a device is given more than it can take.

Of the trials that a search failed: refused at the entrance (its queue was full when they were due),
dropped inside by place and reason (where the device counts that: our node, namespaces and guests,
Open vSwitch), and the rest: lost inside or at the exit, not counted there. Shares of what was
offered.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from convoy.results.trials import Trial

ENTRANCE = "refused at the entrance"
UNCOUNTED = "inside or at the exit, not counted"


def _drops(counters: Any, place: str = "") -> Counter[str]:
    """Return a device's drop counters, by place and reason, however deep it stands.

    Our node says drops = {reason: packets} of each port and function; the kernel (of namespaces and
    guests) and Open vSwitch say rx and tx = {dropped: packets} of each interface,
    or add up their ports' drop.
    """
    found: Counter[str] = Counter()
    for name, thing in counters.items() if isinstance(counters, Mapping) else ():
        if name == "drops" and isinstance(thing, Mapping):
            for reason, count in thing.items():
                found[f"{place}: {reason}"] += int(count)
        elif name in ("rx", "tx") and isinstance(thing, Mapping):
            found[f"{place}: {name} dropped"] += int(thing.get("dropped") or 0)
        elif str(name).endswith(" drop") and isinstance(thing, int):
            found[f"{place}: {name}"] += thing
        elif isinstance(thing, Mapping):
            plain = name in ("ports", "functions")  # what stands in them says where
            found += _drops(thing, place if plain else " ".join(filter(None, (place, name))))
    return found


def losses(trials: Sequence[Trial]) -> tuple[tuple[str, float], ...]:
    """Return where, and the share of all offered packets, the largest first; empty: unknown."""
    lost: Counter[str] = Counter()
    offered = 0
    for trial in trials:
        total = trial.result.total
        if trial.purpose != "search" or trial.verdict != "failed" or not total:
            continue
        offered += total.offered_pkts
        counted = _drops(trial.device_after)
        counted.subtract(_drops(trial.device_before))
        lost[ENTRANCE] += total.refused_pkts
        for where, count in counted.items():
            lost[where] += count
        lost[UNCOUNTED] += max(0, total.lost_pkts - total.refused_pkts - sum(counted.values()))
    if not offered:
        return ()
    return tuple((where, count / offered) for where, count in lost.most_common() if count > 0)
