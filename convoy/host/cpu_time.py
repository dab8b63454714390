# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""CPU time: of processes, and of cores whoever used them."""

from collections.abc import Iterable
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
    """What a core did since the machine started, in clock ticks."""

    busy: int
    all: int

    def share_since(self, before: "CoreTime") -> float | None:
        """Return the busy share since then; None: too short to tell."""
        elapsed = self.all - before.all
        return (self.busy - before.busy) / elapsed if elapsed > 0 else None


def core_time(core: int, root: Path = ROOT) -> CoreTime:
    """Return what a core did, interrupts and the kernel's own work included."""
    for line in (root / "proc/stat").read_text().splitlines():
        words = line.split()
        if words and words[0] == f"cpu{core}":
            ticks = [int(word) for word in words[1:9]]  # ... idle iowait irq softirq steal
            idle = ticks[3] + ticks[4]
            return CoreTime(sum(ticks) - idle, sum(ticks))
    return CoreTime(0, 0)
