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
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report import export
from convoy.report.html import html
from convoy.report.ledger.page import Claims, claims_of, page
from convoy.report.run_data import Run, read
from convoy.report.run_document import document
from convoy.report.text import markdown

FORMATS: dict[str, Callable[[Run, Claims], str]] = {
    "html": lambda run, claims: html(document(run, claims)),
    "md": lambda run, claims: markdown(document(run, claims)),
    "csv": lambda run, _: export.csv_text(run),
    "json": lambda run, claims: json.dumps(export.document(run, claims), indent=2) + "\n",
}


def claims_file(report: Path) -> Path:
    """Return where the page of claims is, beside a report."""
    return report.with_name(f"{report.stem}-claims.html")


def write_pages(to: Path, run: Run, claims: Claims) -> None:
    """Write a report's page, and that of the papers' claims beside it. Raises OSError."""
    write_whole(to, FORMATS["html"](run, claims))
    write_whole(claims_file(to), html(page(run, claims)))


def command(
    folders: Annotated[
        list[Path], typer.Argument(help="Runs' folders: results/..., or files that hold some")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File.  [report.html; others: stdout]")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="html, md, csv or json.  [by the file's name]")
    ] = None,
    ledger: Annotated[
        Path,
        typer.Option("--claims", help="The papers' claims.", show_default="scenarios/claims.yaml"),
    ] = LEDGER,
) -> None:
    """Make a report of what was measured; starts nothing and needs no network."""
    ending = output.suffix.removeprefix(".") if output is not None else "html"
    chosen = form or (ending if ending in FORMATS else "html")
    if chosen not in FORMATS:
        raise InputError(f"--format: '{chosen}': choose of {', '.join(FORMATS)}")
    run = read(folders)
    claims = claims_of(run, ledger, SCENARIOS)
    to = output or (Path("report.html") if chosen == "html" else None)
    if to is None:
        sys.stdout.write(FORMATS[chosen](run, claims))
        messages().print(claims.sentence, markup=False)
        return
    try:
        if chosen == "html":
            write_pages(to, run, claims)
        else:
            write_whole(to, FORMATS[chosen](run, claims))
    except OSError as error:
        raise InputError(f"--output: '{to}': {error.strerror}; give another file") from None
    messages().print(f"report: {to}", markup=False)
    where = f": {claims_file(to)}" if chosen == "html" else ""
    messages().print(f"{claims.sentence}{where}", markup=False)
