# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A core that runs slower: the clock of a machine of our own, and time that is really taken."""

import os
from pathlib import Path

import pytest

from convoy.errors import ConvoyError, InputError
from convoy.host import cpu_speed
from convoy.host.cpu_time import cpu_ns
from convoy.host.process import wait_for


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


class EnoughError(Exception):
    """The test has seen enough."""


class Clock:
    """A clock of its own: looking at it takes 100 ns, and a sleep is late as a real one is."""

    def __init__(self, late_ns, sleeps):
        self.now = self.used = self.slept_at = self.longest = 0
        self.late_ns, self.sleeps = late_ns, sleeps

    def perf_counter_ns(self):
        self.now, self.used = self.now + 100, self.used + 100
        return self.now

    def thread_time_ns(self):
        return self.used

    def sleep(self, seconds):
        self.longest = max(self.longest, self.now - self.slept_at)
        self.now += round(seconds * 1e9) + self.late_ns
        self.slept_at = self.now
        self.sleeps -= 1
        if self.sleeps == 0:
            raise EnoughError


@pytest.mark.parametrize(
    ("share", "late_us"), [(0.1, 0), (0.5, 0), (0.9, 0), (0.5, 5), (0.5, 45), (0.9, 60)]
)
def test_as_much_time_is_taken_as_was_asked_for(monkeypatch, share, late_us):
    clock, placed = Clock(late_us * 1000, 1000), []
    monkeypatch.setattr(cpu_speed, "time", clock)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: placed.append((pid, cores)))
    monkeypatch.setattr(os, "sched_setscheduler", lambda pid, *how: placed.append((pid, how[0])))
    with pytest.raises(EnoughError):
        cpu_speed._stall(3, share)
    assert placed == [(0, {3}), (0, os.SCHED_FIFO)]
    assert clock.used / clock.now == pytest.approx(1 - share, rel=0.01)
    # The device is never kept waiting for much longer than a period.
    assert clock.longest <= cpu_speed.PERIOD_US * 1000 + 500


@pytest.mark.skipif(
    not cpu_speed.how(0, Path("/none")),
    reason="this user may not ask for SCHED_FIFO: sudo make check",
)
def test_who_takes_it_is_before_all_others_on_that_core_until_the_end(tmp_path, monkeypatch):
    started = []

    class Kept(cpu_speed.Process):
        def __init__(self, command, **rest):
            super().__init__(command, **rest)
            started.append(self)

    monkeypatch.setattr(cpu_speed, "Process", Kept)
    core = max(os.sched_getaffinity(0))
    with cpu_speed.slowed(core, 0.5, tmp_path):
        (process,) = started
        assert os.sched_getscheduler(process.pid) == os.SCHED_FIFO
        assert os.sched_getaffinity(process.pid) == {core}
        before = cpu_ns([process.pid])
        wait_for(lambda: cpu_ns([process.pid]) > before, 30, "time that is taken")
    assert not process.running()
