# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the campaign says, without a fault: a seed repeats a run, and tables count what happened."""

import json
from pathlib import Path

import pytest

from .bystander import Bystander
from .campaign import closes, plan
from .faults import FAULTS, HITS_ALL, _check_capture
from .guest import of_a_guest, packet
from .record import Step, as_json, as_markdown
from .rig import FRAME_BYTES, udp

ABOUT = {"schema": "convoy.campaign/1", "seed": 7, "commit": "abc", "date": "today", "cores": 2}


def step(number: int, fault: str = "kill-guest", *wrong: str, back: float | None = 0.01) -> Step:
    return Step(number, fault, "guest: kill -9", back, 1000, 0, 0.05, 1.5, wrong)


def test_a_seed_repeats_each_fault_by_its_number():
    first = [(name, rng.random()) for name, rng in (plan(7, n) for n in range(50))]
    again = [(name, rng.random()) for name, rng in (plan(7, n) for n in range(50))]
    assert first == again
    assert first != [(name, rng.random()) for name, rng in (plan(8, n) for n in range(50))]
    assert {name for name, _ in (plan(7, n) for n in range(300))} == set(FAULTS)
    assert plan(7, 3, ["disk-full"])[0] == "disk-full"
    assert set(FAULTS) >= HITS_ALL


def test_a_table_has_a_row_for_each_fault_and_a_line_for_each_finding():
    steps = [step(0), step(1, back=0.03), step(2, "no-files", "back after 2.00 s", back=None)]
    table = as_markdown(ABOUT, steps)
    assert "Seed 7, commit abc, today, 2 cores: 3 faults, 1 findings." in table
    assert "| `kill-guest` | 2 | 20 .. 30 ms | 2,000, 0 | 50 ms | - |" in table
    assert "| `no-files` | 1 | - | 1,000, 0 | 50 ms | 1 |" in table
    assert "* 2, `no-files`: back after 2.00 s" in table
    assert [one["number"] for one in json.loads(as_json(ABOUT, steps))["steps"]] == [0, 1, 2]


def test_a_line_says_what_went_wrong():
    assert step(3).line() == "   3 kill-guest: guest: kill -9, back in 10 ms: ok"
    assert step(3, "no-files", "left behind: x").line().endswith("WRONG: left behind: x")


def test_accounting_closes_or_not():
    counts = {"received": 7, "originated": 1, "sent": 5, "dropped": 1, "absorbed": 1, "held": 1}
    assert closes(counts)
    assert not closes(counts | {"sent": 4})


def test_a_capture_that_is_cut_off_is_found(tmp_path: Path):
    path = tmp_path / "capture.pcap"
    whole = bytes.fromhex("4d3cb2a1") + bytes(20) + bytes(8) + (5).to_bytes(4, "little") + bytes(9)
    path.write_bytes(whole)
    _check_capture(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(AssertionError, match="cut off"):
        _check_capture(path)


def test_a_bystander_counts_what_is_lost_or_wrong(tmp_path: Path):
    with Bystander(tmp_path / "left", tmp_path / "right", 1) as bystander:
        way = bystander._under_way[0]
        way.extend([b"a", b"b", b"c"])
        bystander._came(way, b"b")
        bystander._came(way, b"x")
        carried = bystander.carried()
    assert (carried.packets, carried.lost, carried.wrong) == (1, 1, 1)


def test_packets_to_the_capture_have_a_sound_header():
    frame = udp(10 << 24 | 5)
    assert len(frame) == FRAME_BYTES
    total = sum(int.from_bytes(frame[at : at + 2]) for at in range(14, 34, 2))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF


def test_a_guest_knows_whole_packets():
    assert of_a_guest(packet(5))
    assert not of_a_guest(packet(5)[:-1])
    assert not of_a_guest(packet(5)[:30] + b"x" + packet(5)[31:])
