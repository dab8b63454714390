# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A core that runs slower: the clock of a machine of our own, and time that is really taken."""

import os
import time
from pathlib import Path

import pytest

from convoy.errors import ConvoyError, InputError
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


def test_a_limit_that_the_kernel_clamps_is_refused_and_put_back(tmp_path, monkeypatch):
    folder = tmp_path / "sys/devices/system/cpu/cpu3/cpufreq"
    folder.mkdir(parents=True)
    most = folder / "scaling_max_freq"
    most.write_text("2600000\n")
    (folder / "cpuinfo_max_freq").write_text("3000000\n")
    written = []

    def clamped(path, text):
        written.append(int(text))
        with path.open("w") as file:
            file.write(f"{max(int(text), 1200000)}\n")

    monkeypatch.setattr(Path, "write_text", clamped)
    with cpu_speed.slowed(3, 0.4, tmp_path):
        pass
    words = "CPU speed 10%: core 3 was to have at most 300 MHz, the kernel set 1200; .* of 40%"
    with pytest.raises(ConvoyError, match=words), cpu_speed.slowed(3, 0.1, tmp_path):
        pytest.fail("the device would be measured at another speed than it says")
    assert written == [1200000, 2600000, 300000, 2600000]
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
