# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Measured processes go before whatever else runs here, as far as this user may ask for that.

Linux shares a core between sessions first (autogroups, sched(7)), and between the processes of a
session by their nice values second. Our processes have sessions of their own (process.py), so that
it is the session's nice value that counts; only root may lower it.

That still leaves others a hundredth of the core, milliseconds at a time. So for as long as a short
trial takes, its poll loops are SCHED_FIFO, which nothing of the kernel's fair share interrupts.
Longer than that they must not be: the kernel takes the core away from them (for 50 ms of each
second, by default), and its own threads may have to wait.

CONVOY_PRIORITY=normal leaves all that be, for a machine whose other work must not suffer.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from convoy.errors import InputError

VARIABLE = "CONVOY_PRIORITY"  # convoy-gen reads it too
MEASURED = -20
SHARES = 88761  # of a control group, what that nice value is of a process
LONGEST_SHARE = 0.7  # of what the kernel lets SCHED_FIFO have at a time
UNLIMITED_S = 1.0  # where it sets no limit: ours
REST = 0.1  # of that time, left to everybody afterwards: the limit is one of trials in a row, too


def wanted() -> bool:
    """Return whether measured processes are to go first. Raises InputError: nobody knows."""
    value = os.environ.get(VARIABLE, "high")
    if value not in ("high", "normal"):
        raise InputError(f"{VARIABLE}: '{value}' is neither high nor normal")
    return value == "high"


def prefer(pid: int, root: Path = Path("/")) -> bool:
    """Put a process's session first.

    False: not wanted, not allowed, or this kernel has no autogroups. Raises InputError as wanted.
    """
    if not wanted():
        return False
    with contextlib.suppress(OSError):
        (root / f"proc/{pid}/autogroup").write_text(f"{MEASURED}\n")
        return True
    return False


def prefer_group(name: str, root: Path = Path("/")) -> bool:
    """Put a control group, of those at the top, first: its processes' sessions count no more.

    False: not wanted, not allowed, or there is none that shares processors. Raises as wanted.
    """
    groups = root / "sys/fs/cgroup"
    files = {
        groups / name / "cpu.weight.nice": MEASURED,  # version 2
        groups / "cpu" / name / "cpu.shares": SHARES,
    }
    for file, value in files.items() if wanted() else ():
        with contextlib.suppress(OSError):
            with file.open("r+") as there:
                there.write(f"{value}\n")
            return True
    return False


def longest_s(root: Path = Path("/")) -> float:
    """Return for how long threads may be SCHED_FIFO without being throttled; 0: not at all."""
    try:
        runtime_us = int((root / "proc/sys/kernel/sched_rt_runtime_us").read_text())
    except (OSError, ValueError):
        return 0.0
    return LONGEST_SHARE * (UNLIMITED_S if runtime_us < 0 else runtime_us / 1e6)


@contextlib.contextmanager
def uninterrupted(threads: Iterable[int], seconds: float) -> Iterator[bool]:
    """Let nobody interrupt threads (by their ids) that poll for so many seconds, if that is short.

    Yields whether that holds: False where it is not wanted, not allowed (it needs CAP_SYS_NICE), or
    too long. Raises InputError as prefer.
    """
    raised: list[int] = []
    allowed = wanted() and seconds <= longest_s()
    began = time.monotonic()
    try:
        for thread in threads if allowed else ():
            try:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
                raised.append(thread)
            except OSError:
                allowed = False
                break
        yield allowed and bool(raised)
    finally:
        for thread in raised:
            with contextlib.suppress(OSError):  # it has ended
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
        if raised:
            time.sleep(REST * (time.monotonic() - began))
