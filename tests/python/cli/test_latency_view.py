# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long packets took, as `convoy top` shows it."""

from typing import Any

from convoy.cli.latency_view import latency_table, us
from convoy.results.latency_stages import Latency, latencies


def timed(ns: int, **up_to: int) -> dict[str, Any]:
    return {
        "packets": sum(up_to.values()),
        "ns": ns,
        "up_to_ns": {bound[1:]: count for bound, count in up_to.items()},
    }


def counts(**functions: Any) -> dict[str, Any]:
    return {"ports": {}, "functions": functions}


def test_what_was_timed_since():
    before, now = timed(1000, _512=2), timed(9000, _512=4, _4096=96)
    since = Latency.since(now, before)
    assert (since.packets, since.ns) == (98, 8000)
    assert since.mean_ns() == 8000 / 98
    assert (since.percentile_ns(1), since.percentile_ns(50), since.percentile_ns(100)) == (
        512,
        4096,
        4096,
    )


def test_counts_that_began_anew():
    assert Latency.since(timed(100, _64=1), timed(9000, _64=90)).packets == 1
    assert Latency.since(timed(100, _64=1), None).packets == 1


def test_places_are_in_the_order_of_the_way():
    ports = {
        "a": {key: timed(64, _64=1) for key in ("rx_wait", "rx_latency")},
        "b": {"tx_latency": timed(64, _64=1), "rx_latency": timed(0)},
        "older": {},
    }
    functions = {"f": {"latency": timed(64, _64=1), "ring_latency": timed(64, _64=1)}}
    assert [where for where, _ in latencies({"ports": ports, "functions": functions})] == [
        "a: waited at most", "a: received", "f: in the ring before", "f", "b: sent",
    ]  # fmt: skip


def test_nothing_timed_is_no_table():
    assert latency_table(counts(f={"latency": timed(0)})) is None
    assert latency_table(counts(f={})) is None
    assert latency_table(counts(f={"latency": timed(64, _64=1)})) is None
    same = counts(f={"latency": timed(6400, _64=100)})
    assert latency_table(same, same) is None
    assert latency_table(same) is not None


def test_microseconds():
    assert [us(ns) for ns in (64, 1234, 67_108_864)] == ["0.064 us", "1.23 us", "67109 us"]
