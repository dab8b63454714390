# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Each claim that comes along holds on some results and is contradicted on others.

The results are made up: starting from the same value everywhere, the quantity in front of each
comparison is moved until all comparisons of the claim are as it says; then until one is not.
"""

import math
from types import SimpleNamespace

import pytest

from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report.ledger import evaluate as evaluator
from convoy.report.ledger.evaluate import CONTRADICTED, HOLDS, evaluate
from convoy.report.ledger.load import load, scenarios
from convoy.report.ledger.measured import Measured, words

CLAIMS = load(LEDGER, scenarios(SCENARIOS)).claims
PASSES = 300
CLEAR = 1.5  # times a bound: beyond noise


class Results:
    """A run of one claim's scenario in which any quantity can be given any value."""

    def __init__(self, claim):
        self.claim = claim
        self.scenarios = [claim.scenario]
        self.values = {}
        self.compared = []

    def of(self, scenario):
        return [SimpleNamespace(run="")]

    def served(self, scenario):
        return []

    def noise_floor(self, scenario, size, run):
        return 0.01  # of a quiet machine

    def key(self, quantity):
        return (quantity.metric, words(quantity.model_copy(update={"plus": [], "per": None})))

    def value(self, quantity):
        sum_ = self.values.setdefault(self.key(quantity), 1.0)
        sum_ += sum(self.value(more) for more in quantity.plus)
        return sum_ / (self.value(quantity.per) if quantity.per else 1.0)

    def measured(self, run, scenario, which, quantity):
        value = self.value(quantity)
        rounds = {i: value * spread for i, spread in enumerate((0.999, 1.0, 1.001, 1.0005))}
        return Measured("", rounds, value, min(rounds.values()), max(rounds.values()))

    def ratio(self, part):
        of, over, _, _ = part
        return self.value(of) / (self.value(over) if over is not None else 1.0)

    def move(self, part, factor):
        self.values[self.key(part[0])] *= factor

    def verdict(self, monkeypatch):
        real = evaluator._Evaluator._part
        self.compared = []

        def part(its, of, over, point, least, most, claims=""):
            at = its._case | point
            both = of.at(at), over.at(at) if over is not None else None
            self.compared.append((*both, least, most))
            return real(its, of, over, point, least, most, claims)

        with monkeypatch.context() as patch:
            patch.setattr(evaluator, "measure", self.measured)
            patch.setattr(evaluator._Evaluator, "_part", part)
            return evaluate(self, self.claim, exists=True).verdict


def wanted(least, most):
    """Return a ratio that lies between, far enough from either."""
    if least and most:
        return math.sqrt(least * most)
    return least * CLEAR if least else most / CLEAR


def inside(ratio, least, most):
    least, most = least or 0.0, most or math.inf
    narrow = most / least if least else math.inf
    clear = min(1.2, narrow**0.25)
    return least * clear <= ratio <= most / clear


def until_it_holds(results, monkeypatch):
    for _ in range(PASSES):
        verdict = results.verdict(monkeypatch)
        if verdict == HOLDS:
            return verdict
        for part in results.compared:
            ratio = results.ratio(part)
            if not inside(ratio, *part[2:]):
                results.move(part, wanted(*part[2:]) / ratio)
    return verdict


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_it_can_hold_and_be_contradicted(claim, monkeypatch):
    results = Results(claim)
    assert until_it_holds(results, monkeypatch) == HOLDS
    whole = dict(results.values)
    for part in list(results.compared):
        results.values = dict(whole)
        _, _, least, most = part
        results.move(part, (most * 10 if most else least / 10) / results.ratio(part))
        assert results.verdict(monkeypatch) == CONTRADICTED


@pytest.mark.parametrize("name", ["clickos-cpu-full-small", "loss-periods-of-32"])
def test_noise_of_rates_is_none_of_shares_and_lengths(name, monkeypatch):
    (claim,) = (one for one in CLAIMS if one.id == name)
    results = Results(claim)
    assert until_it_holds(results, monkeypatch) == HOLDS
    monkeypatch.setattr(Results, "noise_floor", lambda *_: 0.2)
    assert results.verdict(monkeypatch) == HOLDS
