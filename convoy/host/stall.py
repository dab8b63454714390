# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Notices a node that reads a capture and gets no further. Pure: it is shown counts and a time."""

from collections.abc import Mapping
from typing import Any

STALLED_S = 10.0  # a node that can go on moves packets within microseconds


class Stall:
    """Watches one run; says once that it stands still."""

    def __init__(self) -> None:
        self._moved: tuple[Any, ...] = ()
        self._since_s = 0.0
        self._reported = False

    def update(self, now_s: float, counts: Mapping[str, Any]) -> str:
        """Return what is to be said of these counts; usually nothing: the empty string."""
        ports = counts["ports"]
        moved = tuple(
            (name, port["rx_packets"], port["tx_packets"]) for name, port in ports.items()
        )
        waiting = [name for name, port in ports.items() if port.get("ended") is False]
        if moved != self._moved or not waiting:
            self._moved, self._since_s = moved, now_s
            return ""
        if self._reported or now_s - self._since_s < STALLED_S:
            return ""
        self._reported = True
        read = ports[waiting[0]].get("read_pkts", 0)
        seconds = now_s - self._since_s
        return (
            f"no packet has moved for {seconds:.0f} s, and port {waiting[0]} has read only {read} "
            "packets of its capture: it waits for buffers. Raise memory.mb, or end it with Ctrl-C"
        )
