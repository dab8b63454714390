# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Numbers that papers report, to stand beside ours. Facts only; each row names its source."""

import csv
from importlib import resources


def names() -> tuple[str, ...]:
    """Return the names of all tables."""
    files = (one.name for one in resources.files("convoy.reference").iterdir())
    return tuple(sorted(n.removesuffix(".csv") for n in files if n.endswith(".csv")))


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table, e.g. "paflow-table4-topology1"."""
    text = resources.files("convoy.reference").joinpath(f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))
