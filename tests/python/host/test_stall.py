# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run that stands still is told, once, and no other."""

from convoy.host.stall import STALLED_S, Stall


def counts(received, ended=False):
    read = {"rx_packets": received, "tx_packets": 0, "read_pkts": received, "ended": ended}
    return {"ports": {"in": read, "out": {"rx_packets": 0, "tx_packets": received}}}


def test_a_capture_that_gets_no_further_is_told_once():
    stall = Stall()
    assert stall.update(0.0, counts(0)) == ""
    assert stall.update(1.0, counts(7)) == ""
    assert stall.update(1.0 + STALLED_S - 0.1, counts(7)) == ""
    output = stall.update(1.0 + STALLED_S, counts(7))
    assert output.startswith("no packet has moved for 10 s, and port in has read only 7 packets")
    assert stall.update(100.0, counts(7)) == ""


def test_what_moves_or_has_ended_is_no_stall():
    stall = Stall()
    for second in range(100):
        assert stall.update(float(second), counts(second // 9)) == ""
    for second in range(100, 200):
        assert stall.update(float(second), counts(50, ended=True)) == ""
