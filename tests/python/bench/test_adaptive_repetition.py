# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which points are measured once more."""

import pytest

from convoy.results.trials import GoalResult, Point, Search
from convoy.run.adaptive_repetition import ROUNDS_MAX, capped, uncertain

AT_LEAST = "the tester could not offer more"
BUSY = "the machine was too busy to go on: a lower bound"


def point(repeat):
    return Point(device="a", functions=(), size="64", repeat=repeat)


def search(repeat, rate, remark=""):
    goal = GoalResult(
        goal="pdr",
        rate_pps=rate,
        lower_pps=rate,
        upper_pps=None,
        regular=not remark,
        remark=remark,
        lower_bound=remark == AT_LEAST,
    )
    return Search(point=point(repeat), outcome="measured", goals=(goal,))


def searches(*ends):
    return [
        search(repeat, *end) if isinstance(end, tuple) else search(repeat, end)
        for repeat, end in enumerate(ends)
    ]


@pytest.mark.parametrize(
    ("what", "ends", "expected"),
    [
        ("close together", (5e6, 5.2e6, 5.4e6), False),
        ("a tenth of the median apart", (5.0e6, 5.0e6, 5.5e6), False),
        ("more than that", (5.0e6, 5.0e6, 5.51e6), True),
        ("one was cut short", (5e6, 5e6, (4e6, BUSY)), True),
        ("one found nothing", (5e6, 5e6, (None, BUSY)), True),
        ("it was made up for", (5e6, 5e6, (4e6, BUSY), 5e6), False),
        ("the tester had no more to offer", ((9e6, AT_LEAST), (8e6, AT_LEAST), 9e6), False),
        ("often enough", (5e6, (1e6, BUSY), (2e6, BUSY), *[9e6] * ROUNDS_MAX), False),
        ("nearly often enough", (5e6, (1e6, BUSY), (2e6, BUSY), *[9e6] * (ROUNDS_MAX - 1)), True),
    ],
)
def test_what_tells_too_little(what, ends, expected):
    assert uncertain(searches(*ends), 3) is expected, what


def test_who_fails_is_left_alone():
    failed = [Search(point=point(repeat), outcome="failed", why="no") for repeat in range(3)]
    assert not uncertain(failed, 3)
    assert uncertain([*failed[:2], search(2, 5e6)], 3)


@pytest.mark.parametrize(
    ("rate", "remark", "then", "now", "expected"),
    [
        (19.0e6, AT_LEAST, 20e6, 40e6, True),
        (19.0e6, AT_LEAST, 20e6, 21e6, False),  # no more can be offered now
        (12.0e6, AT_LEAST, 20e6, 40e6, False),  # something else kept it from more
        (19.0e6, "", 20e6, 40e6, False),  # a rate that was found
    ],
)
def test_a_bound_of_a_baseline_rate_that_rose(rate, remark, then, now, expected):
    assert capped(search(0, rate, remark), then, now) is expected


def test_bounds_of_a_baseline_rate_that_rose_are_measured_again():
    ends = [search(i, 19e6, AT_LEAST) for i in range(3)]
    assert not uncertain(ends, 3)
    assert uncertain(ends, 3, again=1)
