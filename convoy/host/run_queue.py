# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who polls, and for how long others kept that thread off its core though it could have run.

Only poll loops count: a process's other threads wait for these, which costs no packet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

WORKERS = ("rte-worker", "dpdk-worker")  # names of DPDK's poll threads: 22.11, 24.11


@dataclass(frozen=True)
class ThreadTime:
    """Of one thread, since it began."""

    ran_ns: int
    run_queue_delay_ns: int  # ready, but not running; counted when the wait ends


def thread_times(pids: Iterable[int], root: Path = Path("/")) -> dict[int, ThreadTime]:
    """Return the times of all threads of these processes, by thread id, from schedstat."""
    result = {}
    for pid in pids:
        for path in (root / f"proc/{pid}/task").glob("*/schedstat"):
            try:
                ran, waited = path.read_text().split()[:2]
                result[int(path.parent.name)] = ThreadTime(int(ran), int(waited))
            except (OSError, ValueError):
                continue  # the thread has ended
    return result


def _named(names: Iterable[Path], begins: tuple[str, ...]) -> tuple[int, ...]:
    """Return the ids of those whose /proc/…/comm begins with one of these."""
    result = []
    for path in names:
        try:
            if path.read_text().startswith(begins):
                result.append(int(path.parent.name))
        except OSError:
            continue  # it has ended
    return tuple(result)


def threads_named(pid: int, begins: tuple[str, ...], root: Path = Path("/")) -> tuple[int, ...]:
    """Return the threads of a process whose names begin with one of these."""
    return _named((root / f"proc/{pid}/task").glob("*/comm"), begins)


def softirqs(root: Path = Path("/")) -> tuple[int, ...]:
    """Return the kernel's threads that do what interrupts left over, a device's packets included.

    Returns none where they cannot be seen, as in a container.
    """
    return _named((root / "proc").glob("[0-9]*/comm"), ("ksoftirqd/",))


def pollers(before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]) -> tuple[int, ...]:
    """Return the threads that ran, in between, at least half as long as the one that ran most."""
    ran = {thread: after[thread].ran_ns - before[thread].ran_ns for thread in before.keys() & after}
    most = max(ran.values(), default=0)
    return tuple(thread for thread, ns in ran.items() if ns > 0 and 2 * ns >= most)


def run_queue_delay_ns(before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]) -> int:
    """Return how long those who poll had to wait in between, all together."""
    polled = pollers(before, after)
    return sum(
        after[thread].run_queue_delay_ns - before[thread].run_queue_delay_ns for thread in polled
    )
