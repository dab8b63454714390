# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A claim and a run to a verdict. Pure; no verdict is written by hand.

A quotient of two quantities, or one quantity, is known to lie in an interval. It holds the rounds'
extremes, Student's confidence interval (noise.py) and the noise floor around the median. Where best
rounds say more than all of them, it is what these say. A claim
holds where the whole interval is within what it says, and is contradicted where all of it is
without. Where the interval has an edge of the claim in it, nothing significant can be said.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from convoy.report.ledger.measured import QUIET, Measured, NotMeasuredError, measure, words
from convoy.report.ledger.model import (
    Claim,
    Coordinates,
    Crossing,
    From,
    Ledger,
    Monotone,
    Order,
    Quantity,
    Ratio,
    Single,
    Value,
)
from convoy.report.noise import APART, DEVICES, FLOOR_MIN, PAIRS_MIN, Difference, critical, paired
from convoy.report.run_data import Run

Verdict = Literal["holds", "contradicted", "not significant here", "not testable here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
HOLDS, CONTRADICTED, UNCLEAR, UNTESTED = VERDICTS
FAR = 600.0  # a logarithm, beyond which nothing is known


@dataclass(frozen=True)
class Interval:
    """Where a value lies, and its median (or what best rounds say)."""

    median: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """Return it as people read it."""
        median, low, high = (
            f"{v:.0f}" if 1000 <= v < math.inf else f"{v:.3g}"
            for v in (self.median, self.low, self.high)
        )
        return f"{median} [{low} .. {high}]"

    def or_around(self, best: float | None) -> "Interval":
        """Return what is known by best rounds, where all of them together say less."""
        if best is None or self.high < self.low * (1 + APART) ** 2:
            return self
        return Interval(best, best / (1 + APART), best * (1 + APART))

    def opened(self, down: bool, up: bool) -> "Interval":
        """Return it with open ends: of values that are at most, or at least, so much."""
        return Interval(self.median, 0.0 if down else self.low, math.inf if up else self.high)


@dataclass(frozen=True)
class Part:
    """One comparison that a claim asks for, at one point."""

    what: str
    claimed: str
    verdict: Verdict
    here: Interval | None = None  # None: not measured
    numbers: str = ""  # what was measured; or why nothing was
    device: str = ""  # of the case, where the claim is one of several devices

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it; an open end of an interval is null."""
        ends = (self.here.median, self.here.low, self.here.high) if self.here else ()
        known = [end if math.isfinite(end) else None for end in ends]
        here = dict(zip(("median", "low", "high"), known, strict=True)) if known else None
        return {
            "what": self.what, "claimed": self.claimed, "verdict": self.verdict, "here": here,
            "numbers": self.numbers,
        }  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """A claim and what a run says of it."""

    claim: Claim
    verdict: Verdict
    parts: tuple[Part, ...]
    why: str  # of the verdict, in a sentence

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON documents have it."""
        return {
            "id": self.claim.id,
            "document": self.claim.source.document,
            "section": self.claim.source.section,
            "says": self.claim.says,
            "scenario": self.claim.scenario,
            "verdict": self.verdict,
            "why": self.why,
            "parts": [part.as_json() for part in self.parts],
        }


def quotient(a: Measured, b: Measured, floor: float) -> Interval:
    """Return a / b. Rounds are paired where enough of them have both."""
    common = a.rounds.keys() & b.rounds.keys() if a.pairs and b.pairs else set()
    if 0 in (a.least, b.least):
        return _with_zeros(a, b)
    if len(common) >= PAIRS_MIN:
        each = sorted(a.rounds[i] / b.rounds[i] for i in common)
        low, middle, high = each[0], _middle(each), each[-1]
    else:
        low, middle, high = a.least / b.most, a.median / b.median, a.most / b.least
    if a.rounds and b.rounds:
        apart = {-1 - i: value for i, value in b.rounds.items()}  # no round of the same number
        difference = paired(a.rounds, b.rounds if len(common) >= PAIRS_MIN else apart)
        low, high = _student(low, high, difference)
    low, high = min(low, middle / (1 + floor)), max(high, middle * (1 + floor))
    here = Interval(middle, low, high).or_around(a.best / b.best if a.best and b.best else None)
    return here.opened(a.upper_bound or b.lower_bound, a.lower_bound or b.upper_bound)


def _with_zeros(a: Measured, b: Measured) -> Interval:
    """Return a quotient where a value is 0: of losses, most often. By the extremes alone."""
    if not a.most and not b.most:
        return Interval(1.0, 0.0, math.inf)  # where nothing was lost, no share of it is known
    single = min(len(a.rounds), len(b.rounds)) < 2
    low = 0.0 if single or not b.most else a.least / b.most
    high = math.inf if single or not b.least else a.most / b.least
    middle = a.median / b.median if b.median else math.inf
    return Interval(middle, math.inf if not b.most and a.least and not single else low, high)


def single(a: Measured, floor: float) -> Interval:
    """Return where one quantity lies."""
    low, high = a.least, a.most
    if a.least > 0 and a.rounds:
        logs = [math.log(value) for value in a.rounds.values()]
        mean, freedom = math.fsum(logs) / len(logs), len(logs) - 1
        spread = math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / max(1, freedom))
        chance = critical(max(1, freedom), DEVICES) * spread / math.sqrt(len(logs))
        low, high = _student(low, high, Difference(math.expm1(mean), 0.0, len(logs), chance))
    elif len(a.rounds) == 1:
        low, high = 0.0, math.inf
    low, high = min(low, a.median / (1 + floor)), max(high, a.median * (1 + floor))
    return Interval(a.median, low, high).or_around(a.best).opened(a.upper_bound, a.lower_bound)


