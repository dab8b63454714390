# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The soak: what it says has grown, what is written of it, and a short one."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from convoy.host.programs import find
from cores import CORES

from . import soak
from .soak import Lost, Round, as_json, as_markdown, leaks

ABOUT = {
    "schema": "convoy.soak/2", "seed": 7, "commit": "abc", "date": "today", "processor": "P",
    "load": 0.8, "rate_pps": 800_000, "most_pps": 1_000_000,
}  # fmt: skip
ROUND = Round(
    at_s=0, sent=8_000_000, lost=3, wrong=0, p50_ns=6_000, p99_ns=20_000, late_ns=9_000,
    tester_busy=0.9, busy=0.8, dropped=3, late=0, flows=100_000, did="applied", node_bytes=90 << 20,
    node_files=70, node_threads=12, buffers=40, tester_bytes=8 << 20, tester_files=20, findings=(),
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
    # More often high at the end, when the machine was slower, but not always.
    slower = [
        replace(one, tester_bytes=one.tester_bytes + (i % 9 > 7 - i // 15) * 2**20)
        for i, one in enumerate(MANY)
    ]
    assert leaks(slower) == []


def test_what_comes_late_is_not_lost_and_the_rest_is():
    lost = Lost()
    # lost, unanswered, dropped before and until the end, packets of earlier trials that came
    assert lost.count(10, 3, (100, 107), 50) == (50, 0)
    assert lost.uncounted == 0
    assert lost.count(20, 0, (107, 110), 0) == (0, 0)
    assert lost.uncounted == 17
    assert lost.count(0, 0, (115, 115), 12) == (17, 0)  # 12 came, and 5 were dropped
    assert lost.count(5, 0, (115, 115), 0) == (0, 0)
    assert lost.count(0, 0, (116, 116), 2) == (3, 2)
    assert lost.uncounted == 0


def test_a_table_has_a_row_for_each_part_and_a_line_for_each_finding():
    rounds = [*MANY[:10], replace(MANY[10], findings=("packets lost",)), *MANY[11:]]
    lines = as_markdown(ABOUT, rounds, 300).splitlines()
    assert lines[0].startswith("Seed 7, commit abc, today, P: 100 trials of 10 s at 800,000 pack")
    assert "80% of 1,000,000" in lines[0]
    rows = [line for line in lines if line.startswith("| ")][2:]
    assert len(rows) == 4
    first = "| 5 | 200,000,000 | 75 | 0 | 6.0, 20.0, 9.0 | 100,000 | 92,160 | 70, 12 | 40 | 8,192 |"
    assert rows[0] == first
    assert lines[-1] == "* 120 s: packets lost"
    assert as_markdown(ABOUT, MANY, 300).endswith("No findings.\n")


def test_every_round_is_written():
    whole = json.loads(as_json(ABOUT, MANY))
    assert whole["seed"] == 7
    assert whole["rounds"]["at_s"] == [one.at_s for one in MANY]
    assert set(whole["rounds"]) == set(vars(ROUND))


@pytest.mark.alone
@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_a_short_one_counts_all_and_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "TRIAL_S", 0.3)
    monkeypatch.setattr(soak, "PROBE_S", 0.1)
    monkeypatch.setattr(soak, "FLOWS", 5000)
    monkeypatch.setattr(soak, "HOSTS", 101)  # the NAT has ports for many times as many
    words = ["soak", "--hours", "0.001", "--load", "0.1", "--record", str(tmp_path / "it")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):  # so short a time says nothing of growth
        soak.main()
    whole = json.loads((tmp_path / "it.json").read_text())
    assert whole["schema"] == soak.SCHEMA
    rounds = whole["rounds"]
    assert len(rounds["sent"]) > 1
    assert min(rounds["sent"]) > 0
    assert rounds["findings"] == [[]] * len(rounds["sent"])
    assert (tmp_path / "it.md").read_text() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--hours", "0"], "--hours 0: more than 0"),
        (["--hours", "nan"], "--hours nan: more than 0"),
        (["--load", "1.5"], "--load 1.5: more than 0, up to 1"),
    ],
)
def test_what_cannot_be_is_refused(words, problem, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak", *words])
    with pytest.raises(SystemExit, match="2"):
        soak.main()
    assert problem in capsys.readouterr().err
