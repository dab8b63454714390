# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench paflow: all about packets that travel together, beside the paper's numbers."""

import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from convoy.cli.bench_run import measure, render
from convoy.cli.console import console, print_json
from convoy.cli.options import Devices, Json, NewFolder, Rounds, split
from convoy.report import export
from convoy.report.beside import Beside
from convoy.report.paflow_summary import summary
from convoy.report.page import Column
from convoy.report.papers import beside
from convoy.report.run_data import Run, read
from convoy.results.folder import RunFolder
from convoy.run import session

# In the order of the paper.
SCENARIOS = (
    "paflow-lookup",
    "paflow-throughput",
    "paflow-packets",
    "paflow-guest",
    "paflow-in-place",
    "paflow-processes",
    "paflow-ratio",
    "paflow-latency",
    "paflow-drops",
)


def table(found: Beside) -> Table:
    """Return a table of a report for a terminal."""
    out = Table(title=found.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in found.columns:
        head = column if isinstance(column, Column) else Column(column)
        out.add_column(f"{head.name}\n{head.unit}" if head.unit else head.name)
    for row in found.rows:
        out.add_row(*(export.text_of(value) for value in row))
    return out


def show(run: Run) -> None:
    """Print what no table of rates shows: the claims, ratios, drops."""
    claims = summary(run)
    tables = [t for name in run.scenarios if run.of(name) for t in beside(run, name)]
    for one in (*tables, *((claims,) if claims else ())):
        if one.rows:
            console().print(table(one))


def command(
    devices: Devices = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only these, with commas: {', '.join(n[7:] for n in SCENARIOS)}.  [all]"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About fourteen minutes; wider intervals.")
    ] = False,
    repeats: Rounds = None,
    output: NewFolder = None,
    as_json: Json = False,
) -> None:
    """Measure convoys as PA-Flow's paper does: throughput, ratio, latency, drops, look-up.

    Runs the scenarios paflow-* as `convoy bench run` would, into one report that opens with the
    paper's claims beside what was measured. Goes on after an interruption with `convoy bench
    resume`.
    """
    names = [f"paflow-{word}" for word in split("--only", only) or ()] or SCENARIOS
    asked = session.wanted(names, split("--devices", devices), quick, repeats)
    session.cores()
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = RunFolder(output or Path("results") / f"{now}-paflow")
    folder.create(asked)
    result = measure(folder, asked)
    run = read([folder.path])
    if as_json:
        document = export.document(run)
        parts = ("claims", "compared", "in_memory")
        print_json(result.as_json() | {key: document[key] for key in parts})
        return
    render(result)
    show(run)
