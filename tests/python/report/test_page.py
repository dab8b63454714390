# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A page's structure, read as a parser reads it: nothing is fetched, nothing is lost."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go
import pytest

from convoy.report.page import MISSING, Cell, Column, Page, write_number

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


def outline(page):
    found = Outline()
    found.feed(page.html())
    return found


def scripts_of(found, kind):
    return [(attrs, text) for attrs, text in found.scripts if attrs.get("type") == kind]


def test_table_rows_are_there_escaped_and_missing_is_not_zero():
    page = Page("Title", NASTY)
    page.table(
        ["what", Column("rate", "Mpps", "the median")],
        [[NASTY, 8.25], ["none", None], ["nan", float("nan")], ["zero", 0], ["own", Cell(3, "3!")]],
    )
    found = outline(page)
    assert found.cells == [
        "what", "rateMpps",
        NASTY, "8.25", "none", MISSING, "nan", MISSING, "zero", "0", "own", "3!",
    ]  # fmt: skip
    values = [attrs.get("data-value") for tag, attrs in found.tags if tag == "td"]
    assert values == [None, "8.25", None, None, None, None, None, "0", None, "3"]


def test_a_page_without_figures_carries_no_plotting_library():
    page = Page("Title")
    page.text("words")
    assert scripts_of(outline(page), "application/gzip") == []
    assert len(page.html()) < 20_000


def test_figures_carry_their_data_and_the_library_once():
    page = Page("Title")
    for name in ("one </script>", "two"):
        page.figure(go.Figure([go.Scatter(x=[64, 128], y=[8.5, None], name=name)]), "caption")
    found = outline(page)
    figures = [json.loads(text) for _, text in scripts_of(found, "application/json")]
    assert [figure["data"][0]["name"] for figure in figures] == ["one </script>", "two"]
    assert figures[0]["data"][0]["y"] == [8.5, None]
    ((_, library),) = scripts_of(found, "application/gzip")
    assert b"plotly.js v" in gzip.decompress(base64.b64decode(library))[:500]
    ids = [attrs["id"] for tag, attrs in found.tags if attrs.get("class") == "plot"]
    assert ids == [attrs["data-figure"] for attrs, _ in scripts_of(found, "application/json")]


def test_nothing_is_fetched():
    page = Page("Title")
    page.text("words [there](#x)")
    page.table(["a"], [["https://example.org/"]])
    page.figure(go.Figure())
    for tag, attrs in outline(page).tags:
        for name in ("src", "href", "srcset", "action", "data"):
            target = attrs.get(name)
            assert target is None or target.startswith(("#", "data:,")), (tag, name, target)
    assert not re.search(r"@import|url\(", page.html())


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match="a row of 1 values in a table of 2 columns"):
        Page("Title").table(["a", "b"], [["only"]])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (7.0, "7"), (14.26, "14.3"), (0.01234, "0.0123"), (1234.5, "1\u202f234"),
     (1_000_000, "1\u202f000\u202f000"), (float("inf"), MISSING), (-3.25, "-3.25")],
)  # fmt: skip
def test_numbers(value, text):
    assert write_number(value) == text


def test_write_makes_folders_and_leaves_only_the_page(tmp_path):
    path = tmp_path / "results" / "one" / "report.html"
    page = Page("Title")
    page.write(path)
    assert path.read_text("utf-8") == page.html()
    assert [entry.name for entry in Path(path.parent).iterdir()] == ["report.html"]
