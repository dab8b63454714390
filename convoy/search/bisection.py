# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The highest rate that passes, found with few short trials.

Made for benchmarks of minutes: every answer is a paced trial that passed, never a rate seen under
overload; a rate has failed only when it failed twice, so that one hiccup of the machine does not
halve a result; a trial that the tester spoilt says nothing, but is counted.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

FAILURES = 2  # trials that must fail before a rate has failed
SPOILT_MAX = 5  # spoilt trials after which a rate is given up


class Verdict(enum.StrEnum):
    """What a trial at some rate says."""

    PASSED = "passed"
    FAILED = "failed"  # the device lost too much
    SPOILT = "spoilt"  # the tester or the machine had a pause: no word about the device


@dataclass(frozen=True)
class Found:
    """The answer of a search."""

    rate_pps: float | None  # None: nothing passed
    failed_pps: float | None  # lowest rate that failed twice; None: none did
    trials: int
    spoilt: int
    tester_limited: bool  # the next rate above could not be offered: the device may do more


def highest(
    measure: Callable[[float], Verdict],
    first_pps: float,
    most_pps: float,
    width: float = 0.05,
    step: float = 0.1,
    trials_max: int = 20,
) -> Found:
    """Search for the highest rate that passes, up to most_pps, to within a share width of itself.

    measure does one trial at a rate in packets per second; first_pps is the first guess, and step
    the share of it by which the second is off.
    """
    passed: float | None = None
    failed: float | None = None
    bounds = most_pps
    trials = spoilt = 0
    limited = False
    rate = min(first_pps, most_pps)

    def ask(rate: float) -> Verdict:
        nonlocal trials, spoilt
        said: list[Verdict] = []
        while said.count(Verdict.FAILED) < FAILURES and said.count(Verdict.SPOILT) < SPOILT_MAX:
            said.append(measure(rate))
            trials += 1
            spoilt += said[-1] is Verdict.SPOILT
            if said[-1] is Verdict.PASSED:
                break
        return said[-1]

    while trials < trials_max:
        verdict = ask(rate)
        if verdict is Verdict.PASSED:
            passed = rate
        else:
            bounds = rate
            if verdict is Verdict.FAILED:
                failed = rate
            limited = verdict is Verdict.SPOILT
        if passed is None:
            rate = bounds / (1 + step)
            step *= 2
        elif passed >= bounds:
            limited = failed is None
            break
        elif bounds / passed <= 1 + width * 1.001:  # a step of width is enough
            break
        elif failed is None and not limited:
            rate = min(passed * (1 + step), bounds)
            step *= 2
        else:
            rate = math.sqrt(passed * bounds)
    return Found(passed, failed, trials, spoilt, limited)
