# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two honest guests whose packets must go on through whatever happens to others."""

import random
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from convoy.host.scope import Scope
from hostile.front_end import connect
from hostile.guest import Guest

WINDOW = 16  # packets under way, each way: no ring can be full of them
PERIOD_S = 0.002
DEADLINE_S = 30.0


@dataclass
class Carried:
    """What became of packets since the last look."""

    packets: int = 0
    lost: int = 0
    wrong: int = 0
    longest_gap_s: float = 0.0


class Bystander(Scope):
    """Sends packets both ways and compares what comes, in a thread of its own."""

    def __init__(self, left: Path, right: Path, seed: int) -> None:
        """Prepare; attach() connects."""
        self._paths = (left, right)
        self._random = random.Random(seed)
        self._guests: list[Guest] = []
        self._under_way: list[deque[bytes]] = [deque(), deque()]
        self._carried = Carried()
        self._last = 0.0
        self._first: float | None = None  # since it was attached
        self._lock = threading.Lock()
        self._sends = True
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def attach(self) -> float:
        """Connect and wait for the first packet; return how long both took."""
        begin = time.monotonic()
        guests = [Guest(*connect(path, DEADLINE_S)).start() for path in self._paths]
        with self._lock:
            self._guests, self._first, self._last = guests, None, time.monotonic()
        while self._first is None:
            if time.monotonic() > begin + DEADLINE_S:
                raise AssertionError("the bystanders' packets do not come through")
            time.sleep(0.001)
        return self._first - begin

    def detach(self) -> None:
        """Hang up; what is under way is lost by right."""
        with self._lock:
            guests, self._guests = self._guests, []
            for way in self._under_way:
                way.clear()
        for guest in guests:
            guest.close()

    def carried(self) -> Carried:
        """Return what was carried since the last look."""
        with self._lock:
            carried, self._carried = self._carried, Carried()
        return carried

    def quiet(self) -> None:
        """Send nothing more, and wait until nothing is under way."""
        self._sends = False
        end = time.monotonic() + DEADLINE_S
        while any(self._under_way):
            if time.monotonic() > end:
                raise AssertionError("packets of the bystanders are lost or stuck")
            time.sleep(0.001)

    def loud(self) -> None:
        """Send again."""
        with self._lock:
            self._last = time.monotonic()
        self._sends = True

    def _run(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                if self._guests:
                    self._step()
            self._ends.wait(PERIOD_S)

    def _step(self) -> None:
        for way, (near, far) in enumerate((self._guests, self._guests[::-1])):
            for got in far.received():
                self._came(self._under_way[way], got)
            room = WINDOW - len(self._under_way[way]) if self._sends else 0
            fresh = [self._packet() for _ in range(min(room, 4))]
            self._under_way[way].extend(fresh[: near.send(fresh)])

    def _came(self, expected: deque[bytes], got: bytes) -> None:
        now = time.monotonic()
        carried = self._carried
        if got not in expected:
            carried.wrong += 1
            return
        while expected.popleft() != got:
            carried.lost += 1
        carried.packets += 1
        carried.longest_gap_s = max(carried.longest_gap_s, now - self._last)
        self._last = now
        if self._first is None:
            self._first = now

    def _packet(self) -> bytes:
        size = self._random.choice((60, 61, 128, 590, 1514))
        return bytes(12) + b"\x88\xb5" + self._random.randbytes(size - 14)

    def _leave(self) -> None:
        self._ends.set()
        self._thread.join()
        self.detach()
