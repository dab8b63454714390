# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The search, against curves whose answer is known."""

import random

import pytest

from convoy.errors import InputError
from convoy.search.goals import GOALS, PROFILES, goals
from convoy.search.mlr import Answer, Nothing, search

CAPACITY = 8e6


def device(capacity=CAPACITY, hiccups=0.0, loss=0.05, seed=1, most=None, pauses=0):
    """A measure, and what it was asked: loses what it has no capacity for, and by hiccups."""
    draw = random.Random(seed)
    rates = []

    def measure(rate, seconds):
        rates.append((rate, seconds))
        if most is not None and rate > most:
            return Nothing.LOAD_NOT_REACHED
        if [load for load, _ in rates].count(rate) <= pauses:
            return Nothing.DISTURBED
        sent = round(rate * seconds)
        share = max(0.0, 1 - capacity / rate)
        if draw.random() < hiccups:
            share = max(share, loss)
        return Answer(sent, round(sent * share))

    return measure, rates


def one(measure, names=("pdr",), profile="standard", most=50e6, overload=7e6, **more):
    return search(measure, goals(names, profile), most, overload, **more)


@pytest.mark.parametrize("profile", ["quick", "standard"])
@pytest.mark.parametrize("overload", [0.5e6, 4e6, 8e6, 20e6, 49e6])
def test_the_rate_is_found_wherever_the_search_begins(profile, overload):
    measure, _ = device()
    results, ndr = one(measure, ("pdr", "ndr"), profile, overload=overload)
    width = PROFILES[profile][2]
    for result, capacity in ((results, CAPACITY / 0.995), (ndr, CAPACITY)):
        assert result.regular, result
        assert result.lower_pps <= capacity < result.upper_pps
        assert result.upper_pps / result.lower_pps <= 1 + 1.5 * width
        assert capacity / (1 + 2 * width) <= result.rate_pps <= capacity


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_one_percent_of_trials_with_a_hiccup_changes_less_than_two_percent(profile):
    quiet, _ = device()
    (expected,) = one(quiet, profile=profile)

    for seed in range(100):
        measure, _ = device(hiccups=0.01, seed=seed)
        (result,) = one(measure, profile=profile)
        assert result.rate_pps == pytest.approx(expected.rate_pps, rel=0.02)


def test_hiccups_that_would_have_ruined_a_search_without_exceed_ratio_were_there():
    # The test above can fail: the same hiccups ruin RFC 2544's goal, which forgives none.
    ruined = 0
    for seed in range(100):
        measure, _ = device(hiccups=0.1, seed=seed)
        (result,) = one(measure, ("rfc2544",))
        ruined += result.rate_pps is None or result.rate_pps < 0.97 * CAPACITY
    assert ruined > 10


def test_invalid_trials_are_repeated_and_say_nothing():
    measure, rates = device(pauses=2)
    (result,) = one(measure)
    assert result.regular
    assert result.lower_pps <= CAPACITY / 0.995 < result.upper_pps
    first = rates[0][0]
    assert rates[2][0] == first


def test_a_rate_the_tester_cannot_offer_is_a_lower_bound():
    measure, rates = device(capacity=30e6, most=20e6)
    (result,) = one(measure, most=40e6, overload=18e6)
    assert not result.regular
    assert "a lower bound" in result.remark
    assert result.upper_pps is None
    assert 19e6 < result.rate_pps <= 20e6
    # Each refusal is asked for twice, and nothing at or above one ever again.
    refused = [rate for rate, _ in rates if rate > 20e6]
    assert refused == sorted(refused, reverse=True)
    assert all(refused.count(rate) == 2 for rate in refused)


def test_a_device_faster_than_the_tester_is_a_lower_bound():
    measure, _ = device(capacity=90e6)
    (result,) = one(measure, most=40e6, overload=40e6)
    assert result.rate_pps == pytest.approx(40e6)
    assert "a lower bound" in result.remark


@pytest.mark.parametrize("profile", ["quick", "standard"])
@pytest.mark.parametrize("overload", [38e6, 39.95e6])
@pytest.mark.parametrize("capacity", [39.5e6, 45e6])
def test_a_bound_was_offered_even_where_it_is_the_highest_load(capacity, overload, profile):
    # What came through before is a guess, and wrong: the device takes more, or less, by now.
    measure, rates = device(capacity)
    for result in one(measure, ("ndr", "pdr"), profile, most=40e6, overload=overload):
        assert result.lower_bound is (capacity > 40e6)
        assert result.regular is not result.lower_bound
        offered = {round(rate) for rate, _ in rates}
        assert {round(at) for at in (result.lower_pps, result.upper_pps) if at} <= offered
    assert sum(rate > 39.9e6 for rate, _ in rates) == (2 if profile == "quick" else 3)


def test_the_highest_load_is_not_offered_where_it_bounds_nothing():
    measure, rates = device(30e6)
    (result,) = one(measure, most=40e6, overload=30e6)
    assert result.regular
    assert max(rates)[0] < 39e6


def test_what_was_only_guessed_bounds_no_search_that_is_cut_short():
    measure, rates = device(39.5e6)
    (result,) = one(measure, ("rfc2544",), most=40e6, overload=38e6, longest_s=1e-9)
    assert result.lower_pps in {rate for rate, _ in rates}
    assert result.upper_pps is None


def test_a_device_that_forwards_nothing_has_no_rate():
    measure, _ = device(capacity=0.0)
    (result,) = one(measure, overload=0.0)
    assert result.rate_pps is None
    assert "not even" in result.remark


def test_time_that_runs_out_is_said():
    measure, _ = device()
    (result,) = one(measure, longest_s=1e-9)
    assert not result.regular
    assert result.remark == "the search ran out of time: no rate"


def test_a_machine_that_stays_busy_is_no_bound_of_the_device():
    quiet, rates = device()

    def measure(rate, seconds):
        return quiet(rate, seconds) if len(rates) < 4 else Nothing.DISTURBED

    (result,) = one(measure, overload=4e6)
    assert not result.regular
    assert result.remark.startswith("the machine was too busy")
    assert result.upper_pps is None or result.upper_pps > CAPACITY


def test_goals_are_those_of_the_standards():
    assert (GOALS["ndr"].loss_ratio, GOALS["ndr"].sum_s) == (0.0, 21.0)
    assert (GOALS["pdr"].loss_ratio, GOALS["pdr"].trial_s) == (0.005, 1.0)
    assert (GOALS["rfc2544"].exceed_ratio, GOALS["rfc2544"].trial_s) == (0.0, 60.0)
    assert GOALS["tst009"].sum_s == 2 * GOALS["tst009"].trial_s
    with pytest.raises(InputError, match="goal 'best': there is none called so; choose of ndr"):
        goals(["best"], "quick")
    assert goals(["rfc2544"], "quick")[0].trial_s == 60.0  # a standard's is not shortened
