# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A wait that follows the load of the other end: a plain model of which stands behind it here."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoy.host.adaptive_wait import PACKETS_MIN, AdaptiveWait, FrameLimit, Load

PERIOD_S = 0.5
MOST_US = 20.0


@dataclass(frozen=True)
class Model:
    """Packets that come evenly spaced; frames and packets that cost their time behind."""

    frame_ns: float
    packet_ns: float = 50
    full: int = 23

    def load(self, pps: float, wait_us: float) -> Load:
        together = min(self.full, 1 + pps * wait_us / 1e6)
        cost_ns = self.frame_ns / together + self.packet_ns
        return Load(int(pps * PERIOD_S), pps * cost_ns / 1e9, cost_ns)


def waits(law: AdaptiveWait, model: Model, pps: float, periods: int) -> list[float]:
    """Return the wait after each of so many periods."""
    return [law.after(model.load(pps, law.wait_us)) for _ in range(periods)]


def test_nothing_waits_for_what_is_not_busy() -> None:
    law = AdaptiveWait(MOST_US, PERIOD_S)
    assert set(waits(law, Model(frame_ns=300), 1e6, 100)) == {0}  # 35 % busy


def test_it_waits_only_as_long_as_the_other_end_needs_it() -> None:
    law, model = AdaptiveWait(MOST_US, PERIOD_S), Model(frame_ns=500)
    assert model.load(1.5e6, 0).busy > 0.8
    assert model.load(1.5e6, 1).busy < 0.7 < model.load(1.5e6, 0).busy
    assert waits(law, model, 1.5e6, 100)[2:] == [1] * 98


def test_what_is_too_much_in_any_case_gets_the_longest_wait_that_saves() -> None:
    law, model = AdaptiveWait(MOST_US, PERIOD_S), Model(frame_ns=1000, packet_ns=500)
    # 2 million packets a second take 1 s without frames. A full frame takes 11 us to fill.
    after = waits(law, model, 2e6, 300)
    assert law.wait_us in (10, MOST_US)
    assert set(after[100:]) <= {10, MOST_US}
    assert max(waits(AdaptiveWait(5, PERIOD_S), model, 2e6, 100)) == 5


def test_a_wait_that_saves_nothing_is_taken_back_and_rarely_tried_again() -> None:
    law = AdaptiveWait(MOST_US, PERIOD_S)
    after = waits(law, Model(frame_ns=0, packet_ns=600), 2e6, 1000)
    assert after.count(0) > 950
    assert 0 < sum(now > before for before, now in pairwise(after)) < 25


def test_packets_too_rare_to_meet_do_not_wait() -> None:
    law = AdaptiveWait(MOST_US, PERIOD_S)
    # 10,000 a second: 100 us from one to the next.
    assert set(waits(law, Model(frame_ns=1e5), 1e4, 50)) == {0}


def test_the_wait_ends_with_the_load() -> None:
    law, model = AdaptiveWait(MOST_US, PERIOD_S), Model(frame_ns=500)
    waits(law, model, 1.8e6, 50)
    assert law.wait_us > 0
    assert waits(law, model, 2e5, 50)[-1] == 0
    waits(law, model, 1.8e6, 50)
    assert law.wait_us > 0
    assert law.after(Load(PACKETS_MIN - 1, 0, 0)) == 0
    waits(law, model, 1.8e6, 50)
    assert law.forget() == law.wait_us == 0


def test_what_is_not_known_changes_nothing() -> None:
    law, model = AdaptiveWait(MOST_US, PERIOD_S), Model(frame_ns=500)
    waits(law, model, 1.8e6, 50)
    before = law.wait_us
    assert law.after(None) == before > 0


@given(
    most=st.floats(0.5, 1000),
    busy_from=st.floats(0, 1),
    loads=st.lists(st.builds(Load, st.integers(0, 10**8), st.floats(0, 2), st.floats(0, 1e6))),
)
def test_no_load_makes_it_wait_longer_than_it_may(
    most: float, busy_from: float, loads: list[Load]
) -> None:
    law = AdaptiveWait(most, PERIOD_S, busy_from)
    for load in loads * 3:
        assert 0 <= law.after(load) == law.wait_us <= most


def test_a_limit_of_frames_is_busy_by_the_frames_that_go_there() -> None:
    sent = {"packets": 0, "frames": 0}
    limit = FrameLimit(1e6, PERIOD_S, lambda: dict(sent))
    assert limit.load() is None
    sent |= {"packets": 800_000, "frames": 400_000}
    assert limit.load() == Load(800_000, pytest.approx(0.8), pytest.approx(0.5))
    assert limit.load() == Load(0, 0, 0)
