# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How full frames are, where that is known by other means."""

import math

import pytest

from convoy.advise.frames import BURST, SINGLE, Core, Frames, leave

NS = 1e-9


def mean_burst(load):
    """Return the packets in a burst: generations of a branching process, begun by one packet.

    1 / (1 - load) packets until none is left, in as many bursts as generations live.
    """
    bursts, gone = 0.0, 0.0
    while 1 - gone > 1e-12:
        bursts += 1 - gone
        gone = math.exp(-load * (1 - gone))
    return 1 / (1 - load) / bursts


@pytest.mark.parametrize("load", [0.01, 0.3, 0.6, 0.9])
def test_a_burst_is_what_came_during_the_one_before(load):
    result = leave(SINGLE, load / (100 * NS), Core(100 * NS, 0, 1, BURST))
    assert result.mean == pytest.approx(mean_burst(load), rel=0.01)
    sent = leave(SINGLE, load / (100 * NS), Core(70 * NS, 30 * NS, 1, BURST))
    assert 1 <= sent.mean <= result.mean  # packets in company are less work


def test_a_core_that_is_idle_sends_frames_as_they_come():
    come = Frames((0.5, 0, 0, 0.5))
    result = leave(come, 1.0, Core(100 * NS, 0, 1, 22))
    assert result.shares[:5] == pytest.approx((0.5, 0, 0, 0.5, 0), abs=1e-6)
    assert (come.mean, come.single, come.convoy) == (2.5, 0.2, 4)
    # To each of two next hops: of one packet half of the frames, of four nearly all.
    split = leave(come, 1.0, Core(100 * NS, 0, 2, 22))
    assert split.mean == pytest.approx(2.5 / (0.5 + 0.5 * 2 * (1 - 0.5**4)))


@pytest.mark.parametrize("rate_pps", [2e7, 1e9])
def test_a_core_with_too_much_to_do_fills_frames(rate_pps):
    result = leave(SINGLE, rate_pps, Core(100 * NS, 0, 1, 32))
    assert result.mean == pytest.approx(32, rel=0.01)


def test_a_frame_that_waits_gets_what_comes_meanwhile():
    few, many = (
        leave(SINGLE, 1e6, Core(10 * NS, 0, next_hops, 22, 5e-6)).mean for next_hops in (2, 1)
    )
    assert few == pytest.approx(1 + 1e6 / 2 * 5e-6, rel=0.02)
    assert many == pytest.approx(1 + 1e6 * 5e-6, rel=0.02)
    assert leave(SINGLE, 1e7, Core(10 * NS, 0, 1, 22, 5e-6)).mean == pytest.approx(22, rel=1e-3)
