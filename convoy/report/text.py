# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A document as Markdown, and on a terminal."""

import re

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from convoy.base.problem import printable
from convoy.report.document import Code, Document, Prose, Table

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARKS = re.compile(r"\*\*|`")
_HEADING = re.compile(r"#+ +")


def _safe(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return printable(text.replace("\u202f", " "))


def _plain(text: str) -> str:
    """Return text that Markdown does not take for HTML or the end of a table's cell."""
    return _TAG.sub("&lt;", text)


def table_lines(table: Table) -> str:
    """Return a table as Markdown."""
    heads = [f"{head.name} {head.unit}".strip() for head in table.columns]
    lines = [heads, ["---"] * len(heads)]
    lines += [[cell.written for cell in row] for row in table.rows]
    rows = [
        " | ".join(_plain(text).replace("|", "\\|").replace("\n", " ") for text in line)
        for line in lines
    ]
    return "\n".join(f"| {row} |" for row in rows)


def markdown(document: Document) -> str:
    """Return the document as Markdown, without its figures."""
    parts = [f"# {_plain(document.title)}", _plain(document.subtitle)]
    for block in document.blocks:
        if isinstance(block, Prose):
            parts.append(_plain(block.text))
        elif isinstance(block, Code):
            parts.append(f"~~~~\n{block.text}\n~~~~")
        elif isinstance(block, Table):
            parts += [_plain(block.title), table_lines(block), *map(_plain, block.notes)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _grid(table: Table) -> Grid:
    """Return a table with the columns that a terminal has room for and that have a value."""
    out = Grid(
        title=Text(_safe(table.title)) if table.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    shown = [
        index
        for index, column in enumerate(table.columns)
        if not column.page_only and not all(row[index].missing for row in table.rows)
    ]
    for index in shown:
        head, numeric = table.columns[index], table.numeric(index)
        out.add_column(
            Text(_safe(head.name) + (f"\n{_safe(head.unit)}" if head.unit else "")),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            overflow="fold",
        )
    for row in table.rows:
        out.add_row(*(Text(_safe(row[index].written)) for index in shown))
    return out


def show(document: Document, out: Console) -> None:
    """Print what a terminal has room for: no figures, and no block or column for pages only."""
    for block in document.blocks:
        if block.page_only:
            continue
        if isinstance(block, Table):
            out.print(_grid(block))
            block = Prose("\n".join(block.notes))
        if isinstance(block, Prose):
            for line in block.text.splitlines():
                head = _HEADING.match(line)
                text = _MARKS.sub("", line[head.end() :] if head else line)
                out.print(Text(_safe(text), style="bold" if head else ""))
