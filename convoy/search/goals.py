# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is searched for: a rate at which at most so much is lost, proved with so many trials.

ndr and pdr are those of FD.io CSIT (RFC 9971 calls them goals): 21 one-second trials, of which half
may lose more. rfc2544 is one trial of 60 s without a loss; tst009 is ETSI TST 009's loss
verification: a second such trial may save a first one that failed. On a machine of minutes the
profiles quick and standard ask for ndr and pdr with shorter trials and wider bounds; smoke takes
what one trial says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from convoy.errors import InputError


@dataclass(frozen=True)
class Goal:
    """One rate that is searched for."""

    name: str
    loss_ratio: float  # of a trial that is good
    exceed_ratio: float  # share of the trials' time that may be bad
    trial_s: float
    sum_s: float  # of good and bad trials, before a rate is decided
    width: float  # share of itself to which the rate is found


GOALS = {
    goal.name: goal
    for goal in (
        Goal("ndr", 0.0, 0.5, 1.0, 21.0, 0.005),
        Goal("pdr", 0.005, 0.5, 1.0, 21.0, 0.005),
        Goal("rfc2544", 0.0, 0.0, 60.0, 60.0, 0.005),
        Goal("tst009", 0.0, 0.5, 60.0, 120.0, 0.005),
    )
}

SMOKE = "smoke"  # does it all work? Nothing waits for a nominal host or is repeated

# profile: seconds of a trial, of all trials at a rate, and the width; None: as the goal says
PROFILES: dict[str, tuple[float, float, float] | None] = {
    SMOKE: (0.05, 0.05, 0.5),
    "quick": (0.06, 0.18, 0.03),
    "standard": (0.2, 1.0, 0.02),
    "full": None,
}
# How long a search may take: where nothing disturbs it, it takes a tenth of that (smoke: half).
LONGEST_S = {SMOKE: 0.5, "quick": 10.0, "standard": 120.0, "full": 7200.0}


def goals(names: Iterable[str], profile: str) -> tuple[Goal, ...]:
    """Return goals as a profile measures them. Raises InputError for a name there is not."""
    result = []
    for name in names:
        if name not in GOALS:
            raise InputError(
                f"goal '{name}': there is none called so; choose of {', '.join(GOALS)}"
            )
        goal, sizes = GOALS[name], PROFILES[profile]
        if sizes is not None and name in ("ndr", "pdr"):
            trial_s, sum_s, width = sizes
            goal = replace(goal, trial_s=trial_s, sum_s=sum_s, width=width)
        result.append(goal)
    return tuple(result)
