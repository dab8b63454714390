# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Reads the ledger of claims. What it names in scenarios that are there must exist.

A claim may name a scenario that is not there yet: then it cannot be tested, and says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from convoy.base.problem import DescriptorError, Loc, Problem, known, shown
from convoy.base.validate import validate
from convoy.base.yaml_text import read
from convoy.report.ledger.model import (
    APPLICATIONS,
    Claim,
    Coordinates,
    Curve,
    Ledger,
    Order,
    Quantity,
    Single,
)
from convoy.results.scenario import Scenario


def scenarios(folder: Path) -> dict[str, Scenario]:
    """Return the scenarios that are there and right; `bench run` says what is wrong with others."""
    result = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            result[path.stem] = Scenario.model_validate(read(path).data)
        except (DescriptorError, ValidationError):
            continue
    return result


def load(path: Path, there: Mapping[str, Scenario]) -> Ledger:
    """Return the ledger. there: the scenarios by name.

    Raises InputError with file, line, field, value and fix.
    """
    text = read(path, "begin with documents: and claims: (see scenarios/claims.yaml)")
    ledger = validate(text, Ledger)
    problems = list(_problems(ledger, there))
    if problems:
        raise text.error(problems)
    return ledger


def _problems(ledger: Ledger, there: Mapping[str, Scenario]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for i, claim in enumerate(ledger.claims):
        at: Loc = ("claims", i)
        if claim.id in seen:
            yield Problem((*at, "id"), "given twice", "rename one of them", shown(claim.id))
        seen[claim.id] = i
        if claim.source.document not in ledger.documents:
            fix = known("documents", claim.source.document, ledger.documents)
            yield Problem((*at, "source", "document"), "is none of the documents", fix,
                          shown(claim.source.document))  # fmt: skip
        if claim.scenario in there:
            yield from _claim(at, claim, there[claim.scenario])


def _claim(at: Loc, claim: Claim, scenario: Scenario) -> Iterator[Problem]:
    """Yield each name that the scenario does not have, once."""
    problems: dict[str, Problem] = {}
    for quantity in quantities(claim):
        for problem in _quantity((*at, "predicate"), quantity, scenario):
            problems.setdefault(problem.what, problem)
    yield from problems.values()


def quantities(claim: Claim) -> Iterator[Quantity]:
    """Yield every quantity that the claim asks for, at each point of each case."""
    for case in claim.cases:
        for part in claim.parts:
            for point in _points(part):
                for quantity in _of(part):
                    whole = quantity.at({**case, **point})
                    yield whole
                    yield from whole.inner


def _points(part: Single) -> list[dict[str, Coordinates]]:
    if not isinstance(part, Curve):
        return [{}]
    return [{str(part.along): point} for point in part.points]


def _of(part: Single) -> list[Quantity]:
    if isinstance(part, Order):
        return part.of
    return [one for one in (part.of, getattr(part, "over", None)) if one is not None]


def _quantity(at: Loc, quantity: Quantity, scenario: Scenario) -> Iterator[Problem]:
    if quantity.part is not None:
        there: tuple[str, ...] = scenario.in_memory
        if quantity.metric == "simulated":
            there = scenario.simulated
        if quantity.part.what not in there:
            yield _unknown(at, quantity.metric, quantity.part.what, there)
        return
    if quantity.setup not in scenario.setups:
        yield _unknown(at, "setup", quantity.setup, scenario.setups)
        return
    devices = scenario.setups[quantity.setup].devices or scenario.devices
    if quantity.device not in devices:
        yield _unknown(at, "device", quantity.device, devices)
    sizes: list[str | None] = [str(size) for size in scenario.sizes]
    if quantity.metric in APPLICATIONS:
        if scenario.applications is None or quantity.metric not in scenario.applications.run:
            runs = scenario.applications.run if scenario.applications else ()
            yield _unknown(at, "application", quantity.metric, runs)
            return
        sizes = [None, *map(str, scenario.applications.sizes)]
    size = None if quantity.size is None else str(quantity.size)
    if size not in sizes and not (size is None and len(sizes) == 1):
        yield _unknown(at, "size", size, [one for one in sizes if one])
    if quantity.pps is not None and quantity.pps not in scenario.rates_pps:
        yield _unknown(at, "pps", f"{quantity.pps:g}", [f"{r:g}" for r in scenario.rates_pps])
    if quantity.load is not None and quantity.load not in scenario.latency:
        yield _unknown(at, "load", quantity.load, map(str, scenario.latency))
    if quantity.cpu_speed is not None and quantity.cpu_speed not in scenario.cpu_speeds:
        speeds = map(str, scenario.cpu_speeds)
        yield _unknown(at, "cpu-speed", quantity.cpu_speed, speeds)


def _unknown(at: Loc, key: str, value: object, names: Iterable[str]) -> Problem:
    if value is None:
        return Problem(at, f"a quantity has no {key}", f"give it one; {known('values', '', names)}")
    fix = known("values", value, names)
    return Problem(at, f"{key} {shown(value)}: the scenario has none called so", fix)
