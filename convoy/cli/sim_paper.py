# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim paper: Tables 4 and 5 of the PA-Flow paper, simulated."""

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from convoy.cli.result import Json, Result
from convoy.cli.sim_options import (
    INTERRUPTED,
    Document,
    EngineOption,
    ReportOption,
    bars,
    engine_of,
    remark,
)
from convoy.sim import paper


@dataclass(frozen=True)
class Compared(Result):
    """The paper's tables beside simulations."""

    comparisons: list[paper.Comparison]
    seed: int
    duration_s: float | None

    @property
    def exit_code(self) -> int:
        """130 where a simulation was interrupted."""
        results = (result for c in self.comparisons for result in c.results.values())
        return 0 if all(result["complete"] for result in results) else INTERRUPTED

    def document(self) -> Document:
        """See Result."""
        given = self.duration_s
        return {
            "schema": "convoy.sim.paper/1",
            "seed": self.seed,
            "derived": paper.DERIVED,
            "tables": [
                {
                    "title": c.table.title,
                    "topology": c.table.topology,
                    "duration_s": c.table.duration_s if given is None else given,
                    "rows": [
                        {**vars(row), "deviation": row.deviation, "verdict": row.verdict}
                        for row in c.rows
                    ],
                    "links": [vars(link) for link in c.links],
                    "saved_per_packet": c.saved_per_packet,
                    "saved_by_cells": c.saved_by_cells,
                    "paper_saved_per_packet": c.paper_saved_per_packet,
                    "paper_saved_by_cells": c.paper_saved_by_cells,
                    "notes": list(c.notes),
                    "engines": {mode: result["engine"] for mode, result in c.results.items()},
                    "complete": all(result["complete"] for result in c.results.values()),
                    "run": {mode: result["run"] for mode, result in c.results.items()},
                }
                for c in self.comparisons
            ],
        }

    def show(self, out: Console) -> None:
        """Print a table for each of the paper's."""
        for comparison in self.comparisons:
            _show(comparison, out)
        out.print(paper.DERIVED, markup=False)


def paper_command(
    engine: EngineOption = "auto",
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration-s",
            help="Counts are shown per second. Default: 0.25 for Table 4, 1 for Table 5.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Another aggregation profile, e.g. paper-table2."),
    ] = None,
    more_seeds: Annotated[
        int,
        typer.Option("--more-seeds", min=0, max=1000, help="To see what varies by chance alone."),
    ] = 40,
    report: ReportOption = None,
    as_json: Json = False,
) -> Result:
    """Tables 4 and 5 of the PA-Flow paper, simulated, beside the paper's columns."""
    with bars() as bar:
        comparisons = paper.compare(duration_s, seed, engine_of(engine), profile, bar, more_seeds)
    if report is not None:
        from convoy.sim.report import write_paper

        write_paper(comparisons, report)
    for comparison in comparisons:
        for result in comparison.results.values():
            remark(result)
    return Compared(comparisons, seed, duration_s)


def _show(comparison: paper.Comparison, out: Console) -> None:
    out.print(comparison.table.title, style="bold")
    table = Table("mode", "link", "what", "paper", "simulated", "deviation", "3 %?")
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[3:6]:
        column.justify = "right"
    for row in comparison.rows:
        digits = ",.2f" if row.unit == "bytes" else ",.0f"
        table.add_row(
            row.mode,
            row.link,
            row.what,
            f"{row.paper:{digits}}",
            f"{row.ours:{digits}}",
            f"{100 * row.deviation:+.1f} %",
            row.verdict,
        )
    out.print(table)
    if any(row.seeds for row in comparison.rows):
        out.print(
            "chance: not within 3 %, but in the middle 95 % of what "
            f"{max(len(row.seeds) for row in comparison.rows)} seeds give: the paper shows one run",
            markup=False,
        )
    small = [row for row in comparison.rows if row.verdict == "no" and row.unit == "frames"]
    if small:
        out.print(
            f"not explained: {len(small)} cells, {sum(row.paper for row in small):,.0f} frames of "
            "the paper's; how it estimates rates is not said there",
            markup=False,
        )
    out.print(
        "fewer packets on the sink's link, per original packet: "
        f"{100 * comparison.saved_per_packet:.1f} % "
        f"(paper: {100 * comparison.paper_saved_per_packet:.1f} %); by the table's cells: "
        f"{100 * comparison.saved_by_cells:.1f} % "
        f"(paper: {100 * comparison.paper_saved_by_cells:.1f} %)",
        markup=False,
    )
    for note in comparison.notes:
        out.print(f"note: {note}", markup=False, style="dim")
    out.print()
