# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The guest that attacks start from is one that works: else they would prove nothing."""

import pytest

from convoy.host.process import wait_for

from .front_end import DEADLINE_S
from .guest import RING_PACKED
from .targets import Target


@pytest.mark.parametrize("packed", [False, True], ids=["split", "packed"])
def test_packets_come_and_go(target: Target, packed: bool):
    guest = target.guest(packed=packed)
    assert guest.has(RING_PACKED) == packed
    guest.start()
    came: list[bytes] = []

    def came_through() -> bool:
        target.feed(64)
        came.extend(guest.received())
        return len(came) >= 2 * guest.rx.size

    wait_for(came_through, DEADLINE_S, "packets to the guest")
    assert set(came) == {bytes(60)}
    sent = 0

    def taken() -> bool:
        nonlocal sent
        sent += guest.send([bytes(60)] * 64)
        return sent >= 2 * guest.tx.size and guest.idle()

    wait_for(taken, DEADLINE_S, "the guest's packets to be taken")
