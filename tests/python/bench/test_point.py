# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a trial's result says, and what is done after a spoilt one."""

import pytest

from convoy.dut.base import Running
from convoy.errors import ConvoyError
from convoy.host.waited import waited_ns
from convoy.results.trials import RunFolder
from convoy.run.point import LOSS_RATIO, Measurement, Point, judge, specification
from convoy.run.workload import FIREWALL, PREFIXES, ROUTER
from convoy.search.bisection import Verdict
from convoy.tester.base import Tester
from convoy.tester.model import TrialSpec


def result(rate, loss, ok=True, suspect=None):
    total = {"received_pps": rate * (1 - loss), "loss_ratio": loss, "mean_frame_bytes": 64}
    return {"ok": ok, "suspect": suspect, "total": total}


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (result(1e6, 0.0), Verdict.PASSED),
        (result(1e6, LOSS_RATIO), Verdict.PASSED),
        (result(1e6, 0.0051), Verdict.FAILED),
        (result(1e6, 0.3, ok=False), Verdict.SPOILT),
        (result(1e6, 0.0, ok=False), Verdict.SPOILT),
        (result(1e6, 0.3, suspect="paused"), Verdict.SPOILT),
        (result(1e6, 0.001, suspect="paused"), Verdict.PASSED),
        ({"ok": False, "total": None}, Verdict.SPOILT),
        ({"ok": True, "total": {"loss_ratio": None}}, Verdict.SPOILT),
    ],
)
def test_verdicts(given, verdict):
    assert judge(given) is verdict


def test_losses_while_others_had_the_core_are_not_the_devices():
    lost = {**result(1e6, 0.02), "duration_ns": 100_000_000}
    assert judge(lost, waited_ns=400_000) is Verdict.FAILED
    assert judge(lost, waited_ns=600_000) is Verdict.SPOILT
    assert judge({**result(1e6, 0.0), "duration_ns": 100_000_000}, 600_000) is Verdict.PASSED


def test_waited_is_summed_over_threads_and_what_ended_is_left_out(tmp_path):
    for thread, text in (("7", "500 30 2\n"), ("8", "1 12 1\n"), ("9", "")):
        (tmp_path / "proc/7/task" / thread).mkdir(parents=True)
        (tmp_path / "proc/7/task" / thread / "schedstat").write_text(text)
    assert waited_ns(7, tmp_path) == 42
    assert waited_ns(8, tmp_path) == 0


class Device(Running):
    """Keeps up with 8 Mpps; ends after so many trials."""

    def __init__(self, lives=1000):
        self.lives = lives

    def ready(self, deadline_s):
        pass

    def alive(self):
        return self.lives > 0

    def stop(self):
        pass


class Bench(Tester):
    """Knows the device; the first `pauses` trials of every rate are spoilt."""

    def __init__(self, device, pauses=0):
        self.device, self.pauses, self.seen = device, pauses, []

    @property
    def ceiling_pps(self):
        return 30e6

    def trial(self, specification):
        spec = TrialSpec.model_validate(specification)
        self.device.lives -= 1
        earlier = sum(rate == spec.rate_pps for rate, _ in self.seen)
        self.seen.append((spec.rate_pps, spec.duration_s))
        if spec.rate_pps == "max":
            return result(7e6, 0.0)
        if earlier < self.pauses:
            return result(spec.rate_pps, 0.2, ok=False)
        return result(spec.rate_pps, max(0.0, 1 - 8e6 / spec.rate_pps))


def measure(tmp_path, tester, guess=None):
    folder = RunFolder(tmp_path)
    point = Point(0, "convoy", ("router",), "64")
    found = Measurement(point, tester, tester.device, folder, 0.1).search(guess)
    return found, list(folder.trials())


def test_a_point_is_found_and_every_trial_kept(tmp_path):
    tester = Bench(Device())
    found, kept = measure(tmp_path, tester)
    assert 8e6 / 1.06 <= found.rate_pps <= 8.05e6
    assert len(kept) == len(tester.seen)
    assert [kept[0].purpose, kept[-1].purpose] == ["overload", "latency"]
    assert kept[-1].rate_pps == found.rate_pps / 2


def test_a_spoilt_trial_is_repeated_shorter(tmp_path):
    tester = Bench(Device(), pauses=3)
    found, _ = measure(tmp_path, tester)
    assert 8e6 / 1.06 <= found.rate_pps <= 8.05e6
    first = tester.seen[1][0]
    assert [s for rate, s in tester.seen if rate == first] == [0.1, 0.05, 0.025, 0.025]


def test_a_guess_is_not_trusted_when_more_came_through(tmp_path):
    found, _ = measure(tmp_path, Bench(Device()), guess=0.3e6)
    assert 8e6 / 1.06 <= found.rate_pps <= 8.05e6


def test_a_device_that_dies_is_named(tmp_path):
    with pytest.raises(ConvoyError, match="convoy: ended in the middle of a trial"):
        measure(tmp_path, Bench(Device(lives=3)))


def test_specifications_are_what_the_tester_takes():
    for size in ("64", "1500", "imix"):
        for rate in (None, 1e6):
            TrialSpec.model_validate(specification(size, rate, 0.1))


def test_the_workload_has_ten_routes_and_rules_that_cover_its_flows():
    assert len(PREFIXES) == len(ROUTER.config["routes"]) == len(FIREWALL.config["rules"]) == 10
