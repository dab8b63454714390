# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy report: a page, a document or tables, of one or more runs' folders."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from convoy.cli.console import messages
from convoy.errors import InputError
from convoy.report import export
from convoy.report.page import write_whole
from convoy.report.run_data import read
from convoy.report.scenario import page

FORMATS = ("html", "md", "csv", "json")


def _written(to: Path, write: Callable[[Path], None]) -> None:
    try:
        write(to)
    except OSError as error:
        raise InputError(f"--output: '{to}': {error.strerror}; give another file") from None


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
        _written(to, page(run).write)
        messages().print(f"report: {to}", markup=False)
        return
    if chosen == "json":
        text = json.dumps(export.document(run), indent=2) + "\n"
    else:
        text = export.markdown(run) if chosen == "md" else export.csv_text(run)
    if output is None:
        sys.stdout.write(text)
    else:
        _written(output, partial(write_whole, text=text))
        messages().print(f"report: {output}", markup=False)
