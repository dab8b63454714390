# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs bench-frame: cycles of taking convoys apart and packing them, in memory."""

from dataclasses import dataclass

from convoy.run.memory import measure

SMALL_BYTES = 4096  # the working set that stays in the first cache


@dataclass(frozen=True)
class FrameCost:
    """Median TSC ticks per packet, by packets per frame, for packets of packet_bytes."""

    packets: int
    packet_bytes: int
    walk: float
    pack: float


def bench_frame(repeats: int) -> tuple[FrameCost, ...]:
    """Measure. Packets are in the first cache, where a function has just touched them.

    Raises ConvoyError where bench-frame fails, InputError where it is not there.
    """
    result: dict[tuple[int, int], dict[str, float]] = {}
    for row in measure("frame", repeats)["results"]:
        if row["working_set_bytes"] == SMALL_BYTES:
            place = result.setdefault((row["packets"], row["packet_bytes"]), {})
            place[row["function"]] = row["cycles_per_packet"]["median"]
    return tuple(
        FrameCost(packets, packet_bytes, row["walk"], row["pack"])
        for (packets, packet_bytes), row in sorted(result.items())
    )
