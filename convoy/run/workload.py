# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What scenarios' functions do, and the traffic that meets all of it."""

from typing import Any

from convoy.dut import functions as described
from convoy.dut.base import Function
from convoy.dut.functions import DPORT, FEW
from convoy.host.programs import SCENARIOS

FLOWS = 1000
SIZE_FILES = {"facebook-like": SCENARIOS / "traffic/facebook-like.csv"}


def function(kind: str, entries: int) -> Function:
    """Return a function with so many routes or rules."""
    return described.WORKLOADS[kind](entries)


def size_of(size: str) -> int | str | dict[str, str]:
    """Return a frame size or a mix's name as a trial's specification writes it."""
    if size in SIZE_FILES:
        return {"file": str(SIZE_FILES[size])}
    return int(size) if size.isdigit() else size


def flows(count: int = FLOWS, entries: int = 1) -> dict[str, Any]:
    """Return the flows as a trial's specification writes them, to all that a router knows.

    entries: its routes. 1,000 sources, 1,024 destinations and 64,512 ports: millions of flows.
    """
    near = entries <= FEW.num_addresses
    return {
        "count": count,
        "order": "shuffle",
        "src_ip": "198.18.0.1-198.18.3.232",
        "dst_ip": str(FEW) if near else str(described.DESTINATIONS),
        "src_port": "1024-65535",
        "dst_port": str(DPORT),
        "dst_mac": described.LEFT_MAC,
    }
