# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How busy a core was: from what the kernel says about its idle time."""

import os
from pathlib import Path

import pytest

from convoy.host.cpu_time import CoreTime, core_time
from cores import CORES

STAT = """\
cpu  900 0 300 5000 12 0 5 0 0 0
cpu0 500 0 100 2000 10 0 5 0 0 0
cpu1 400 0 200 3000 2 0 0 0 0 0
intr 1
"""
TIMERS = """\
now at 73734153138661 nsecs

cpu: 0
 active timers:
  .idle_entrytime : 73734149879566 nsecs
  .idle_sleeptime : 20000000001 nsecs
  .iowait_sleeptime: 109999999 nsecs

cpu: 1
  .idle_sleeptime : 30012345678 nsecs
  .iowait_sleeptime: 20000001 nsecs

cpu: 10
  .idle_sleeptime : 7 nsecs
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text(STAT)
    return tmp_path


def test_idle_times_are_exact_where_timers_may_be_read(root: Path):
    (root / "proc/timer_list").write_text(TIMERS)
    assert core_time(1, root=root).idle_ns == 30_032_345_679
    # A core without anything to do for long: only the ticks count that.
    (root / "proc/stat").write_text(STAT.replace("cpu1 400 0 200 3000", "cpu1 400 0 200 3010"))
    assert core_time(1, root=root).idle_ns == 3012 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("timers", [None, "", "cpu: 10\n  .idle_sleeptime : 7 nsecs\n"])
def test_otherwise_they_are_known_to_a_tick(root: Path, timers: str | None):
    if timers is not None:
        (root / "proc/timer_list").write_text(timers)
    assert core_time(1, root=root).idle_ns == 3002 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def test_the_share_is_of_the_time_between():
    before = CoreTime(5_000, 100_000)
    assert CoreTime(45_000, 200_000).share_since(before) == 0.6
    assert CoreTime(5_000, 200_000).share_since(before) == 1
    assert before.share_since(before) is None
    # By clocks that differ a little.
    assert CoreTime(105_001, 200_000).share_since(before) == 0


def test_a_core_may_be_woken_for_it():
    mine = os.sched_getaffinity(0)
    first = core_time(CORES[0], wake=True)
    second = core_time(CORES[0], wake=True)
    assert first.idle_ns <= second.idle_ns
    assert first.at_ns < second.at_ns
    assert core_time(10**6, wake=True).idle_ns == 0  # there is none
    assert os.sched_getaffinity(0) == mine
