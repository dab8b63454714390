# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A core that runs slower: the clock of a machine of our own, and time that is really taken."""

import os
import time
from pathlib import Path

import pytest

from convoy.errors import InputError
from convoy.host import cpu_speed
from convoy.host.cpu_time import cpu_ns


def test_by_the_clock_where_there_is_one_and_it_is_put_back(tmp_path):
    folder = tmp_path / "sys/devices/system/cpu/cpu3/cpufreq"
    folder.mkdir(parents=True)
    most = folder / "scaling_max_freq"
    most.write_text("2600000\n")
    (folder / "cpuinfo_max_freq").write_text("3000000\n")
    assert cpu_speed.how(3, tmp_path) == "cpufreq"
    with pytest.raises(KeyError), cpu_speed.slowed(3, 0.5, tmp_path):
        assert most.read_text() == "1500000\n"
        raise KeyError
    assert most.read_text() == "2600000\n"


def test_who_may_not_is_told_so(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert cpu_speed.how(0, tmp_path) == ""
    with pytest.raises(InputError, match="neither cpufreq nor root"), cpu_speed.slowed(0, 0.5):
        pass


@pytest.mark.skipif(not cpu_speed.how(0, Path("/none")), reason="SCHED_FIFO is not allowed here")
def test_time_is_taken_as_asked(tmp_path, monkeypatch):
    started = []

    class Kept(cpu_speed.Process):
        def __init__(self, command):
            super().__init__(command)
            started.append(self)

    monkeypatch.setattr(cpu_speed, "Process", Kept)
    with cpu_speed.slowed(max(os.sched_getaffinity(0)), 0.5, tmp_path):
        (process,) = started
        before, begin = cpu_ns([process.pid]), time.monotonic_ns()
        while cpu_ns([process.pid]) - before < 300e6:  # of its own time, so 600 ms of ours
            assert time.monotonic_ns() - begin < 30e9
        share = (cpu_ns([process.pid]) - before) / (time.monotonic_ns() - begin)
    assert share == pytest.approx(0.5, abs=0.1)
    assert not process.running()