def _student(low: float, high: float, mean: Difference | None) -> tuple[float, float]:
    """Widen an interval by the confidence interval of a mean: its difference from 1."""
    if mean is None or mean.rounds < 2 or not math.isfinite(mean.chance):
        return 0.0, math.inf  # one round shows no spread
    middle, by = 1 + mean.share, math.exp(min(mean.chance, FAR))
    return min(low, middle / by), max(high, middle * by)


def _middle(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def bounded(here: Interval, least: float | None, most: float | None) -> Verdict:
    """Return whether an interval is within bounds, without them, or neither."""
    low, high = least or 0.0, math.inf if most is None else most
    if here.low >= low and here.high <= high:
        return HOLDS
    return CONTRADICTED if here.high < low or here.low > high else UNCLEAR


def claimed(least: float | None, most: float | None, unit: str = "") -> str:
    """Return bounds as people read them."""
    end = f" {unit}" if unit else ""
    if least is None or most is None:
        return f"{'at least' if most is None else 'at most'} {(least or most or 0):g}{end}"
    return f"{least:g} .. {most:g}{end}"


class _Evaluator:
    """Evaluates the parts of one claim in one case of one run."""

    def __init__(self, run: Run, claim: Claim, which: str, case: dict[str, Coordinates]) -> None:
        self._run, self._claim, self._which, self._case = run, claim, which, case
        self._device = str(case.get("device", ""))

    def parts(self) -> Iterator[Part]:
        """Yield all of them."""
        for one in self._claim.parts:
            yield from self._single(one)

    def _single(self, one: Single) -> Iterator[Part]:
        match one:
            case Order():
                for a, b in zip(one.of, one.of[1:], strict=False):
                    yield self._more(a, b, {})
            case Ratio():
                yield self._part(one.of, one.over, {}, one.least, one.most)
            case Value():
                yield self._part(one.of, None, {}, one.least, one.most)
            case Monotone():
                for before, after in zip(one.points, one.points[1:], strict=False):
                    points = [{str(one.along): point} for point in (after, before)]
                    if one.direction == "falls":
                        points.reverse()
                    more, less = (one.of.at(point) for point in points)
                    yield self._more(more, less, {})
            case From():
                reached = one.points.index(one.at)
                for i, point in enumerate(one.points):
                    bounds = (one.least, None) if i >= reached else (None, one.least)
                    yield self._part(one.of, one.over, {one.along: point}, *bounds)
            case Crossing():
                last, first = (one.points.index(point) for point in one.between)
                for i, point in enumerate(one.points):
                    if i <= last:
                        yield self._more(one.of, one.over, {one.along: point})
                    elif i >= first:
                        yield self._more(one.over, one.of, {one.along: point})

    def _more(self, a: Quantity, b: Quantity, point: dict[Any, Coordinates]) -> Part:
        return self._part(a, b, point, 1.0, None, "more than 1")

    def _part(
        self,
        of: Quantity,
        over: Quantity | None,
        point: dict[Any, Coordinates],
        least: float | None,
        most: float | None,
        claims: str = "",
    ) -> Part:
        at = self._case | point
        a, b = of.at(at), over.at(at) if over is not None else None
        what = words(a) + (f" / {words(b)}" if b is not None else "")
        if self._which:
            what = f"{self._which}: {what}"
        says = claims or claimed(least, most)
        try:
            one = measure(self._run, self._claim.scenario, self._which, a)
            other = measure(self._run, self._claim.scenario, self._which, b) if b else None
        except NotMeasuredError as error:
            return Part(what, says, UNTESTED, None, str(error), self._device)
        here = (
            single(one, self._floor(a)) if other is None else quotient(one, other, self._floor(a))
        )
        numbers = one.text + (f" / {other.text}" if other is not None else "")
        says = says if other is not None else claimed(least, most, one.unit)
        return Part(what, says, bounded(here, least, most), here, numbers, self._device)

    def _floor(self, quantity: Quantity) -> float:
        if quantity.metric in QUIET:
            return FLOOR_MIN
        size = None if quantity.size is None else str(quantity.size)
        floor = self._run.noise_floor(self._claim.scenario, size, self._which or None)
        return max(FLOOR_MIN, floor or 0.0)


def evaluate(run: Run, claim: Claim, exists: bool) -> Evaluation:
    """Return what a run says of a claim. exists: its scenario is there."""
    if claim.scenario not in run.scenarios:
        why = f"convoy bench run {claim.scenario}" if exists else f"needs scenario {claim.scenario}"
        why = "; ".join(filter(None, (why, claim.needs)))
        return Evaluation(claim, UNTESTED, (), why)
    runs = {row.run for row in run.of(claim.scenario)} | {r.run for r in run.served(claim.scenario)}
    parts = tuple(
        part
        for which in sorted(runs) or [""]
        for case in claim.cases
        for part in _Evaluator(run, claim, which, case).parts()
    )
    verdict = _whole(parts)
    return Evaluation(claim, verdict, parts, _why(claim, verdict, parts))


def _whole(parts: Sequence[Part]) -> Verdict:
    """Return the verdict of all parts.

    A claim about several devices is tested on those that are here. All else that it asks for must
    have been measured, unless what was measured contradicts it.
    """
    here = {part.device for part in parts if part.verdict != UNTESTED}
    left = {part.verdict for part in parts if part.device in here}
    for verdict in (CONTRADICTED, UNTESTED, UNCLEAR):
        if verdict in left:
            return verdict
    return HOLDS if left else UNTESTED


def _why(claim: Claim, verdict: Verdict, parts: Sequence[Part]) -> str:
    """Return the first of the parts that decided, with its numbers."""
    those = [part for part in parts if part.verdict == verdict]
    if verdict == UNTESTED:
        return "; ".join(filter(None, (*dict.fromkeys(p.numbers for p in those[:3]), claim.needs)))
    first = those[0]
    here = first.here.text if first.here else ""
    shown = f"{first.what}: {here}, claimed {first.claimed}; measured {first.numbers}"
    more = f"; and {len(those) - 1} more" if len(those) > 1 else ""
    missing = dict.fromkeys(p.device for p in parts if p.verdict == UNTESTED and p.device)
    sentences = [
        shown + more,
        claim.because if verdict == CONTRADICTED else "",
        f"Not here: {', '.join(missing)}" if missing else "",
        claim.caveat,
    ]
    known = [text.removesuffix(".") for text in sentences if text]
    return ". ".join(known) + "." * (len(known) > 1)


def evaluate_all(run: Run, ledger: Ledger, scenarios: Sequence[str]) -> list[Evaluation]:
    """Return what a run says of every claim. scenarios: those that exist."""
    return [evaluate(run, claim, claim.scenario in scenarios) for claim in ledger.claims]


def counts(evaluations: Sequence[Evaluation]) -> dict[Verdict, int]:
    """Return how many claims have each verdict."""
    return {verdict: sum(one.verdict == verdict for one in evaluations) for verdict in VERDICTS}
