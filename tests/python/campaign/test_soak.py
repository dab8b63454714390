# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the soak says, without a node: what has grown, and what is written of it."""

import json
from dataclasses import replace

import pytest

from .soak import Round, as_json, as_markdown, leaks

ABOUT = {
    "schema": "convoy.soak/1", "seed": 7, "commit": "abc", "date": "today", "processor": "P",
    "load": 0.8, "rate_pps": 800_000, "most_pps": 1_000_000,
}  # fmt: skip
ROUND = Round(
    at_s=0, sent=8_000_000, lost=3, wrong=0, p50_ns=6_000, p99_ns=20_000, busy=0.8, dropped=3,
    flows=100_000, did="applied", node_bytes=90 << 20, node_files=70, node_threads=12, buffers=40,
    tester_bytes=8 << 20, tester_files=20, findings=(),
)  # fmt: skip
MANY = [replace(ROUND, at_s=12.0 * i) for i in range(100)]


@pytest.mark.parametrize(
    ("key", "step"),
    [("node_bytes", 8192), ("tester_bytes", 8192), ("node_files", 1), ("buffers", 1)],
)
def test_what_grows_is_found(key, step):
    grows = [replace(one, **{key: getattr(one, key) + i * step}) for i, one in enumerate(MANY)]
    (grown,) = leaks(grows)
    assert grown.startswith(f"{key}: ")


def test_what_grows_at_first_or_goes_up_and_down_is_not():
    first = [
        replace(one, node_bytes=one.node_bytes + min(i, 10) * 8192) for i, one in enumerate(MANY)
    ]
    assert leaks(first) == []
    both = [replace(one, buffers=one.buffers + i % 7) for i, one in enumerate(MANY)]
    assert leaks(both) == []


def test_a_table_has_a_row_for_each_part_and_a_line_for_each_finding():
    rounds = [*MANY[:10], replace(MANY[10], findings=("packets lost",)), *MANY[11:]]
    lines = as_markdown(ABOUT, rounds, 300).splitlines()
    assert lines[0].startswith("Seed 7, commit abc, today, P: 100 trials of 10 s at 800,000 pack")
    assert "80% of 1,000,000" in lines[0]
    rows = [line for line in lines if line.startswith("| ")][2:]
    assert len(rows) == 4
    first = "| 5 | 200,000,000 | 75 | 0 | 6.0, 20.0 | 100,000 | 92,160 | 70, 12 | 40 | 8,192 |"
    assert rows[0] == first
    assert lines[-1] == "* 120 s: packets lost"
    assert as_markdown(ABOUT, MANY, 300).endswith("No findings.\n")


def test_every_round_is_written():
    whole = json.loads(as_json(ABOUT, MANY))
    assert whole["seed"] == 7
    assert whole["rounds"]["at_s"] == [one.at_s for one in MANY]
    assert set(whole["rounds"]) == set(vars(ROUND))
