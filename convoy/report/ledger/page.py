# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The ledger's page: each claim, its verdict, the numbers, and the figures of its scenario."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.report.document import Cell, Column, Document, Table
from convoy.report.figures import figures
from convoy.report.ledger import load
from convoy.report.ledger.evaluate import (
    HOLDS,
    UNTESTED,
    VERDICTS,
    Evaluation,
    counts,
    evaluate_all,
)
from convoy.report.ledger.model import Ledger
from convoy.report.run_data import Run

HOW = (
    "Each verdict is computed from the results (`scenarios/claims.yaml` has the predicates). A "
    "quotient or a quantity lies in the interval that holds the rounds' extremes, Student's "
    "confidence interval (95 %) and the noise floor. A claim **holds** where the whole interval is "
    "within what it says, is **contradicted** where all of it is without, and is **not "
    "significant here** in between. A claim about several devices is tested on those that are "
    "installed. Sentences are ours; machines and switches differ, so compare orders and ratios."
)


@dataclass(frozen=True)
class Claims:
    """The ledger, and what a run says of each of its claims."""

    ledger: Ledger
    evaluations: list[Evaluation]
    scenarios: Collection[str]  # that were measured

    @property
    def sentence(self) -> str:
        """Return how many claims have each verdict."""
        number = counts(self.evaluations)
        holds, contradicted, unclear, untested = (number[verdict] for verdict in VERDICTS)
        elsewhere = sum(one.claim.scenario not in self.scenarios for one in self.evaluations)
        because = f", {elsewhere} of these for want of their scenarios" if elsewhere else ""
        return (
            f"{holds} of {len(self.evaluations)} claims of the papers hold, {contradicted} are "
            f"contradicted, {unclear} are not significant here, {untested} are not testable here"
            f"{because}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return them as JSON documents have them."""
        return {
            "documents": self.ledger.documents,
            "counts": counts(self.evaluations),
            "claims": [one.as_json() for one in self.evaluations],
        }


def claims_of(run: Run, path: Path, folder: Path) -> Claims:
    """Return the verdicts on a ledger's claims. folder: of the scenarios.

    Raises InputError where the ledger is wrong.
    """
    there = load.scenarios(folder)
    ledger = load.load(path, there)
    return Claims(ledger, evaluate_all(run, ledger, tuple(there)), run.scenarios)


def table(evaluations: Sequence[Evaluation], ledger: Ledger) -> Table:
    """Return a line for each claim."""
    out = Table([
        Column("claim", "", "linked to its numbers and figures, where it was tested"), "says",
        "verdict", Column("why", "", "what decided it: value [interval]"),
        Column("source", "", "the document's title on hover"),
    ])  # fmt: skip
    for one in evaluations:
        source, scenario = one.claim.source, one.claim.scenario
        out.add(
            Cell(one.claim.id, note=scenario, heading=scenario if one.parts else ""),
            one.claim.says,
            one.verdict,
            one.why,
            Cell(f"{source.document}, {source.section}", note=ledger.documents[source.document]),
        )
    return out


def parts(evaluations: Sequence[Evaluation]) -> Table:
    """Return a line for each comparison of claims that were tested."""
    out = Table(
        ["claim", "compared", "claimed", Column("here", "", "value [interval]"), "verdict",
         Column("measured", "", "median [least .. most] of the rounds")],
        page_only=True,
    )  # fmt: skip
    for one in evaluations:
        for part in one.parts:
            here = Cell(part.here.median, part.here.text) if part.here else None
            out.add(one.claim.id, part.what, part.claimed, here, part.verdict, part.numbers)
    return out


def page(run: Run, claims: Claims) -> Document:
    """Return the ledger as a document of its own."""
    host, evaluations = run.hosts[0], claims.evaluations
    out = Document(
        "Claims of the papers", f"{', '.join(run.scenarios)}; {host.cpu}, {len(host.cores)} cores"
    )
    out.text(f"**{claims.sentence}.**\n\n{HOW}")
    order = {verdict: i for i, verdict in enumerate(VERDICTS)}
    out.add(table(sorted(evaluations, key=lambda one: order[one.verdict]), claims.ledger))
    for name in run.scenarios:
        mine = [one for one in evaluations if one.claim.scenario == name]
        if mine:
            out.text(f"## {name}\n\n{run.scenarios[name].title}", page_only=True)
            out.add(*figures(run, name))
            out.add(parts(mine))
    return out


def section(claims: Claims) -> Table:
    """Return, for a run's own report, the claims that it tested."""
    tested = [one for one in claims.evaluations if one.verdict != UNTESTED]
    return table(sorted(tested, key=lambda one: one.verdict == HOLDS), claims.ledger)
