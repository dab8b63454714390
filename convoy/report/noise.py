# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is a difference, and what is noise. Pure.

A run measures one device against itself (the A/A control): what these two differ by is noise. Two
devices are compared round by round, because the host's states last longer than a round; their
difference is the median over the rounds. It counts where it exceeds the noise floor and what chance
alone would make of so few rounds; otherwise it is shown as none.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Standard error of a median of n normal values is 1.25 sigma / sqrt(n); sigma from the median
# absolute deviation is 1.48 times that.
MEDIAN_ERROR = 1.2533
DEVIATION = 1.4826
# Of few values it is too small, on average by this (Croux and Rousseeuw 1992; 0.8 beyond nine).
FEW = {4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
AT_LEAST = 0.01  # no floor is lower: the search's own steps
# Of few rounds the error itself is not well known. So many errors a median of normal values is off
# by chance alone in one of twenty cases; and, of each of two runs, their medians in one of ten.
# By simulation; tests/python/bench/test_noise.py does it again.
SURE = {2: 12.9, 3: 2.67, 4: 3.8, 5: 4.2, 6: 2.9, 7: 3.1, 8: 2.6, 9: 2.7}
SURE_MORE = 2.5
AGREE = {2: 2.92, 3: 1.42, 4: 1.71, 5: 1.9, 6: 1.66, 7: 1.77}
AGREE_MORE = 1.7
RARER = 1.5  # so many times that, once in twenty rather than in ten
PAIRS = 3  # rounds that two devices must have in common to be compared round by round


@dataclass(frozen=True)
class Difference:
    """How much faster A is than B: a share, and how well that is known."""

    share: float  # of B's rate; negative: A is slower
    error: float  # twice the standard error of the median of logarithms
    rounds: int
    chance: float = 0.0  # what chance alone exceeds once in twenty times; a logarithm

    def counts(self, floor: float) -> bool:
        """Return whether it is more than noise."""
        # In logarithms: half as fast is as far away as twice as fast.
        far = abs(math.log1p(self.share)) if self.share > -1 else math.inf
        return self.rounds > 1 and far > max(math.log1p(floor), self.chance)


def paired(a: Mapping[int, float], b: Mapping[int, float]) -> Difference | None:
    """Compare rates by round; None where there is no round that has both.

    Where few rounds have both, and each has others, the medians of all are compared.
    """
    a, b = ({i: rate for i, rate in rates.items() if rate > 0} for rates in (a, b))
    logs = [math.log(a[i] / b[i]) for i in sorted(a.keys() & b.keys())]
    fewer = min(len(a), len(b))
    if len(logs) < PAIRS and fewer > 1:
        return _apart(list(a.values()), list(b.values()))
    if not logs:
        return None
    middle = statistics.median(logs)
    error = _error(logs, middle)
    sure = SURE.get(len(logs), SURE_MORE) * error
    return Difference(math.expm1(middle), 2 * error, len(logs), sure)


def _apart(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Compare two medians, of two rates each at least."""
    one, other = ([math.log(rate) for rate in rates] for rates in (a, b))
    middles = statistics.median(one), statistics.median(other)
    error = math.hypot(_error(one, middles[0]), _error(other, middles[1]))
    sure = RARER * math.hypot(spread(a), spread(b))
    share = math.expm1(middles[0] - middles[1])
    return Difference(share, 2 * error, min(len(a), len(b)), sure)


def _error(values: Sequence[float], middle: float) -> float:
    """Return the standard error of a median; of two or three values, half of their range."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2
    count = len(values)
    deviation = statistics.median(abs(value - middle) for value in values) * DEVIATION
    deviation *= FEW.get(count, count / (count - 0.8))
    return MEDIAN_ERROR * deviation / math.sqrt(count)


def floor(pairs: Sequence[Difference]) -> float | None:
    """Return the noise floor from A against A: the most by which it seemed to differ.

    None: there was no A/A control.
    """
    if not pairs:
        return None
    return max(AT_LEAST, *(max(abs(pair.share), pair.error) for pair in pairs))


def spread(rates: Sequence[float]) -> float:
    """Return how uncertain a median of repeats is, as a logarithm.

    Two of the same differ by more than both together (the root of the sum of squares) once in ten
    times. One repeat: infinite.
    """
    logs = [math.log(rate) for rate in rates if rate > 0]
    if len(logs) < 2:
        return math.inf
    return AGREE.get(len(logs), AGREE_MORE) * _error(logs, statistics.median(logs))
