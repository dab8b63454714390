# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A core that runs slower: by cpufreq where there is that, else emulated by taking its time away.

Emulated: a program of higher priority (SCHED_FIFO, so root only) spins on the core for a share of
every PERIOD_US. That is no slower clock: caches and memory are as fast as before, the device
stands still for up to PERIOD_US at a time, and its latency shows that. Results say which it was.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from convoy.errors import ConvoyError, InputError
from convoy.host.cpu_time import cpu_ns
from convoy.host.process import Process, wait_for

PERIOD_US = 100  # at 10 Mpps 1,000 packets come in that time, which is a ring's length
PRIORITY = 50
ROOT = Path("/")
READY_S = 10.0
TOLERANCE = 0.01  # of a clock's limit: kernels round to what the processor has


def _frequency(core: int, root: Path) -> Path:
    return root / f"sys/devices/system/cpu/cpu{core}/cpufreq"


def _may_go_first() -> bool:
    """Return whether we may use SCHED_FIFO: root may, but not in every container."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def how(core: int, root: Path = ROOT) -> str:
    """Return how a core's speed is set here; empty: it cannot be (usually: not root)."""
    if os.access(_frequency(core, root) / "scaling_max_freq", os.W_OK):
        return "cpufreq"
    if _may_go_first():
        return f"emulated: another program takes the rest of every {PERIOD_US} us"
    return ""


@contextlib.contextmanager
def slowed(core: int, share: float, root: Path = ROOT) -> Iterator[None]:
    """Leave a core so much (0.1 to 1) of its speed. Raises InputError where that cannot be."""
    kind = how(core, root)
    if not kind:
        raise InputError("CPU speed: neither cpufreq nor root, who may emulate it; run as root")
    with _by_clock(core, share, root) if kind == "cpufreq" else _by_stall(core, share):
        yield


@contextlib.contextmanager
def _by_clock(core: int, share: float, root: Path) -> Iterator[None]:
    folder = _frequency(core, root)
    most = folder / "scaling_max_freq"
    before = most.read_text()
    full = int((folder / "cpuinfo_max_freq").read_text())
    wanted = round(full * share)
    try:
        most.write_text(f"{wanted}\n")
        _was_set(core, wanted, int(most.read_text()), full)
        yield
    finally:
        most.write_text(before)


def _was_set(core: int, wanted: int, is_khz: int, full: int) -> None:
    """Raise ConvoyError where the kernel has set another limit: it clamps without a word."""
    if abs(is_khz - wanted) > TOLERANCE * wanted:
        raise ConvoyError(
            f"CPU speed {wanted / full:.0%}: core {core} was to have at most {wanted / 1000:.0f} "
            f"MHz, the kernel set {is_khz / 1000:.0f}; ask for a speed of {is_khz / full:.0%}"
        )


@contextlib.contextmanager
def _by_stall(core: int, share: float) -> Iterator[None]:
    command = [sys.executable, "-m", "convoy.host.cpu_speed", str(core), f"{share:g}"]
    # Where this process found the module, which an installed command's interpreter would not.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Process(command, environment=environment) as process:
        wait_for(
            lambda: not process.running() or cpu_ns([process.pid]) > 300e6 * (1 - share),
            READY_S,
            "slowing a core down",
        )
        if not process.running():
            raise ConvoyError(f"slowing a core down: {process.last_words()}")
        yield


def _stall(core: int, share: float) -> None:
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    period_ns = PERIOD_US * 1000
    begin, used = time.perf_counter_ns(), time.thread_time_ns()
    while True:
        # All its own CPU time counts, getting up included; debts are paid a period at a time.
        now = time.perf_counter_ns()
        owed = (now - begin) * (1 - share) - (time.thread_time_ns() - used)
        until = now + min(owed, period_ns)
        while time.perf_counter_ns() < until:
            pass
        time.sleep(period_ns * share / 1e9)


if __name__ == "__main__":
    _stall(int(sys.argv[1]), float(sys.argv[2]))
