# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Poll loops that share a core and cannot yield: they get it in turn.

A program of higher priority (SCHED_FIFO, so root only) sleeps for TURN_US. Then it makes the thread
whose turn has ended SCHED_IDLE, and the next one SCHED_OTHER. Left to the kernel, each would keep
the core for milliseconds, and the rings between them would overflow. The program's own time comes
on top of a turn, and is none of the device's.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence

from convoy.errors import ConvoyError
from convoy.host.process import Process, wait_for

TURN_US = 50  # at 10 Mpps 500 packets come in that time: half of a ring
PRIORITY = 40
READY_S = 10.0


@contextlib.contextmanager
def in_turn(core: int, threads: Sequence[int]) -> Iterator[None]:
    """Give a core to these threads in turn. Raises ConvoyError where that cannot be."""
    words = [sys.executable, "-m", "convoy.host.turns", *map(str, (core, *threads))]
    with Process(words) as process:
        wait_for(
            lambda: not process.running() or os.sched_getscheduler(process.pid) == os.SCHED_FIFO,
            READY_S,
            "giving a core to poll loops in turn",
        )
        if not process.running():
            raise ConvoyError(f"giving a core to poll loops in turn: {process.last_words()}")
        yield


def _turns(core: int, threads: Sequence[int]) -> None:
    """Never ends, but with the threads."""
    idle, other = os.sched_param(0), os.sched_param(0)
    os.sched_setaffinity(0, {core})
    for thread in threads[1:]:
        os.sched_setscheduler(thread, os.SCHED_IDLE, idle)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    turn = 0
    while True:
        time.sleep(TURN_US / 1e6)  # not until a moment: on a slow machine that may have passed
        following = (turn + 1) % len(threads)
        os.sched_setscheduler(threads[turn], os.SCHED_IDLE, idle)
        os.sched_setscheduler(threads[following], os.SCHED_OTHER, other)
        turn = following


if __name__ == "__main__":
    with contextlib.suppress(ProcessLookupError):  # a thread has ended
        _turns(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])
