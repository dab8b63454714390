# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""CPU time: of processes, and of cores whoever used them."""

import itertools
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


def cpu_ns(pids: Iterable[int], root: Path = ROOT) -> int:
    """Return the time that the threads of these processes have run, in all.

    From schedstat (first number). Threads that ended are not in it: take differences over times
    in which none does.
    """
    total = 0
    for pid in pids:
        for path in (root / f"proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(path.read_text().split()[0])
            except (OSError, ValueError, IndexError):
                continue  # the thread has ended
    return total


@dataclass(frozen=True)
class CoreTime:
    """How long a core has had nothing to do since the machine started, at a time (ns)."""

    idle_ns: int
    at_ns: int

    def share_since(self, before: "CoreTime") -> float | None:
        """Return the busy share since then; None: no time has passed."""
        elapsed_ns = self.at_ns - before.at_ns
        if elapsed_ns <= 0:
            return None
        return min(1.0, max(0.0, 1 - (self.idle_ns - before.idle_ns) / elapsed_ns))


def core_time(core: int, *, wake: bool = False, root: Path = ROOT) -> CoreTime:
    """Return how long a core has been idle: interrupts and the kernel's own work are not.

    /proc/stat knows it to one or two clock ticks (10 ms each); root reads it exactly from
    /proc/timer_list, but for the time since the core had something to do. wake: give it this to
    do. Only for a core whose programs take turns with others: a poll loop of higher priority would
    keep us waiting.
    """
    if wake:
        mine = os.sched_getaffinity(0)
        with suppress(OSError):  # the core went offline, or is not ours
            os.sched_setaffinity(0, {core})
            try:
                return _core_time(core, root)
            finally:
                os.sched_setaffinity(0, mine)
    return _core_time(core, root)


def _core_time(core: int, root: Path) -> CoreTime:
    idle_ns = max(_idle_by_ticks(core, root), _idle_by_timers(core, root))
    return CoreTime(idle_ns, time.monotonic_ns())


def _idle_by_ticks(core: int, root: Path) -> int:
    for line in (root / "proc/stat").read_text().splitlines():
        words = line.split()
        if words and words[0] == f"cpu{core}":
            idle = int(words[4]) + int(words[5])  # idle iowait
            return idle * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return 0


def _idle_by_timers(core: int, root: Path) -> int:
    try:
        text = (root / "proc/timer_list").read_text()
    except OSError:
        return 0  # only root may
    begin = re.search(rf"^cpu: {core}$", text, re.MULTILINE)
    if begin is None:
        return 0
    matches = re.findall(
        r"^cpu:|^ *\.(?:idle|iowait)_sleeptime *: (\d+) nsecs$", text[begin.end() :], re.MULTILINE
    )
    mine = itertools.takewhile(bool, matches)  # until the next core
    return sum(int(ns) for ns in mine)
