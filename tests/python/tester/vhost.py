# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the tests with a vhost-user device share."""

from convoy.host.process import ProcessError, wait_for
from convoy.results.trial_result import TrialResult
from convoy.tester.convoy_gen import ConvoyGen

from .conftest import Device

# A busy machine may stop the device for long; the queues then hold what is offered.
RING = 8192
# It ends when all are sent, which a busy machine does later; 3960: full convoys of 9 and 22.
EASY = {"rate_pps": 20_000, "packets": 3960, "duration_s": 30, "drain_s": 5, "tolerance": 1}


def ports(device: Device, options: str = "") -> list[str]:
    return [f"vhost-user:{socket},ring={RING}{options}" for socket in device.sockets]


def until_it_forwards(tester: ConvoyGen) -> None:
    """The device takes a moment from its handshake to its first packet, and may drop until then."""
    result: TrialResult | None = None

    def forwards() -> bool:
        nonlocal result
        result = tester.trial({"rate_pps": 10_000, "duration_s": 0.02, "tolerance": 1})
        total = result.total
        return total is not None and total.received_pkts == total.offered_pkts > 0

    try:
        wait_for(forwards, 60, "the device to forward")
    except ProcessError as error:
        raise ProcessError(f"{error}; the last trial: {result}") from error


def assert_all_came_back(result: TrialResult) -> None:
    total = result.total
    assert result.ok, result.reason
    assert total is not None and result.tester is not None
    assert total.offered_pkts == total.sent_pkts == total.received_pkts > 0
    assert total.lost_pkts == total.duplicated_pkts == total.reordered_pkts == 0
    assert total.misrouted_pkts == total.corrupt_pkts == 0
    assert result.foreign_pkts == result.tester.ring_errors == 0
