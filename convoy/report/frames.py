# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""In what packets came back, and how they were lost: trials of one load, added up.

The tester takes received convoys apart and counts them, so this is the same for every device. What
came singly is what is left of all that came.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from convoy.results.trial_result import TrialResult

Buckets = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Frames:
    """How many frames held how many packets."""

    sizes: Buckets  # packets in a frame, how many such frames

    @property
    def packets(self) -> int:
        """Return all packets."""
        return sum(size * count for size, count in self.sizes)

    @property
    def frames(self) -> int:
        """Return all frames."""
        return sum(count for _, count in self.sizes)

    @property
    def per_frame(self) -> float:
        """Return the mean of packets in a frame."""
        return self.packets / self.frames

    @property
    def ratio_percent(self) -> float:
        """Return the aggregation ratio as PA-Flow defines it: frames / packets * 100."""
        return 100 * self.frames / self.packets


def frames_of(results: Sequence[TrialResult]) -> Frames | None:
    """Return in what frames the tester's results say packets came; None: it did not look."""
    sizes: Counter[int] = Counter()
    for result in results:
        convoys = result.convoys
        if convoys is None or result.total is None:
            continue
        for size, count in convoys.received_by_packets:
            sizes[size] += count
        single = result.total.received_pkts - convoys.received_pkts
        if single > 0:
            sizes[1] += single
    return Frames(tuple(sorted(sizes.items()))) if sizes else None


def loss_periods_of(results: Sequence[TrialResult]) -> Buckets:
    """Return the lengths of loss periods, how often: refused at the entrance, or inside."""
    runs: Counter[int] = Counter()
    for result in results:
        total = result.total
        for length, count in (*total.loss_bursts_pkts, *total.refused_bursts_pkts) if total else ():
            runs[length] += count
    return tuple(sorted(runs.items()))


def median_loss_period(runs: Buckets) -> int | None:
    """Return the length of runs that half of the lost packets were in, or in shorter ones."""
    lost = sum(length * count for length, count in runs)
    seen = 0
    for length, count in runs:
        seen += length * count
        if 2 * seen >= lost:
            return length
    return None
