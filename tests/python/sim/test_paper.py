# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Tables 4 and 5 of the PA-Flow paper at their full size, and all engines on them."""

import pytest

from convoy.host.programs import need
from convoy.sim import paper
from convoy.sim.engine import run
from convoy.sim.load import open_topology
from convoy.sim.paper import PaperRow
from convoy.sim.resolve import resolve

COUNTED = ("links", "nodes", "sources")


@pytest.fixture(scope="module")
def tables():
    return paper.compare()


def test_sink_is_within_three_percent(tables):
    for comparison in tables:
        rows = {(r.mode, r.link, r.what): r for r in comparison.rows}
        for what in ("all", "mean size"):
            assert abs(rows["paflow", "i-sink", what].deviation) < 0.03


def test_totals_means_and_large_cells_are_within_three_percent(tables):
    # Smaller cells vary from seed to seed, or are not explained: shown, not claimed.
    checked = 0
    for comparison in tables:
        totals = {(r.mode, r.link): r.paper for r in comparison.rows if r.what in ("all", "64 B")}
        for row in comparison.rows:
            total = totals.get((row.mode, row.link), row.paper)
            if row.unit == "frames" and row.paper < 0.2 * total:
                continue
            assert abs(row.deviation) < 0.03, row
            checked += 1
    assert checked == 23


def test_the_start_explains_the_small_cells(tables):
    rows = {(i, r.link, r.what): r for i, c in enumerate(tables) for r in c.rows}
    for cell in (
        (0, "i-sink", "256 to 511 B"),
        (1, "1-i", "64 to 127 B"),
        (1, "i-sink", "64 to 127 B"),
        (1, "i-sink", "128 to 255 B"),
    ):
        assert abs(rows[cell].deviation) < 0.2, rows[cell]


def test_both_readings_of_93_percent(tables):
    first, second = tables
    assert first.paper_saved_per_packet == pytest.approx(0.930, abs=0.001)
    assert first.paper_saved_by_cells == pytest.approx(0.909, abs=0.001)
    assert first.saved_per_packet == pytest.approx(0.930, abs=0.005)
    assert first.saved_by_cells == pytest.approx(0.909, abs=0.005)
    assert second.saved_by_cells == pytest.approx(second.paper_saved_by_cells, abs=0.005)


def test_other_seeds_give_the_same_picture():
    for comparison in paper.compare(seed=7):
        for row in comparison.rows:
            if row.what in ("all", "mean size", "64 B"):
                assert abs(row.deviation) < 0.04, row


@pytest.mark.parametrize("topology", ["paper-1", "paper-2"])
@pytest.mark.parametrize("aggregated", [False, True])
def test_three_engines_agree_exactly(topology, aggregated):
    overrides = {"simulate.duration-s": 0.02, "simulate.seed": 3}
    network = resolve(open_topology(topology, overrides), aggregated).data
    first = run(network, "feed-forward")
    assert first["original_packets"] > 100_000
    for engine in ("event-heap", "ns3"):
        other = run(network, engine)
        assert other["engine"] == engine
        for part in COUNTED:
            assert other[part] == first[part]


def test_a_profile_that_is_not_fitted_is_farther_off():
    fitted, plain = paper.compare(0.2), paper.compare(0.2, profile="paper-table2")

    def worst(result):
        rows = [r for c in result for r in c.rows if r.what in ("all", "mean size")]
        return max(abs(r.deviation) for r in rows)

    assert worst(plain) > worst(fitted)
    assert need("convoy-sim")


def test_verdicts_tell_chance_from_what_is_not_explained():
    def verdict(ours, *seeds):
        return PaperRow("paflow", "1-i", "64 to 255 B", "frames", 100.0, ours, seeds).verdict

    assert verdict(102.9) == "yes"
    assert verdict(104.0) == "no"
    assert verdict(104.0, 104.0, 99.0) == "chance 99..104"
    few = [104.0] * 40 + [99.0]
    assert verdict(104.0, *few) == "no"  # one of 41 is below: not in the middle 95 %
    assert verdict(104.0, *few, 98.0) == "chance 99..104"
    assert verdict(104.0, 104.0, 101.0) == "no"
    result = paper.compare(0.02, more_seeds=2)
    rows = [row for one in result for row in one.rows]
    assert all(len(row.seeds) == (3 if row.mode == "paflow" else 0) for row in rows)
    assert any(len(set(row.seeds)) > 1 for row in rows)
