# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Before a device with stateful functions is measured: its packets are right, and it knows all
flows.
"""

from collections.abc import Mapping
from typing import Any

from convoy.errors import ConvoyError
from convoy.results.trial_result import TrialResult
from convoy.run.workload import stateful_flows
from convoy.tester.base import Tester

CHECKED_FLOWS = 500
CHECKED_PPS = 2_000.0
CHECKS = 10  # until nearly all come back: a switch's first packets wait for its slow path
PASS_S = 30.0
PASSES = 8
LOST_RATIO = 0.001  # of a pass, after which a device knows the flows
CHECK_LOST_RATIO = 0.01
DRAIN_S = 0.2


def _trial(tester: Tester, flows: Mapping[str, Any], packets: int, **more: Any) -> TrialResult:
    return tester.trial(
        {
            "size": 72 if flows["protocol"] == "tcp" else 64,
            "flows": flows,
            "packets": packets,
            "answers": True,
            "drain_s": DRAIN_S,
            **more,
        }
    )


def check_translation(tester: Tester, pool: str, protocol: str, what: str) -> None:
    """Check addresses, ports, lengths and checksums of packets, and of the answers to them.

    pool: addresses that sources may have outside. Raises ConvoyError: a packet is wrong, or answers
    do not come back.
    """
    answered = ""
    for i in range(CHECKS):
        # Others each time: a connection that was half opened is not opened again by a SYN.
        flows = stateful_flows(CHECKS * CHECKED_FLOWS, protocol, i * CHECKED_FLOWS)
        result = _trial(tester, flows, CHECKED_FLOWS, rate_pps=CHECKED_PPS, translated=pool)
        checked, total = result.translated, result.total
        if checked is None or total is None:
            raise ConvoyError(f"{what}: packets were not checked: {result.reason or 'no result'}")
        wrong = {name: count for name, count in checked.wrong_pkts.items() if count}
        if wrong:
            listed = ", ".join(f"{count} with a wrong {name}" for name, count in wrong.items())
            raise ConvoyError(f"{what}: of {checked.checked_pkts} packets {listed}")
        if result.ok and total.lost_pkts <= CHECK_LOST_RATIO * CHECKED_FLOWS:
            return
        answered = f"{total.received_pkts} of {total.sent_pkts}"
    raise ConvoyError(f"{what}: {protocol}: only {answered} packets were answered")


def fill(tester: Tester, count: int, what: str) -> None:
    """Send each flow's packet, and its answer, until the device knows all. Raises ConvoyError."""
    first = lost = 0
    rate: float | str = "max"
    for _ in range(PASSES):
        flows = stateful_flows(count, first=first, far=False)
        result = _trial(tester, flows, count - first, rate_pps=rate, duration_s=PASS_S)
        total = result.total
        if total is None or not total.sent_pkts:
            raise ConvoyError(f"{what}: takes no packets: {result.reason or 'no result'}")
        first, lost = first + total.sent_pkts, lost + total.lost_pkts
        if first < count:
            continue
        if lost <= LOST_RATIO * count:
            return
        first, came = 0, max(1000.0, total.received_pps or 0.0)
        rate, lost = came / 2, 0
    raise ConvoyError(f"{what}: only a part of {count:,} flows could be set up in {PASSES} passes")
