# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A page's structure, read as a parser reads it: nothing is fetched, nothing is lost."""

import base64
import gzip
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go
import pytest
from rich.console import Console

from convoy.base.files import write_whole
from convoy.report.document import (
    MISSING,
    Cell,
    Code,
    Column,
    Document,
    Figure,
    Table,
    write_number,
)
from convoy.report.html import html
from convoy.report.plots import Line, draw
from convoy.report.text import markdown, show

NASTY = '<script>alert(1)</script> & "quoted"'


class Outline(HTMLParser):
    """Tags with attributes, the text of cells and headings, the content of scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.cells, self.scripts, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif "td" in self.open or "th" in self.open:
            self.cells[-1] += data


def outline(document):
    result = Outline()
    result.feed(html(document))
    return result


def scripts_of(result, kind):
    return [(attrs, text) for attrs, text in result.scripts if attrs.get("type") == kind]


def test_table_rows_are_there_escaped_and_missing_is_not_zero():
    document = Document("Title", NASTY)
    document.add(Table(
        ["what", Column("rate", "Mpps", "the median")],
        [[NASTY, 8.25], ["none", None], ["nan", float("nan")], ["zero", 0], ["own", Cell(3, "3!")]],
    ))  # fmt: skip
    result = outline(document)
    assert result.cells == [
        "what", "rateMpps",
        NASTY, "8.25", "none", MISSING, "nan", MISSING, "zero", "0", "own", "3!",
    ]  # fmt: skip
    values = [attrs.get("data-value") for tag, attrs in result.tags if tag == "td"]
    assert values == [None, "8.25", None, None, None, None, None, "0", None, "3"]


def nasty_document():
    document = Document(NASTY, NASTY)
    document.text(f"## {NASTY}\n\n{NASTY} **{NASTY}** `{NASTY}`\n\n- {NASTY}")
    table = Table(
        [NASTY, Column(NASTY, NASTY, NASTY)], [[NASTY, Cell(1, NASTY, NASTY)]], title=NASTY
    )
    table.notes.append(NASTY)
    figure = Figure(go.Figure([go.Scatter(x=[1], y=[1], name=NASTY)]), NASTY)
    document.add(table, figure, Code(NASTY))
    return document


def test_nobodys_text_becomes_markup_wherever_it_stands():
    plain, nasty = Document("t"), outline(nasty_document())
    plain.add(Figure(go.Figure()))
    # The page's own scripts: to sort, a figure, the plotting library, to draw.
    assert len(nasty.scripts) == len(outline(plain).scripts) == 4
    assert not [text for _, text in nasty.scripts if text.startswith("alert")]
    page = html(nasty_document())
    assert "<script>alert" not in page
    assert page.count("alert(1)") >= 15


def test_nobodys_text_becomes_html_in_markdown():
    prose, code = markdown(nasty_document()).split("~~~~\n", 1)
    assert "<script" not in prose
    assert prose.count("&lt;script>") >= 12
    assert code.count("<script>") == 1


def test_a_terminal_is_shown_what_it_has_room_for_and_nothing_steers_it():
    document = Document("Title")
    document.text("## Head\n\n- **bold** \x1b[2J [red]")
    document.text("only on pages", page_only=True)
    columns = ["who", Column("rate", "Mpps"), Column("more", page_only=True), "none"]
    document.add(Table(columns, [["\x1b[31ma", 8.25, 7, None]], title="a title"))
    out = Console(file=io.StringIO(), width=80)
    show(document, out)
    text = out.file.getvalue()
    for words in ("Head\n", "- bold ?[2J [red]", "a title", "?[31ma", "8.25", "Mpps"):
        assert words in text
    for words in ("only on pages", "more", "none", "\x1b", "**"):
        assert words not in text


def test_a_page_without_figures_carries_no_plotting_library():
    document = Document("Title")
    document.text("words")
    assert scripts_of(outline(document), "application/gzip") == []
    assert len(html(document)) < 20_000


def test_figures_carry_their_data_and_the_library_once():
    document = Document("Title")
    for name in ("one </script>", "two"):
        figure = go.Figure([go.Scatter(x=[64, 128], y=[8.5, None], name=name)])
        document.add(Figure(figure, "caption"))
    result = outline(document)
    figures = [json.loads(text) for _, text in scripts_of(result, "application/json")]
    assert [figure["data"][0]["name"] for figure in figures] == ["one </script>", "two"]
    assert figures[0]["data"][0]["y"] == [8.5, None]
    ((_, library),) = scripts_of(result, "application/gzip")
    assert b"plotly.js v" in gzip.decompress(base64.b64decode(library))[:500]
    ids = [attrs["id"] for tag, attrs in result.tags if attrs.get("class") == "plot"]
    assert ids == [attrs["data-figure"] for attrs, _ in scripts_of(result, "application/json")]


def test_nothing_is_fetched():
    document = Document("Title")
    document.text("words [there](#x) ![picture](http://example.org/x.png)")
    document.add(Table(["a"], [["https://example.org/"]]), Figure(go.Figure()))
    for tag, attrs in outline(document).tags:
        for name in ("src", "srcset", "action", "data", *(["href"] if tag != "a" else [])):
            target = attrs.get(name)
            assert target is None or target.startswith(("#", "data:,")), (tag, name, target)
    assert not re.search(r"@import|url\(", html(document))


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match="a row of 1 values in a table of 2 columns"):
        Table(["a", "b"], [["only"]])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (7.0, "7"), (14.26, "14.3"), (0.01234, "0.0123"), (1234.5, "1\u202f234"),
     (1_000_000, "1\u202f000\u202f000"), (float("inf"), MISSING), (-3.25, "-3.25")],
)  # fmt: skip
def test_numbers(value, text):
    assert write_number(value) == text


def test_write_makes_folders_and_leaves_only_the_page(tmp_path):
    path = tmp_path / "results" / "one" / "report.html"
    write_whole(path, "text")
    assert path.read_text("utf-8") == "text"
    assert [entry.name for entry in Path(path.parent).iterdir()] == ["report.html"]
    with pytest.raises(IsADirectoryError):
        write_whole(Path(), "text")


def lines_of(devices, setups):
    return [
        Line(f"d{i}", [1, 2], [i, i], of=f"s{j}") for j in range(setups) for i in range(devices)
    ]


@pytest.mark.parametrize(
    ("devices", "setups", "panels"),
    [(1, 1, 1), (8, 1, 1), (2, 4, 1), (6, 3, 3), (2, 9, 9), (9, 1, 9), (9, 2, 9)],
)
def test_more_than_eight_lines_become_small_multiples(devices, setups, panels):
    figure = draw(lines_of(devices, setups), {"title": "x"}, {"title": "y"})
    axes = {trace.xaxis or "x" for trace in figure.data}
    assert len(figure.data) == devices * setups
    assert len(axes) == panels
    by_axes = [[t for t in figure.data if (t.xaxis or "x") == one] for one in axes]
    assert max(map(len, by_axes)) <= 8
    # Each is once in the legend, and looks different from the others there.
    legend = [trace for trace in figure.data if trace.showlegend is not False]
    assert len({trace.name for trace in legend}) == len(legend)
    if panels == 1:
        assert len({(t.line.color, t.line.dash) for t in legend}) == len(legend)
