# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long packets took, by place, as a table: of packets that a node timed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from rich.console import RenderableType
from rich.table import Table

Counts = Mapping[str, Any]

# Keys of counts, and what is said of them.
_OF_PORT_IN = (("rx_wait", "waited at most"), ("rx_latency", "received"))
_OF_PORT_OUT = (("tx_latency", "sent"),)
_OF_FUNCTION = (("ring_latency", "in the ring before"), ("latency", ""))


@dataclass(frozen=True)
class Latency:
    """Times of packets: their number, the sum in ns, and how many took up to so many ns each."""

    packets: int
    ns: int
    up_to_ns: Mapping[int, int]

    @classmethod
    def since(cls, now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Self:
        """Return what was timed since `before`. Of counts that began anew, all of `now`."""
        if before is None or before["packets"] > now["packets"]:
            before = {"packets": 0, "ns": 0, "up_to_ns": {}}
        buckets = Counter({int(bound): count for bound, count in now["up_to_ns"].items()})
        buckets.subtract({int(bound): count for bound, count in before["up_to_ns"].items()})
        some = {bound: buckets[bound] for bound in sorted(buckets) if buckets[bound] > 0}
        return cls(now["packets"] - before["packets"], now["ns"] - before["ns"], some)

    def mean_ns(self) -> float:
        """Return the mean, of at least one packet."""
        return self.ns / self.packets

    def percentile_ns(self, percent: float) -> int:
        """Return a time that so many percent of at least one packet did not exceed."""
        seen = 0
        for bound, count in self.up_to_ns.items():
            seen += count
            if seen * 100 >= percent * self.packets:
                return bound
        return max(self.up_to_ns)


def us(ns: float) -> str:
    """Return a time in microseconds, with three digits."""
    return f"{ns / 1e3:.3g} us" if ns < 1e6 else f"{ns / 1e3:.0f} us"


def latencies(now: Counts, before: Counts | None = None) -> Iterator[tuple[str, Latency]]:
    """Return each place with packets that were timed, in the order of their way.

    Ports they come by, functions, ports they leave by.
    """
    for part, keys in (
        ("ports", _OF_PORT_IN),
        ("functions", _OF_FUNCTION),
        ("ports", _OF_PORT_OUT),
    ):
        for name, counted in now[part].items():
            old = (before[part].get(name) if before else None) or {}
            for key, words in keys:
                if key not in counted:  # an older node, or one in a switch
                    continue
                timed = Latency.since(counted[key], old.get(key))
                if timed.packets > 0:
                    yield f"{name}: {words}" if words else name, timed


def latency_table(now: Counts, before: Counts | None = None) -> RenderableType | None:
    """Return the table; None: nothing was timed."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("latency", "mean", "50 % up to", "99 % up to", "packets timed"):
        table.add_column(column, justify="left" if column == "latency" else "right", no_wrap=True)
    for where, timed in latencies(now, before):
        times = (timed.mean_ns(), timed.percentile_ns(50), timed.percentile_ns(99))
        table.add_row(where, *map(us, times), str(timed.packets))
    return table if table.row_count else None
