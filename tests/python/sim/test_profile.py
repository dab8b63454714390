# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Aggregation profiles: the paper's numbers, interpolation, and what is refused."""

import json

import pytest

from convoy import reference
from convoy.errors import InputError
from convoy.sim import profile

GOOD = {
    "schema": "convoy.sim.profile/1",
    "name": "mine",
    "source": "a test",
    "points": [
        {"rate_pps": 0, "ratio_percent": 100},
        {"rate_pps": 1000, "ratio_percent": 25},
        {"rate_pps": 2000, "ratio_percent": 10},
    ],
    "max_rate_pps": {"plain": 1e6, "aggregated": 2e6},
}


def at(result, rate):
    return [packets for start, packets in result.steps if start <= rate][-1]


def test_shipped_profiles_hold_table_2(tmp_path):
    rows = reference.table("paflow-table2-aggregation-ratio")
    for name, column in (
        ("paper-table2", "non_bursty_percent"),
        ("paper-table2-bursty", "bursty_percent"),
    ):
        result = profile.load(name, tmp_path)
        for row in rows:
            assert at(result, int(row["rx_rate_pps"])) == int(100 / float(row[column]))


def test_the_simulation_profile_rounds_rates_down(tmp_path):
    result = profile.load("paper-simulation", tmp_path)
    wanted = {0: 1, 1: 3, 2: 3, 3: 4, 4: 5, 5: 8, 6: 15, 7: 15, 8: 16, 20: 16}
    for mpps, packets in wanted.items():
        assert at(result, mpps * 1_000_000) == packets
        assert at(result, mpps * 1_000_000 + 999_999) == packets


def test_linear_between_points(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(GOOD))
    result = profile.load("mine.json", tmp_path)
    assert result.steps[0] == (0, 1)
    for rate in range(0, 2400, 100):
        ratio = 100 - 0.075 * rate if rate <= 1000 else max(10, 25 - 0.015 * (rate - 1000))
        assert at(result, rate) == int(100 / ratio + 1e-9)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"points": []}, "points"),
        ({"points": [{"rate_pps": 1, "ratio_percent": 0}]}, "ratio_percent"),
        (
            {
                "points": [
                    {"rate_pps": 2, "ratio_percent": 5},
                    {"rate_pps": 1, "ratio_percent": 5},
                ]
            },
            "ascend",
        ),
        ({"schema": "other/1"}, "schema"),
        ({"more": 1}, "more"),
    ],
)
def test_wrong_profiles_name_the_field(tmp_path, change, wanted):
    with pytest.raises(InputError, match=wanted):
        profile.parse(json.dumps(GOOD | change), "file.json")


def test_not_json():
    with pytest.raises(InputError, match=r"file\.json: not JSON"):
        profile.parse("{", "file.json")
