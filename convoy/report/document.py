# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A report as data: prose, tables and figures in the order of reading.

It is assembled once and rendered to HTML (html.py), Markdown and a terminal (text.py). Prose is a
small part of Markdown: headings from level two, lists, `code`, **bold** and links.
"""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

MISSING = "–"


def write_number(value: float) -> str:
    """Return a number as people read it: whole ones in groups of three, others to three digits."""
    if not math.isfinite(value):
        return MISSING
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")  # a narrow space
    return f"{value:.3g}"


@dataclass(frozen=True)
class Column:
    """A column's heading, its unit and what it means."""

    name: str
    unit: str = ""
    help: str = ""
    page_only: bool = False  # a terminal has no room for it


@dataclass(frozen=True)
class Cell:
    """A value to sort by, how it is written (default: by write_number), and a remark."""

    value: str | float | None
    text: str = ""
    note: str = ""
    heading: str = ""  # of the same document, that a page links to

    @property
    def missing(self) -> bool:
        """Return whether there is no value; it is never shown as zero."""
        return self.value is None or (
            isinstance(self.value, float) and not math.isfinite(self.value)
        )

    @property
    def numeric(self) -> bool:
        """Return whether the value is a number, or a missing one."""
        return isinstance(self.value, int | float)

    @property
    def written(self) -> str:
        """Return the value as plain text."""
        if self.text or self.value is None:
            return self.text.strip() or MISSING
        return self.value if isinstance(self.value, str) else write_number(self.value)

    @property
    def target(self) -> str:
        """Return what it links to; empty: nothing."""
        return f"#{anchor(self.heading)}" if self.heading else ""


Value = Cell | str | float | None


def spread(
    values: Sequence[float], unit: float = 1.0, digits: int = 2, note: str = "", sign: str = ""
) -> Value:
    """Return median [least .. most] in a unit; None: there are no values.

    sign: what stands before it, where the values are bounds.
    """
    if not values:
        return None
    middle = statistics.median(values)
    text, least, most = (f"{v / unit:.{digits}f}" for v in (middle, min(values), max(values)))
    return Cell(middle, sign + (text if least == most else f"{text} [{least} .. {most}]"), note)


def cell(value: Value) -> Cell:
    """Return a value with how it is written."""
    return value if isinstance(value, Cell) else Cell(value)


class Table:
    """A table and the sentences below it."""

    def __init__(
        self,
        columns: Sequence[Column | str],
        rows: Sequence[Sequence[Value]] = (),
        title: str = "",
        *,
        sortable: bool = True,
        page_only: bool = False,
    ) -> None:
        self.columns = [Column(one) if isinstance(one, str) else one for one in columns]
        self.rows: list[list[Cell]] = []
        self.title = title
        self.notes: list[str] = []
        self.sortable = sortable
        self.page_only = page_only
        for row in rows:
            self.add(*row)

    def add(self, *values: Value) -> None:
        """Add a row. Raises ValueError where it has not one value for each column."""
        if len(values) != len(self.columns):
            raise ValueError(
                f"a row of {len(values)} values in a table of {len(self.columns)} columns"
            )
        self.rows.append([cell(value) for value in values])

    def numeric(self, index: int) -> bool:
        """Return whether a column has numbers."""
        return any(row[index].numeric for row in self.rows)


class Plot(Protocol):
    """What a document needs of a plotly figure."""

    def to_json(self) -> str:
        """Return the figure as plotly's JSON: data and layout."""
        ...


@dataclass(frozen=True, eq=False)
class Figure:
    """An interactive plot. Only pages show it."""

    plot: Plot
    caption: str = ""
    wide: bool = False  # never beside another one
    page_only: bool = True


@dataclass(frozen=True)
class Prose:
    """Paragraphs, headings and lists, in Markdown. HTML in it is text."""

    text: str
    page_only: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to be shown as they are."""

    text: str
    page_only: bool = True


def anchor(heading: str) -> str:
    """Return the name that pages link a heading by."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


Block = Prose | Code | Table | Figure


@dataclass
class Document:
    """A title and blocks in the order of reading."""

    title: str
    subtitle: str = ""
    blocks: list[Block] = field(default_factory=list)

    def text(self, text: str, *, page_only: bool = False) -> None:
        """Add prose."""
        self.blocks.append(Prose(text, page_only))

    def add(self, *blocks: Block | None) -> None:
        """Add blocks; None and empty tables are left out."""
        for block in blocks:
            if block is not None and not (isinstance(block, Table) and not block.rows):
                self.blocks.append(block)
