# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy report: a page, a document or tables, of one or more runs' folders."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from convoy.cli.console import messages
from convoy.errors import InputError
from convoy.report import export
from convoy.report.run_data import read
from convoy.report.scenario import page

FORMATS = ("html", "md", "csv", "json")


def command(
    folders: Annotated[list[Path], typer.Argument(help="Runs' folders: results/...")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File.  [report.html; others: stdout]")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="html, md, csv or json.  [by the file's name]")
    ] = None,
) -> None:
    """Make a report of what was measured; starts nothing and needs no network."""
    ending = output.suffix.removeprefix(".") if output is not None else "html"
    chosen = form or (ending if ending in FORMATS else "html")
    if chosen not in FORMATS:
        raise InputError(f"--format: '{chosen}': choose of {', '.join(FORMATS)}")
    run = read(folders)
    if chosen == "html":
        to = output or Path("report.html")
        page(run).write(to)
        messages().print(f"report: {to}", markup=False)
        return
    if chosen == "json":
        text = json.dumps(export.document(run), indent=2) + "\n"
    else:
        text = export.markdown(run) if chosen == "md" else export.csv_text(run)
    if output is None:
        sys.stdout.write(text)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, "utf-8")
        messages().print(f"report: {output}", markup=False)
