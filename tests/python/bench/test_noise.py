# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What counts as a difference."""

import math
import random

import pytest

from convoy.report.noise import (
    DEVICES,
    RUNS,
    Difference,
    critical,
    floor,
    geometric_mean,
    half_width,
    paired,
)


def rounds(*rates):
    return dict(enumerate(rates))


@pytest.mark.parametrize(
    ("what", "a", "b", "noise", "counts"),
    [
        ("the same", rounds(5, 5, 5, 5, 5), rounds(5, 5, 5, 5, 5), 0.01, False),
        ("less than the floor", rounds(*[5.04] * 5), rounds(*[5] * 5), 0.01, False),
        ("more than the floor", rounds(*[5.1] * 5), rounds(*[5] * 5), 0.01, True),
        ("slower by more", rounds(*[5] * 5), rounds(*[5.1] * 5), 0.01, True),
        ("an episode meets both", rounds(5, 2, 9, 4), rounds(4, 1.6, 7.2, 3.2), 0.01, True),
        ("two rounds, not significant", rounds(5.5, 6.0), rounds(5, 5), 0.01, False),
        ("two rounds, far away", rounds(20, 21), rounds(5, 5), 0.01, True),
        ("not significant", rounds(5, 9, 4, 6, 7), rounds(6, 5, 6, 5, 5), 0.01, False),
        ("one round is none", rounds(9), rounds(1), 0.01, False),
        ("much slower, much noise", rounds(*[1] * 5), rounds(*[20] * 5), 1.07, True),
        ("half as fast, much noise", rounds(*[10] * 5), rounds(*[20] * 5), 1.07, False),
    ],
)  # fmt: skip
def test_differences(what, a, b, noise, counts):
    assert paired(a, b).counts(noise) is counts, what


def test_rounds_that_both_have_are_compared_where_they_are_enough():
    a, b = {0: 8.0, 1: 4.0, 2: 6.0, 3: 9.0}, {1: 2.0, 2: 3.0, 3: 4.5, 4: 1.0}
    assert paired(a, b) == Difference(pytest.approx(1.0), 0.0, 3, 0.0)
    assert paired({0: 5.0}, {0: 2.5}) == Difference(pytest.approx(1.0), 0.0, 1)
    assert paired({0: 5.0}, {1: 5.0}) is None
    assert paired({0: 0.0}, {0: 5.0}) is None


def test_where_few_rounds_have_both_all_are_compared():
    left = paired({0: 20.0, 1: 21.0, 3: 22.0}, {1: 5.0, 2: 5.1, 4: 4.9})
    assert left.share == pytest.approx((20 * 21 * 22 / (5 * 5.1 * 4.9)) ** (1 / 3) - 1)
    assert left.rounds == 3
    assert left.counts(0.5)
    assert not paired({0: 20.0, 1: 4.0, 3: 22.0}, {1: 5.0, 2: 21.0, 4: 4.9}).counts(0.01)
    draw, wrong = random.Random(7), 0
    for _ in range(2000):
        one, other = (
            {i: math.exp(draw.gauss(0, 0.05)) for i in some} for some in ((0, 1, 2), (1, 2, 3))
        )
        wrong += paired(one, other).counts(0.0)
    assert wrong / 2000 < 0.065


def test_the_floor_is_the_most_that_one_differed_from_itself():
    assert floor([]) is None
    assert floor([Difference(0.001, 0.002, 5)]) == 0.01
    assert floor([Difference(-0.07, 0.02, 5), Difference(0.01, 0.05, 5)]) == 0.07


def below(t, freedom, steps=20_000):
    """The share of Student's t between -t and t: its density, by Simpson's rule."""
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    factor /= math.sqrt(freedom * math.pi)
    density = [
        factor * (1 + (i * t / steps) ** 2 / freedom) ** (-(freedom + 1) / 2)
        for i in range(steps + 1)
    ]
    inner = 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])
    return 2 * (density[0] + inner + density[-1]) * t / steps / 3


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 6, 9, 20, 98])
@pytest.mark.parametrize("chance", [DEVICES, RUNS])
def test_critical_values_are_students(freedom, chance):
    assert 1 - below(critical(freedom, chance), freedom) == pytest.approx(chance, rel=0.005)


def drawn(draw, repeats):
    """A run's rates: noise, and nothing else."""
    return [math.exp(draw.gauss(0, 0.05)) for _ in range(repeats)]


@pytest.mark.parametrize(
    ("repeats", "least"), [((2, 2), 0.04), ((2, 5), 0.09), ((3, 3), 0.07), ((5, 5), 0.08)]
)
def test_two_runs_of_the_same_agree_nine_times_of_ten(repeats, least):
    draw = random.Random(7)
    apart = 0
    for _ in range(2000):
        one, other = (drawn(draw, number) for number in repeats)
        far = abs(math.log(geometric_mean(one) / geometric_mean(other)))
        apart += far > half_width(one, other)
    # Of few rounds Welch's test is a little cautious.
    assert least < apart / 2000 < 0.125


@pytest.mark.parametrize(("repeats", "least"), [(2, 0.03), (3, 0.07), (5, 0.08)])
def test_beside_others_the_same_agrees_nine_times_of_ten(repeats, least):
    draw = random.Random(7)
    apart = 0
    for _ in range(2000):
        groups = [drawn(draw, repeats) for _ in range(4)]
        a, b, c, d = map(geometric_mean, groups)
        apart += abs(math.log(a / b / (c / d))) > half_width(*groups)
    assert least < apart / 2000 < 0.125


@pytest.mark.parametrize("repeats", [2, 3, 5, 12])
def test_of_two_devices_that_are_the_same_one_in_twenty_differs(repeats):
    draw = random.Random(7)
    pairs = [
        paired(rounds(*drawn(draw, repeats)), rounds(*drawn(draw, repeats))) for _ in range(2000)
    ]
    assert 0.015 < sum(one.counts(0.0) for one in pairs) / 2000 < 0.065


def test_what_one_rate_differs_by_from_others_is_not_known():
    assert half_width([5.0], [5.0, 5.1]) == float("inf")
    assert half_width([5.0] * 5, [6.0] * 5) == 0.0
    assert 0.1 < half_width([4.0, 5.0, 6.0], [5.0, 5.0]) < 1.5
