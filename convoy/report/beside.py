# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A table of a paper with our columns, and where the paper's numbers stand."""

from dataclasses import dataclass, field

from convoy.report.page import Column, Value

PAPERS = {  # the files that the tables' sources name
    "000": "Niu et al., Unveiling",
    "001": "Niu et al., Benchmarking",
    "002": "Niu et al., Unveiling",
    "003": "data plane versus VNF",
    "004": "PA-Flow",
}


@dataclass
class Beside:
    """One of the papers' tables with our columns."""

    title: str
    columns: list[Column | str]
    rows: list[list[Value]] = field(default_factory=list)
    says: list[str] = field(default_factory=list)


def source(row: dict[str, str]) -> str:
    """Return where a number of a paper stands."""
    paper, _, place = row["source"].partition(" ")
    return f"{PAPERS.get(paper, paper)}, {place}"
