# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long packets took, by place, as a table: of packets that a node timed."""

from rich.console import RenderableType
from rich.table import Table

from convoy.results.latency_stages import Counts, latencies

LEAST = 30  # packets that are timed: fewer say little


def us(ns: float) -> str:
    """Return a time in microseconds, with three digits."""
    return f"{ns / 1e3:.3g} us" if ns < 1e6 else f"{ns / 1e3:.0f} us"


def latency_table(now: Counts, before: Counts | None = None) -> RenderableType | None:
    """Return the table; None: so many packets were timed nowhere that it means something."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("latency", "mean", "50 % up to", "99 % up to", "packets timed"):
        table.add_column(column, justify="left" if column == "latency" else "right", no_wrap=True)
    for where, timed in latencies(now, before):
        if timed.packets < LEAST:
            continue
        times = (timed.mean_ns(), timed.percentile_ns(50), timed.percentile_ns(99))
        table.add_row(where, *map(us, times), str(timed.packets))
    return table if table.row_count else None
