# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What an Ethernet line carries: frames of a size at most, and bits with what lies between them."""

PREAMBLE_AND_GAP_BYTES = 20  # of a frame on the line, beside the frame with its FCS
LINE_RATES_GBPS = (1, 10, 40, 100)


def line_gbps(rate_pps: float, frame_bytes: float) -> float:
    """Return 1e9 bits per second on the line; frame_bytes: mean, with FCS."""
    return rate_pps * 8 * (frame_bytes + PREAMBLE_AND_GAP_BYTES) / 1e9


def line_rate_pps(gbps: float, frame_bytes: float) -> float:
    """Return how many frames a second are the line rate; frame_bytes: mean, with FCS."""
    return gbps * 1e9 / (8 * (frame_bytes + PREAMBLE_AND_GAP_BYTES))
