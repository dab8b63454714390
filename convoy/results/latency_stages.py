# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long packets took at each place of a node, of those that it timed (docs/metrics.md)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

Counts = Mapping[str, Any]

# Keys of counts, and what is said of them.
WAITED = "waited at most"
_OF_PORT_IN = (("rx_wait", WAITED), ("rx_latency", "received"))
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
