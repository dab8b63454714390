# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who goes first on a core, and for how long."""

import os

import pytest

from convoy.errors import InputError
from convoy.host.priority import (
    MEASURED,
    SHARES,
    VARIABLE,
    longest_s,
    prefer,
    prefer_group,
    uninterrupted,
)
from convoy.host.process import Process


@pytest.fixture(autouse=True)
def high(monkeypatch):
    """As without tests beside these, which ask for nothing."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("text", "seconds"), [("950000\n", 0.665), ("-1\n", 0.7), ("0\n", 0.0), ("", 0.0)]
)
def test_the_kernels_limit_is_kept(tmp_path, text, seconds):
    file = tmp_path / "proc/sys/kernel/sched_rt_runtime_us"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert longest_s(tmp_path) == pytest.approx(seconds)


def test_without_such_a_file_nobody_goes_first(tmp_path):
    assert longest_s(tmp_path) == 0.0


def policies(threads):
    return [os.sched_getscheduler(thread) for thread in threads]


def test_for_a_short_time_nobody_interrupts_and_then_all_is_as_before():
    with Process(["sleep", "60"]) as one, Process(["sleep", "60"]) as two:
        threads = one.pid, two.pid
        with uninterrupted(threads, 0.1) as alone:
            if not alone:
                pytest.skip("this user may not ask for SCHED_FIFO: sudo make check")
            assert policies(threads) == [os.SCHED_FIFO] * 2
        assert policies(threads) == [os.SCHED_OTHER] * 2
        with uninterrupted(threads, 1.0) as alone:  # the kernel would throttle them
            assert not alone
            assert policies(threads) == [os.SCHED_OTHER] * 2


def test_a_thread_that_has_ended_leaves_the_others_as_they_were():
    with Process(["true"]) as ended, Process(["sleep", "60"]) as other:
        ended.wait(60)
        with uninterrupted((other.pid, ended.pid), 0.1) as alone:
            assert not alone
        assert policies([other.pid]) == [os.SCHED_OTHER]


def test_nobody_is_nobody():
    with uninterrupted((), 0.1) as alone:
        assert not alone


@pytest.fixture
def autogroup(tmp_path):
    """As the kernel has it for process 7; nothing is written yet."""
    file = tmp_path / "proc/7/autogroup"
    file.parent.mkdir(parents=True)
    file.write_text("")
    return file


def test_a_session_is_put_first(tmp_path, autogroup):
    assert prefer(7, tmp_path)
    assert autogroup.read_text() == f"{MEASURED}\n"
    assert not prefer(8, tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [("convoy-x/cpu.weight.nice", f"{MEASURED}\n"), ("cpu/convoy-x/cpu.shares", f"{SHARES}\n")],
)
def test_a_control_group_is_put_first(tmp_path, file, text):
    assert not prefer_group("convoy-x", tmp_path)
    made = tmp_path / "sys/fs/cgroup" / file
    made.parent.mkdir(parents=True)
    assert not prefer_group("convoy-x", tmp_path)
    assert not made.exists()
    made.write_text("")
    assert prefer_group("convoy-x", tmp_path)
    assert made.read_text() == text


def test_who_wants_no_priority_gets_none(tmp_path, autogroup, monkeypatch):
    monkeypatch.setenv(VARIABLE, "normal")
    assert not prefer(7, tmp_path)
    assert autogroup.read_text() == ""
    with Process(["sleep", "60"]) as other, uninterrupted((other.pid,), 0.1) as alone:
        assert not alone
        assert policies((other.pid,)) == [os.SCHED_OTHER]


def test_another_word_is_refused(tmp_path, autogroup, monkeypatch):
    monkeypatch.setenv(VARIABLE, "idle")
    with pytest.raises(InputError, match="CONVOY_PRIORITY: 'idle' is neither high nor normal"):
        prefer(7, tmp_path)
    with pytest.raises(InputError), uninterrupted((), 0.1):
        pass
