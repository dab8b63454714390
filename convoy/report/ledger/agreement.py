# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two runs' verdicts on the same claims: how many are equal, and which are not.

A verdict that moves to or from "not significant here" contradicts nothing: one of the runs knows
too little. One that changes between "holds" and "contradicted" is named.
"""

from pathlib import Path
from typing import Any

from convoy.report.ledger import load
from convoy.report.ledger.evaluate import UNCLEAR, UNTESTED, evaluate_all
from convoy.report.run_data import Run


def verdicts(one: Run, other: Run, path: Path, folder: Path) -> dict[str, Any] | None:
    """Return how verdicts on a ledger's claims agree, and a sentence; None: none was tested.

    folder: of the scenarios. Raises InputError where the ledger is wrong.
    """
    there = load.scenarios(folder)
    ledger = load.load(path, there)
    first, second = (evaluate_all(run, ledger, tuple(there)) for run in (one, other))
    pairs = {a.claim.id: (a.verdict, b.verdict) for a, b in zip(first, second, strict=True)}
    tested = {name: pair for name, pair in pairs.items() if UNTESTED not in pair}
    by_one = sum(pair.count(UNTESTED) == 1 for pair in pairs.values())
    if not tested and not by_one:
        return None
    changed = {name: pair for name, pair in tested.items() if pair[0] != pair[1]}
    opposite = {name: pair for name, pair in changed.items() if UNCLEAR not in pair}
    equal, moved = len(tested) - len(changed), len(changed) - len(opposite)
    names = ", ".join(f"{name} ({a}, then {b})" for name, (a, b) in opposite.items())
    summary = (
        f"Of {len(tested)} claims of the papers that both runs test, {equal} have equal verdicts, "
        f"{moved} moved to or from '{UNCLEAR}', {len(opposite)} changed between holds and "
        f"contradicted{f': {names}' if names else ''}."
    )
    if by_one:
        summary += f" {by_one} more are tested by one of the runs only."
    return {
        "tested": len(tested),
        "equal": equal,
        "moved": moved,
        "opposite": len(opposite),
        "changed": [{"id": name, "one": a, "other": b} for name, (a, b) in changed.items()],
        "tested_by_one": by_one,
        "summary": summary,
    }
