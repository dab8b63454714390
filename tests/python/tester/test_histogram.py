# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The tester's histogram and Python's hdrhistogram say the same."""

import pytest
from hdrh.histogram import HdrHistogram

from convoy.results.trial_result import Latency
from convoy.tester.convoy_gen import ConvoyGen


@pytest.fixture(scope="module")
def latency() -> Latency:
    with ConvoyGen(["dev:net_ring0"]) as tester:
        result = tester.trial(
            {"rate_pps": 200_000, "duration_s": 0.3, "tolerance": 1, "size": "imix"}
        )
    assert result.total is not None and result.total.latency is not None
    return result.total.latency


def test_percentiles_agree(latency: Latency):
    other = HdrHistogram(1, 3_600_000_000_000, latency.significant_digits)
    for value, count in latency.histogram_ns or ():
        assert other.record_value(value, count)
    assert other.get_total_count() == latency.count
    for percentile, value in (
        (50, latency.p50_ns),
        (90, latency.p90_ns),
        (99, latency.p99_ns),
        (99.9, latency.p99_9_ns),
    ):
        assert other.get_value_at_percentile(percentile) == pytest.approx(value, rel=1e-12) or (
            value == latency.max_ns
        )
    assert other.get_max_value() >= latency.max_ns
    assert other.get_min_value() <= latency.min_ns


def test_buckets_are_hdr_buckets(latency: Latency):
    other = HdrHistogram(1, 3_600_000_000_000, latency.significant_digits)
    for value, _ in latency.histogram_ns or ():
        assert other.get_lowest_equivalent_value(value) == value
