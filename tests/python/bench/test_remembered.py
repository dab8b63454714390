# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Before a rate is measured: translated packets are right, and the device knows all flows."""

import pytest

from convoy.errors import ConvoyError
from convoy.run.remembered import CHECKED_FLOWS, PASSES, check_translation, fill
from convoy.tester.base import Tester
from convoy.tester.model import read_spec

from .results import result


class Translator(Tester):
    """Remembers flows, at most so many in a trial; what it has no time for is lost."""

    def __init__(self, most=1 << 30, pps=1e6, wrong=None, loses=0.0):
        self.most, self.pps, self.wrong, self.loses = most, pps, wrong or {}, loses
        self.known = set()
        self.specs = []

    baseline_pps = None

    def trial(self, specification):
        spec = read_spec(specification)
        self.specs.append(spec)
        sent = min(spec.packets, self.most)
        first = spec.flows.first
        lost = round(sent * self.loses)
        if spec.rate_pps == "max" or spec.rate_pps > self.pps:
            lost = sent // 3
        self.known |= {(first + i) % spec.flows.count for i in range(sent - lost)}
        total = {"sent_pkts": sent, "received_pkts": sent - lost, "lost_pkts": lost,
                 "received_pps": self.pps}  # fmt: skip
        translated = {"checked_pkts": 2 * sent, "wrong_pkts": self.wrong}
        more = {"translated": translated} if spec.translated else {}
        return result(total=total, **more)


def test_a_packet_that_is_wrong_ends_the_device_run_with_what_is_wrong():
    tester = Translator(wrong={"source": 3, "checksum": 1, "length": 0})
    words = "of 1000 packets 3 with a wrong source, 1 with a wrong checksum"
    with pytest.raises(ConvoyError, match=words):
        check_translation(tester, "203.0.113.0/24", "udp", "x")


def test_packets_that_are_right_pass_and_answers_are_asked_for():
    tester = Translator()
    check_translation(tester, "203.0.113.0/24", "tcp", "x")
    (spec,) = tester.specs
    assert spec.answers
    assert spec.translated == "203.0.113.0/24"
    assert spec.flows.protocol == "tcp"
    assert spec.size >= 72


def test_answers_that_do_not_come_are_said():
    tester = Translator(loses=0.5)
    words = f"only {CHECKED_FLOWS // 2} of {CHECKED_FLOWS} packets were answered"
    with pytest.raises(ConvoyError, match=words):
        check_translation(tester, "203.0.113.0/24", "udp", "x")
    begins = [spec.flows.first for spec in tester.specs]
    assert len(set(begins)) == len(begins)  # other flows each time


def test_all_flows_are_known_in_the_end_also_to_a_slow_device():
    tester = Translator(most=30_000)
    fill(tester, 65_536, "x")
    assert len(tester.known) == 65_536
    assert all(spec.flows.order == "sequential" for spec in tester.specs)


def test_a_device_that_does_not_learn_them_is_given_up():
    tester = Translator(loses=0.1)
    with pytest.raises(ConvoyError, match="only a part of 1,000 flows"):
        fill(tester, 1000, "x")
    assert len(tester.specs) == PASSES
