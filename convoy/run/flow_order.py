# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which flow each trial begins with, so that short trials meet all flows; or, of connections, only
flows that no device can remember any more.
"""

import time
from collections import deque
from collections.abc import Callable

SLACK_S = 2.0  # beyond a time-out, after which a device has surely forgotten a flow
PARTS = 4  # of all flows a trial opens one at most


class FlowOrder:
    """Goes round and round through the flows of one device run."""

    def __init__(
        self,
        count: int,
        idle_s: float | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """idle_s: flows are opened, and forgotten after so long; None: they are known."""
        self._count, self._idle_s = count, idle_s
        self._now, self._sleep = now, sleep
        self._sent = 0  # in all trials
        self._trials: deque[tuple[int, float]] = deque()  # sent until then, when that was

    @property
    def most(self) -> int:
        """Return how many packets a trial may have; 0: as many as it likes."""
        return self._count // PARTS if self._idle_s is not None else 0

    def first(self) -> int:
        """Return the flow that the next trial begins with, once it may."""
        if self._idle_s is not None:
            last = self._sent + self.most - self._count  # of those that it may meet again
            until = 0.0
            while self._trials and last > 0:
                sent, ended = self._trials[0]
                until = ended + self._idle_s + SLACK_S
                if sent >= last:
                    break
                self._trials.popleft()
            self._sleep(max(0.0, until - self._now()))
        return self._sent % self._count

    def sent(self, packets: int) -> None:
        """Go on behind a trial that sent so many."""
        self._sent += packets
        self._trials.append((self._sent, self._now()))
