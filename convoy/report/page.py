# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One self-contained HTML page: words, tables that sort, interactive figures. No network.

page = Page("Quick benchmark")
page.text("# Findings\\n\\nThe router costs **14** cycles per packet.")
page.table(["function", Column("cost", "cycles/packet")], [["router", Cell(14.2, "14.2")]])
page.figure(plotly_figure, "Rate by frame size")
page.write(Path("report.html"))
"""

import base64
import functools
import gzip
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Protocol

from convoy.report import markup

MISSING = "–"
SHORT = 32  # characters of a text that stays on one line


def write_whole(path: Path, text: str) -> None:
    """Write a file, whole or not at all; folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


class Figure(Protocol):
    """What a page needs of a plotly figure."""

    def to_json(self) -> str:
        """The figure as plotly's JSON: data and layout."""
        ...


@dataclass(frozen=True)
class Column:
    """A column's heading, its unit (shown below it) and what it means (shown on hovering)."""

    name: str
    unit: str = ""
    help: str = ""


@dataclass(frozen=True)
class Cell:
    """A value to sort by, how it is written (default: as a page writes numbers), and a remark."""

    value: str | float | None
    text: str = ""
    note: str = ""


Value = Cell | str | float | None


def write_number(value: float) -> str:
    """A number as people read it: whole ones in groups of three, others to three digits."""
    if not math.isfinite(value):
        return MISSING
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")  # a narrow space
    return f"{value:.3g}"


def _cell(value: Value) -> str:
    cell = value if isinstance(value, Cell) else Cell(value)
    title = f' title="{escape(cell.note)}"' if cell.note else ""
    if cell.value is None or (isinstance(cell.value, float) and not math.isfinite(cell.value)):
        return f'<td class="missing"{title}>{escape(cell.text or MISSING)}</td>'
    if isinstance(cell.value, str):
        words = cell.text or cell.value
        short = ' class="short"' if len(words) <= SHORT else ""  # is not broken: ovs-dpdk
        return f"<td{short}{title}>{escape(words)}</td>"
    text = cell.text or write_number(cell.value)
    return f'<td class="number" data-value="{cell.value!r}"{title}>{escape(text)}</td>'


@functools.cache
def _asset(name: str) -> str:
    return resources.files("convoy.report").joinpath(name).read_text("utf-8")


@functools.cache
def _plotly() -> str:
    """plotly.js, compressed: 2 MB in the page where the plain library takes 4.8 MB."""
    library = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(library, mtime=0)).decode("ascii")


class Page:
    """Collects the parts in the order of reading. Not written until write()."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._parts: list[str] = []
        self._figures: list[str] = []

    def text(self, text: str) -> None:
        """Adds words: paragraphs, headings, lists, code (see markup.py)."""
        self._parts.append(markup.to_html(text))

    def table(
        self,
        columns: Sequence[Column | str],
        rows: Sequence[Sequence[Value]],
        sortable: bool = True,
        caption: str = "",
    ) -> None:
        """Adds a table. None and NaN are missing, never zero, and sort last.

        Raises ValueError where a row has not one value for each column.
        """
        heads = [Column(column) if isinstance(column, str) else column for column in columns]
        out = ['<div class="wide"><table', ' class="sortable"' if sortable else "", ">\n"]
        if caption:
            out.append(f"<caption>{escape(caption)}</caption>\n")
        out.append("<thead><tr>")
        for index, head in enumerate(heads):
            numeric = any(
                isinstance(v.value if isinstance(v, Cell) else v, int | float)
                for v in (row[index] for row in rows if index < len(row))
            )
            title = f' title="{escape(head.help)}"' if head.help else ""
            unit = f"<small>{escape(head.unit)}</small>" if head.unit else ""
            name = f"{escape(head.name)}{unit}"
            out.append(f'<th scope="col"{" class=number" if numeric else ""}{title}>')
            out.append(
                f'<button type="button">{name}</button></th>' if sortable else f"{name}</th>"
            )
        out.append("</tr></thead>\n<tbody>\n")
        for row in rows:
            if len(row) != len(heads):
                raise ValueError(f"a row of {len(row)} values in a table of {len(heads)} columns")
            out.append(f"<tr>{''.join(map(_cell, row))}</tr>\n")
        out.append("</tbody></table></div>\n")
        self._parts.append("".join(out))

    def figure(self, figure: Figure, caption: str = "") -> None:
        """Adds an interactive plot. The plotting library goes into the page once."""
        # "<" must not end the script element that holds the JSON.
        self._figures.append(figure.to_json().replace("<", "\\u003c"))
        name = f"figure-{len(self._figures)}"
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        label = escape(caption or "plot")
        self._parts.append(
            f'<figure><div class="plot" id="{name}" role="img" aria-label="{label}"></div>'
            f"{words}</figure>\n"
        )

    def figures(self, figures: Sequence[tuple[Figure | None, str]]) -> None:
        """Adds plots with their captions, two side by side where there is room."""
        here = [(figure, caption) for figure, caption in figures if figure is not None]
        if len(here) > 1:
            self._parts.append('<div class="pairs">\n')
        for figure, caption in here:
            self.figure(figure, caption)
        if len(here) > 1:
            self._parts.append("</div>\n")

    def html(self) -> str:
        """The whole page."""
        scripts = [f"<script>{_asset('page.js')}</script>\n"]
        if self._figures:
            for index, figure in enumerate(self._figures, 1):
                scripts.append(
                    f'<script type="application/json" data-figure="figure-{index}">'
                    f"{figure}</script>\n"
                )
            scripts.append(
                f'<script type="application/gzip" id="plotly">{_plotly()}</script>\n'
                f"<script>{_asset('figures.js')}</script>\n"
            )
        subtitle = f'<p class="subtitle">{escape(self.subtitle)}</p>\n' if self.subtitle else ""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<link rel="icon" href="data:,">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_asset('page.css')}</style>\n"
            f"</head>\n<body>\n<main>\n<h1>{escape(self.title)}</h1>\n{subtitle}"
            f"{''.join(self._parts)}</main>\n{''.join(scripts)}</body>\n</html>\n"
        )

    def write(self, path: Path) -> None:
        """Writes the page, whole or not at all; folders on the way are made."""
        write_whole(path, self.html())
