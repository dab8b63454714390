# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A document as one self-contained HTML page: tables that sort, interactive figures, no network.

Text is escaped by Jinja2 (autoescape) and, in prose, by markdown-it: neither a host's name nor a
command line can become markup.
"""

import base64
import functools
import gzip
from importlib import resources
from itertools import groupby, pairwise

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from convoy.report.document import Document, Figure, anchor

TARGETS = ("#", "https://", "http://")  # of links in prose


@functools.cache
def _markdown() -> MarkdownIt:
    out = MarkdownIt("zero", {"html": False})
    out.enable(["heading", "list", "backticks", "emphasis", "link"])
    out.validateLink = lambda url: url.startswith(TARGETS)  # type: ignore[method-assign]
    return out


def prose(text: str) -> Markup:
    """Return prose as safe HTML. Never fails: what is no markup is shown as it is."""
    markdown = _markdown()
    tokens = markdown.parse(text)
    for token, inside in pairwise(tokens):
        if token.type == "heading_open" and (name := anchor(inside.content)):
            token.attrSet("id", name)
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))


def _asset(name: str) -> Markup:
    return Markup(resources.files("convoy.report").joinpath(name).read_text("utf-8"))


@functools.cache
def _plotly() -> Markup:
    """Return plotly.js, compressed: 2 MB in the page where the plain library takes 4.8 MB."""
    library = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return Markup(base64.b64encode(gzip.compress(library, mtime=0)).decode("ascii"))


def _plot_json(figure: Figure) -> Markup:
    # "<" must not end the script element that holds the JSON.
    return Markup(figure.plot.to_json().replace("<", "\\u003c"))


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("convoy.report", "."),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"prose": prose, "plot_json": _plot_json}
    return environment.get_template("page.html.j2")


def html(document: Document) -> str:
    """Return the whole page."""
    groups = groupby(document.blocks, lambda block: type(block).__name__)
    return _template().render(
        title=document.title,
        subtitle=document.subtitle,
        groups=[(kind, list(blocks)) for kind, blocks in groups],
        plots=[block for block in document.blocks if isinstance(block, Figure)],
        plotly=_plotly,
        css=_asset("page.css"),
        sort_js=_asset("sort.js"),
        figures_js=_asset("figures.js"),
    )
