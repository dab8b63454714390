# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The documents as tests read them: lines with what they are, headings, links, commands."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name(page: Path) -> str:
    """Return a page's name: its path below the project's root."""
    return str(page.relative_to(ROOT))


def lines(page: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield each line with its number and whether it is code (a fenced block)."""
    fenced = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield number, line, True
        else:
            yield number, line, fenced


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return "\n".join(line for _, line, code in lines(page) if not code)


def _slug(heading: str) -> str:
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and GitLab make them."""
    result: set[str] = set()
    for _, line, code in lines(page):
        heading = None if code else re.match(r"#+ +(.*?) *$", line)
        if heading:
            slug, n = _slug(heading[1]), 0
            while (anchor := f"{slug}-{n}" if n else slug) in result:
                n += 1
            result.add(anchor)
    return result


def links(page: Path) -> list[str]:
    """Return the targets of a page's links."""
    without_code = re.sub(r"`[^`]*`", "", prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", without_code)


def commands(page: Path) -> list[str]:
    """Return the `convoy ...` commands of a page: code spans and lines of fenced blocks."""
    spans = re.findall(r"`(convoy [^`]*)`", re.sub(r"\s+", " ", prose(page)))
    blocks = [
        re.split(r"\s#\s", line.strip().removeprefix("$ "))[0].strip()
        for _, line, code in lines(page)
        if code and re.match(r"\s*(\$ )?convoy [a-z]", line)
    ]
    # A drawing has words that are far apart, a command has not.
    return [*spans, *(block for block in blocks if not re.search(r"\S {3}", block))]
