# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run that ended: its report, written and shown.

Not imported before a run has ended: what draws and writes a page takes as long to load as all that
measures.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from convoy.cli.progress import elapsed
from convoy.cli.report import claims_file, write_pages
from convoy.cli.result import Result
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report import export
from convoy.report.ledger.evaluate import UNTESTED
from convoy.report.ledger.page import Claims, claims_of
from convoy.report.run_data import Run, read
from convoy.report.run_document import document
from convoy.report.text import show
from convoy.results.folder import RunFolder


@dataclass(frozen=True)
class Measured(Result):
    """A run that ended."""

    folder: Path
    run: Run
    claims: Claims
    seconds: float
    left_out: int  # device runs, by a time limit

    @property
    def report(self) -> Path:
        """Return where the page is."""
        return self.folder / "report.html"

    def document(self) -> dict[str, Any]:
        """Return that of `convoy report`, and where it is."""
        return export.document(self.run, self.claims) | {
            "schema": "convoy.bench.run/3",
            "folder": str(self.folder),
            "report": str(self.report),
            "seconds": round(self.seconds, 1),
            "left_out": self.left_out,
        }

    def show(self, out: Console) -> None:
        """Print what the report says in words and tables, and where it is."""
        show(document(self.run), out)  # what it says of claims is too wide for a terminal
        out.print(f"took {elapsed(self.seconds)}; report: {self.report}", markup=False)
        if self.left_out:
            out.print(
                f"left out by the time limit: {self.left_out} device runs; "
                f"convoy bench resume {self.folder} does them",
                markup=False,
            )
        tested = sum(one.verdict != UNTESTED for one in self.claims.evaluations)
        if tested:
            where = claims_file(self.report)
            out.print(f"of the papers' claims it tests {tested}: {where}", markup=False)


def finish(folder: RunFolder, began: float, left_out: int = 0) -> Measured:
    """Everything from here on is made of what was kept. left_out: device runs, by a time limit."""
    run = read([folder.path])
    claims = claims_of(run, LEDGER, SCENARIOS)
    result = Measured(folder.path, run, claims, time.monotonic() - began, left_out)
    write_pages(result.report, run, result.claims)
    return result
