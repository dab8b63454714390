# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the tests with a vhost-user device share."""

from typing import Any

from convoy.host.process import wait_for
from convoy.tester.convoy_gen import ConvoyGen

from .conftest import Device

# A busy machine may stop the device for long; the queues then hold what is offered.
RING = 8192
EASY = {"rate_pps": 20_000, "duration_s": 0.2, "drain_s": 5, "tolerance": 1}


def ports(device: Device, options: str = "") -> list[str]:
    return [f"vhost-user:{socket},ring={RING}{options}" for socket in device.sockets]


def until_it_forwards(tester: ConvoyGen) -> None:
    """The device takes a moment from its handshake to its first packet, and may drop until then."""

    def forwards() -> bool:
        total = tester.trial({"rate_pps": 10_000, "duration_s": 0.02, "tolerance": 1})["total"]
        return bool(total) and total["received_pkts"] == total["offered_pkts"] > 0

    wait_for(forwards, 60, "the device to forward")


def assert_all_came_back(result: dict[str, Any]) -> None:
    total = result["total"]
    assert result["ok"], result["reason"]
    assert total["offered_pkts"] == total["sent_pkts"] == total["received_pkts"] > 0
    for key in ("lost_pkts", "duplicated_pkts", "reordered_pkts", "misrouted_pkts", "corrupt_pkts"):
        assert total[key] == 0
    assert result["foreign_pkts"] == result["tester"]["ring_errors"] == 0
