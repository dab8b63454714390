# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The search against devices of which the answer is known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoy.search.bisection import Verdict, highest

WIDTH = 0.05


def device(capacity, tester_most=float("inf")):
    """A device that keeps up to its capacity; the tester cannot offer more than its own most."""

    def measure(rate):
        if rate > tester_most:
            return Verdict.SPOILT
        return Verdict.PASSED if rate <= capacity else Verdict.FAILED

    return measure


@given(capacity=st.floats(1e3, 3e7), guess=st.floats(0.3, 3))
def test_finds_the_capacity_within_the_width(capacity, guess):
    found = highest(device(capacity), capacity * guess, 1e8, WIDTH, trials_max=60)
    assert capacity / (1 + WIDTH) * 0.999 <= found.rate_pps <= capacity
    assert found.failed_pps > capacity
    assert not found.tester_limited


def test_one_hiccup_changes_nothing():
    clean = highest(device(8e6), 7e6, 3e7)
    for hiccup in range(clean.trials):
        calls = iter(range(1000))
        measure = device(8e6)

        def hiccuping(rate, calls=calls, hiccup=hiccup, measure=measure):
            return Verdict.FAILED if next(calls) == hiccup else measure(rate)

        assert highest(hiccuping, 7e6, 3e7).rate_pps == clean.rate_pps


def test_spoilt_trials_are_counted_and_change_nothing():
    drawn = random.Random(1)
    measure = device(8e6)
    found = highest(
        lambda rate: Verdict.SPOILT if drawn.random() < 0.2 else measure(rate), 7e6, 3e7
    )
    assert found.spoilt > 0
    assert 8e6 / (1 + WIDTH) <= found.rate_pps <= 8e6


def test_a_device_faster_than_the_tester_is_said_to_be():
    found = highest(device(8e6, tester_most=5e6), 4e6, 3e7)
    assert found.tester_limited
    assert found.failed_pps is None
    assert 5e6 / (1 + WIDTH) <= found.rate_pps <= 5e6


def test_a_device_that_keeps_up_with_the_most_is_at_least_that_fast():
    found = highest(device(8e6), 1e6, 5e6)
    assert found.rate_pps == 5e6
    assert found.tester_limited


def test_a_device_that_loses_always_has_no_rate_and_the_search_ends():
    found = highest(device(0), 7e6, 3e7, trials_max=16)
    assert found.rate_pps is None
    assert found.failed_pps is not None
    assert found.trials <= 17


@pytest.mark.parametrize("verdict", list(Verdict))
def test_never_more_trials_than_allowed_by_much(verdict):
    found = highest(lambda rate: verdict, 1e6, 1e9, trials_max=10)
    assert found.trials <= 12
