# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How many packets share a frame, by how busy the core is that fills it.

A core serves what waits as one burst; what comes meanwhile, at random, is the next one. If nothing
came, the next frame that comes is a burst by itself. So bursts are a Markov chain, whose mean says
how full frames are: the packets of a burst with one next hop share frames, as convoy-sim has it
(`aggregation: queue`).
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BURST = 64  # packets, at most
WAITING_MAX = 128  # packets that the chain knows of; more wait under overload alone
LENGTH = 512  # of what may come during a burst
OVERLOAD = 1.5  # times what a core can serve: beyond it all frames are full
RARE = 1e-12  # share of frames, so that each state of the chain can be left


@dataclass(frozen=True)
class Frames:
    """Frames on their way to a core."""

    shares: tuple[float, ...]  # of the frames, that have 1, 2, ... packets

    @property
    def mean(self) -> float:
        """Return the packets in a frame."""
        return sum(n * share for n, share in enumerate(self.shares, 1)) / sum(self.shares)

    @property
    def single(self) -> float:
        """Return the share of the packets that come by themselves."""
        return self.shares[0] / sum(n * share for n, share in enumerate(self.shares, 1))

    @property
    def convoy(self) -> float:
        """Return the packets in a frame that has several; 1: there is none."""
        several = sum(self.shares[1:])
        return sum(n * x for n, x in enumerate(self.shares[1:], 2)) / several if several else 1.0


SINGLE = Frames((1.0,))


@dataclass(frozen=True)
class Core:
    """What a core does with packets. Times in seconds."""

    packet_s: float  # work on each, without sending
    sent_s: float  # for each frame that leaves
    next_hops: int  # between which its packets are shared
    full: int  # packets of a frame that is full
    wait_s: float = 0.0  # of a frame that is not
    spaced: bool = False  # frames come one after the other: each is a burst by itself


@cache
def _leaving(next_hops: int, full: int) -> Array:
    """Return how many frames of how many packets bursts become: [packets of the burst, of each]."""
    share = 1 / next_hops
    result = np.zeros((BURST + 1, full + 1))
    for burst in range(1, BURST + 1):
        for mine in range(1, burst + 1):
            chance = math.comb(burst, mine) * share**mine * (1 - share) ** (burst - mine)
            result[burst, full] += chance * (mine // full)
            result[burst, mine % full] += chance
    result[:, 0] = 0
    return result * next_hops


def _sizes(come: Frames, length: int) -> Array:
    """Return how often a frame that comes has 0, 1, 2, ... packets."""
    result = np.zeros(length)
    result[1 : len(come.shares) + 1] = come.shares
    result[1] += RARE
    shares: Array = result / result.sum()
    return shares


def _stationary(steps: Array) -> Array:
    """Return how often a chain is in each state, in the long run (Grassmann, Taksar, Heyman)."""
    for last in range(len(steps) - 1, 0, -1):
        steps[:last, last] /= steps[last, :last].sum()
        steps[:last, :last] += np.outer(steps[:last, last], steps[last, :last])
    result = np.ones(len(steps))
    for state in range(1, len(steps)):
        result[state] = result[:state] @ steps[:state, state]
    shares: Array = result / result.sum()
    return shares


def _bursts(come: Frames, rate_pps: float, times_s: Array) -> Array:
    """Return the share of bursts that begin with so many packets waiting. times_s: by packets."""
    sizes = _sizes(come, LENGTH)
    rate_pps = min(rate_pps, OVERLOAD * BURST / times_s[BURST])
    frames = times_s * rate_pps / come.mean  # that come during a burst
    during = np.fft.ifft(np.exp(np.outer(frames, np.fft.fft(sizes) - 1))).real  # compound Poisson
    during = np.maximum(during, 0.0)
    steps = np.zeros((WAITING_MAX + 1, WAITING_MAX + 1))
    for waiting in range(1, WAITING_MAX + 1):
        served = min(waiting, BURST)
        left, room = waiting - served, WAITING_MAX - waiting + served
        steps[waiting, left:] = during[served, : room + 1]
        steps[waiting, -1] += during[served, room + 1 :].sum()
    steps[:, 1:] += np.outer(steps[:, 0], sizes[1 : WAITING_MAX + 1])
    waiting_shares = _stationary(steps[1:, 1:])
    result = np.zeros(BURST + 1)
    result[:BURST] = np.append(0.0, waiting_shares[: BURST - 1])
    result[BURST] = waiting_shares[BURST - 1 :].sum()
    return result


@lru_cache(maxsize=4096)
def leave(come: Frames, rate_pps: float, core: Core) -> Frames:
    """Return the frames that a core sends to each next hop; rate_pps: packets that come to it."""
    leaving = _leaving(core.next_hops, core.full)
    times_s = np.arange(BURST + 1) * core.packet_s + leaving.sum(axis=1) * core.sent_s
    bursts = _sizes(come, BURST + 1) if core.spaced else _bursts(come, rate_pps, times_s)
    shares = (bursts @ leaving)[1:]
    if more := rate_pps / core.next_hops * core.wait_s:
        # What comes for the same next hop while a frame waits joins it.
        joins = np.exp([n * math.log(more) - more - math.lgamma(n + 1) for n in range(core.full)])
        total = shares.sum()
        shares = np.convolve(shares, joins)[: core.full]
        shares[-1] += total - shares.sum()
    shares = np.maximum(shares, 0.0)
    return Frames(tuple(float(x) for x in shares / shares.sum()))
