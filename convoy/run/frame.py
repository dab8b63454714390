# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs bench-frame: cycles of taking convoys apart and packing them, in memory."""

import json
import subprocess
from dataclasses import dataclass

from convoy.errors import ConvoyError
from convoy.host.programs import need

DEADLINE_S = 120.0
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
    done = subprocess.run(
        [need("bench-frame"), str(repeats)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    if done.returncode != 0:
        raise ConvoyError(f"bench-frame ended with {done.returncode}: {done.stderr.strip()}")
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in json.loads(done.stdout)["results"]:
        if row["working_set_bytes"] == SMALL_BYTES:
            place = found.setdefault((row["packets"], row["packet_bytes"]), {})
            place[row["function"]] = row["cycles_per_packet"]["median"]
    return tuple(
        FrameCost(packets, packet_bytes, row["walk"], row["pack"])
        for (packets, packet_bytes), row in sorted(found.items())
    )
