# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy results: what was measured, kept."""

from pathlib import Path
from typing import Annotated

import typer

from convoy.cli import results_query
from convoy.cli.console import messages
from convoy.host.programs import CHECKOUT
from convoy.results.archive import pack

app = typer.Typer(
    help="Pack results of runs into a file, or query them by SQL (docs/comparing.md).",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Be a group of commands, also of one."""


@app.command("pack")
def command(
    folders: Annotated[list[Path], typer.Argument(help="Runs' folders: results/...")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File, such as runs.tar.xz.")],
    histograms: Annotated[
        bool,
        typer.Option(help="Keep each trial's histogram of latency; percentiles are kept anyway."),
    ] = True,
) -> None:
    """Put runs into one compressed file, which `convoy report` and `convoy advise` read.

    Logs and pages are left out. Equal results make equal files.
    """
    pack(folders, output, CHECKOUT, histograms)
    messages().print(f"{output}: {output.stat().st_size:,} bytes", markup=False)


app.command("query", help=results_query.help_text())(results_query.query)
