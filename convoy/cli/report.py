# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy report: a page, a document or tables, of one or more runs' folders."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from convoy.base.files import write_whole
from convoy.cli.console import messages
from convoy.errors import InputError
from convoy.report import export
from convoy.report.html import html
from convoy.report.run_data import Run, read
from convoy.report.run_document import document
from convoy.report.text import markdown

FORMATS: dict[str, Callable[[Run], str]] = {
    "html": lambda run: html(document(run)),
    "md": lambda run: markdown(document(run)),
    "csv": export.csv_text,
    "json": lambda run: json.dumps(export.document(run), indent=2) + "\n",
}


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
    text = FORMATS[chosen](read(folders))
    to = output or (Path("report.html") if chosen == "html" else None)
    if to is None:
        sys.stdout.write(text)
        return
    try:
        write_whole(to, text)
    except OSError as error:
        raise InputError(f"--output: '{to}': {error.strerror}; give another file") from None
    messages().print(f"report: {to}", markup=False)
