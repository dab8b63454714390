# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets that a page asked about: traced as long as somebody looks."""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convoy.client import Client, Packet
from convoy.errors import ConvoyError

KEPT = 500  # packets
FORGOTTEN_S = 10.0  # without anybody who asks
_WAIT_MS = 200
_READ = 64
_PAUSE_S = 0.1  # between reads that brought as many as possible: a page is no capture


class WhyWatch:
    """Arms a node's `why`, and keeps what it tells until it is asked."""

    def __init__(self, where: Callable[[], Path], text: Callable[[Packet], list[str]]) -> None:
        """Prepare; where: the node's control.sock now. text: a packet as people read it."""
        self._where = where
        self._text = text
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._packets: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._next = 1
        self._lost = 0
        self._problem = ""
        self._read_s = 0.0
        self._run = 0  # which thread may go on
        self._armed = False

    def start(self, expression: str, drops: bool) -> None:
        """Trace from now on, in place of what was traced, which ends. Raises ConvoyError."""
        with self._changing:
            self._end()  # a node traces for one client
            client = Client(self._where())
            try:
                client.arm_why(expression, drops)
            except ConvoyError:
                client.close()
                raise
            with self._lock:
                self._packets.clear()
                self._lost, self._problem, self._read_s = 0, "", time.monotonic()
                self._armed = True
                run = self._run
            self._thread = threading.Thread(target=self._read, args=(client, run), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Trace no longer."""
        with self._changing:
            self._end()

    def _end(self) -> None:
        """Have the thread that reads end; the node traces no more then."""
        with self._lock:
            self._run += 1
            self._armed = False
        if self._thread is not None:
            self._thread.join()  # _WAIT_MS, or until the client gives the node up
            self._thread = None

    def since(self, number: int) -> dict[str, Any]:
        """Return the packets behind a number (convoy.watch.why/1)."""
        with self._lock:
            self._read_s = time.monotonic()
            return {
                "schema": "convoy.watch.why/1",
                "armed": self._armed,
                "lost": self._lost,
                "problem": self._problem,
                "packets": [
                    {"number": at, **packet} for at, packet in self._packets if at > number
                ],
            }

    def _goes_on(self, run: int) -> bool:
        with self._lock:
            return run == self._run and time.monotonic() - self._read_s < FORGOTTEN_S

    def _read(self, client: Client, run: int) -> None:
        problem = ""
        try:
            with client:
                while self._goes_on(run):
                    packets, lost = client.read_why(_READ, _WAIT_MS)
                    self._keep(packets, lost, run)
                    if len(packets) == _READ:
                        time.sleep(_PAUSE_S)
                client.disarm_why()  # closing alone would be seen later
        except ConvoyError as error:
            problem = str(error)
        with self._lock:
            if run == self._run:
                self._armed, self._problem = False, problem

    def _keep(self, packets: list[Packet], lost: int, run: int) -> None:
        with self._lock:
            if run != self._run:
                return
            self._lost = lost
            for packet in packets:
                entry = {"end": packet.end, "reason": packet.reason, "text": self._text(packet)}
                self._packets.append((self._next, entry))
                self._next += 1
