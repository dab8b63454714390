# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which differences are significant. Pure.

Rates are compared by their logarithms. Two devices of a run are compared round by round, because a
host's state lasts longer than a round: Student's paired t-test on log ratios, two-sided, 5 %. Where
few rounds have both, and for two runs, Welch's t-test on the logarithms (runs: 10 %). A difference
must exceed the noise floor as well: a device differs from its A/A control by noise only.

What others do on a machine only takes from a device. So its best round, if another one confirms it,
is what it does by itself: Chen and Revels (Robust benchmarking in noisy environments, 2016) argue
so for the least of times. How far best rounds are apart by chance was measured with two runs
(docs/measurements/two-runs.md).
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FLOOR_MIN = 0.01  # the search's own steps
CLOSE = 0.05  # of a best round: how far the one that confirms it may be from it
APART = 0.10  # how far best rounds of the same may be from each other
PAIRS_MIN = 3  # rounds that two devices must have in common to be compared round by round
DEVICES, RUNS = 0.05, 0.10  # how often chance alone exceeds the critical value
# Student's t, two-sided, at 1 to 4 degrees of freedom; from there on the expansion is exact to
# 0.2 %.
_CRITICAL = {DEVICES: (12.706, 4.303, 3.182, 2.776), RUNS: (6.314, 2.920, 2.353, 2.132)}


def critical(freedom: int, chance: float = DEVICES) -> float:
    """Return the two-sided critical value of Student's t, by degrees of freedom."""
    if freedom <= len(_CRITICAL[chance]):
        return _CRITICAL[chance][freedom - 1]
    z = statistics.NormalDist().inv_cdf(1 - chance / 2)
    # Cornish and Fisher: the normal quantile, corrected for few degrees of freedom.
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


@dataclass(frozen=True)
class Difference:
    """How much faster A is than B: a share, and how well that is known."""

    share: float  # of B's rate; negative: A is slower
    error: float  # twice the standard error of the mean logarithm
    rounds: int
    chance: float = 0.0  # half of the confidence interval; a logarithm

    def counts(self, floor: float) -> bool:
        """Return whether it is significant."""
        # In logarithms: half as fast is as far away as twice as fast.
        far = abs(math.log1p(self.share)) if self.share > -1 else math.inf
        return self.rounds > 1 and far > max(math.log1p(floor), self.chance)


def paired(a: Mapping[int, float], b: Mapping[int, float]) -> Difference | None:
    """Compare rates by round; None where there is no round that has both.

    Where few rounds have both, and each has others, all of them are compared.
    """
    a, b = ({i: rate for i, rate in rates.items() if rate > 0} for rates in (a, b))
    logs = [math.log(a[i] / b[i]) for i in sorted(a.keys() & b.keys())]
    fewer = min(len(a), len(b))
    if len(logs) < PAIRS_MIN and fewer > 1:
        one, other = list(a.values()), list(b.values())
        share = geometric_mean(one) / geometric_mean(other) - 1
        error = math.hypot(_error(_logs(one)), _error(_logs(other)))
        return Difference(share, 2 * error, fewer, half_width(one, other, chance=DEVICES))
    if not logs:
        return None
    share, error = math.expm1(statistics.fmean(logs)), _error(logs)
    t = critical(len(logs) - 1) if len(logs) > 1 else 0.0
    return Difference(share, 2 * error, len(logs), t * error)


def geometric_mean(rates: Sequence[float]) -> float:
    """Return the mean of rates that are compared by their logarithms."""
    return math.exp(statistics.fmean(_logs(rates)))


def half_width(*groups: Sequence[float], chance: float = RUNS) -> float:
    """Return how far chance puts groups' mean logarithms, each added or subtracted, from 0.

    Of two groups: how far apart they are (Welch). Infinite, where a group has one rate only.
    """
    logs = [_logs(group) for group in groups]
    if min(map(len, logs)) < 2:
        return math.inf
    squares = [_error(each) ** 2 for each in logs]
    if not any(squares):
        return 0.0
    each = zip(squares, logs, strict=True)
    freedom = sum(squares) ** 2 / sum(square**2 / (len(of) - 1) for square, of in each)
    return critical(max(1, round(freedom)), chance) * math.sqrt(sum(squares))


def floor(pairs: Sequence[Difference]) -> float | None:
    """Return the noise floor: the most by which a device seemed to differ from its A/A control.

    None: there was no A/A control.
    """
    if not pairs:
        return None
    return max(FLOOR_MIN, *(max(abs(pair.share), pair.error) for pair in pairs))


def confirmed_most(values: Iterable[float]) -> float | None:
    """Return the highest of the rounds; None: no other one is close to it."""
    *_, second, best = (0.0, 0.0, *sorted(values))
    return best if best > 0 and second * (1 + CLOSE) >= best else None


def confirmed_least(values: Iterable[float]) -> float | None:
    """Return the lowest of the rounds; None: no other one is close to it."""
    best, second, *_ = (*sorted(values), math.inf, math.inf)
    return best if best > 0 and second <= best * (1 + CLOSE) else None


def _logs(rates: Sequence[float]) -> list[float]:
    return [math.log(rate) for rate in rates if rate > 0]


def _error(values: Sequence[float]) -> float:
    """Return the standard error of the mean; of one value: 0."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
