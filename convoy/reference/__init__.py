# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Numbers that papers report, to stand beside ours. Facts only; each row names its source."""

import csv
from importlib import resources


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table, e.g. "paflow-table4-topology1"."""
    text = resources.files("convoy.reference").joinpath(f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))
