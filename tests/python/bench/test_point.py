# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a trial's result says, and what is done after an invalid one."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from convoy.dut.base import Running
from convoy.dut.functions import read
from convoy.errors import ConvoyError
from convoy.host.run_queue import ThreadTime, pollers, run_queue_delay_ns, thread_times
from convoy.results.folder import RunFolder
from convoy.results.trials import Point
from convoy.run.host_state import HostState
from convoy.run.point import Measurement, specification
from convoy.run.point import Testbed as Bed
from convoy.run.verdict import LOSS_RATIO, load_not_reached, mrr_verdict_of, verdict_of
from convoy.run.workload import flows, function
from convoy.search.goals import goals
from convoy.tester.base import Tester
from convoy.tester.model import TrialSpec

from .results import result as made_up


def result(rate, loss, ok=True, suspect=None, own=None, **more):
    total = {
        "received_pps": rate * (1 - loss),
        "received_pkts": round(rate * (1 - loss)),  # more than in any trial
        "loss_ratio": loss,
        "mean_frame_bytes": 64,
        "offered_pkts": 1_000_000,
        "lost_pkts": round(1_000_000 * loss),
    }
    return made_up(ok, suspect=suspect, suspect_pkts=own, total=total, **more)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (result(1e6, 0.0), "passed"),
        (result(1e6, LOSS_RATIO), "passed"),
        (result(1e6, 0.0051), "failed"),
        (result(1e6, 0.3, ok=False), "invalid"),
        (result(1e6, 0.0, ok=False), "invalid"),
        (result(1e6, 0.3, suspect="paused"), "invalid"),
        (result(1e6, 0.001, suspect="paused"), "passed"),
        # The tester's own losses explain all but 0.5 %, and all but more than that.
        (result(1e6, 0.3, suspect="full", own=295_001), "invalid"),
        (result(1e6, 0.3, suspect="full", own=294_000), "failed"),
        (result(1e6, 0.3, own=0), "failed"),
        (made_up(total={"loss_ratio": 0.0, "corrupt_pkts": 1}), "failed"),
        (made_up(total={"loss_ratio": 0.0, "duplicated_pkts": 1}), "failed"),
        (made_up(total={"loss_ratio": 0.0, "misrouted_pkts": 1}, suspect="paused"), "failed"),
        (made_up(False), "invalid"),
        (made_up(total={"loss_ratio": None}), "invalid"),
    ],
)
def test_verdicts(given, verdict):
    assert verdict_of(given) == verdict


def test_losses_while_others_had_the_core_are_not_the_devices():
    lost = result(1e6, 0.02, duration_ns=100_000_000)
    # What came in 1.4 of 100 ms explains all but 0.6 %, what came in 1.6 all but 0.4 %.
    assert verdict_of(lost, 1_400_000) == "failed"
    assert verdict_of(lost, 1_600_000) == "invalid"
    assert verdict_of(result(1e6, 0.0, duration_ns=100_000_000), 600_000) == "passed"
    assert verdict_of(lost, 1_600_000, loss_ratio=0.0) == "failed"
    # Neither pause explains enough, both together do.
    both = result(1e6, 0.02, suspect="full", own=10_000, duration_ns=100_000_000)
    assert verdict_of(both, 400_000) == "failed"
    assert verdict_of(both, 510_000) == "invalid"


def test_losses_are_what_overload_is_for_but_pauses_lower_what_comes_through():
    lost = result(1e6, 0.4, suspect="full", duration_ns=100_000_000)
    assert mrr_verdict_of(lost, 5_000_000) == "passed"
    assert mrr_verdict_of(lost, 5_000_001) == "invalid"
    assert mrr_verdict_of(lost.model_copy(update={"ok": False})) == "invalid"
    assert mrr_verdict_of(made_up(total={"duplicated_pkts": 1})) == "failed"
    assert mrr_verdict_of(made_up(False, total={"duplicated_pkts": 1})) == "invalid"


@pytest.mark.parametrize(
    ("code", "unsent", "descheduled_ns", "expected"),
    [
        (None, 0, 0, False),
        ("peer_gone", 100_000, 0, False),
        ("rate_not_reached", 100_000, 0, True),  # a tenth
        ("rate_not_reached", 100_000, 4_900_000, True),
        ("rate_not_reached", 100_000, 5_000_000, False),  # half of that time, others ran
    ],
)
def test_a_rate_is_not_offered_where_no_pause_explains_it(code, unsent, descheduled_ns, expected):
    given = made_up(
        code is None,
        reason_code=code,
        duration_ns=100_000_000,
        total={"offered_pkts": 1_000_000, "unsent_pkts": unsent},
        tester={"lost_time": {"descheduled_ns": descheduled_ns}},
    )
    assert load_not_reached(given) is expected


def test_who_polls_is_waited_for_and_others_are_not(tmp_path):
    def times(*texts):
        for thread, text in enumerate(texts, 7):
            (tmp_path / f"proc/7/task/{thread}").mkdir(parents=True, exist_ok=True)
            (tmp_path / f"proc/7/task/{thread}/schedstat").write_text(text)
        return thread_times([7, 4], tmp_path)

    before = times("9000 30 2\n", "100 5 1\n", "100 6 1\n", "100 7 1\n")
    after = times("9400 930 2\n", "1100 25 1\n", "600 46 1\n", "")
    assert before[7] == ThreadTime(9000, 30)
    assert set(after) == {7, 8, 9}
    assert pollers(before, after) == (8, 9)  # 1000 and 500; another ran 400, one has ended
    assert run_queue_delay_ns(before, after) == 20 + 40
    assert pollers({}, {}) == ()
    assert run_queue_delay_ns(before, {}) == 0


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
    """Knows the device; the first `pauses` trials of every rate are invalid."""

    def __init__(self, device, pauses=0, baseline_pps=30e6):
        self.device, self.pauses, self.seen = device, pauses, []
        self._baseline_pps = baseline_pps

    @property
    def baseline_pps(self):
        return self._baseline_pps

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


POINT = Point(device="convoy", functions=("router",), size="64", repeat=0)


def bed(tester, folder):
    return Bed(tester, tester.device, folder, 0, HostState())


def measure(tmp_path, tester, guess=None, kept=()):
    folder = RunFolder(tmp_path)
    tmp_path.mkdir(exist_ok=True)
    measurement = Measurement(POINT, bed(tester, folder), earlier=kept)
    search = measurement.search(goals(["pdr"], "quick"), guess)
    measurement.at(search.rate("pdr") / 2, "50% of PDR", 0.1)
    return search, list(folder.trials())


def near(search):
    return 8e6 / 1.06 <= search.rate("pdr") <= 8.05e6


def test_a_baseline_rate_of_a_slower_moment_is_no_limit(tmp_path):
    # Its MRR is 7 Mpps; of that it can offer 95 % evenly paced, of its baseline rate less.
    search, _ = measure(tmp_path, Bench(Device(), baseline_pps=5e6))
    assert search.goals[0].lower_bound
    assert search.rate("pdr") == pytest.approx(0.95 * 7e6, rel=0.02)


def test_a_point_is_found_and_every_trial_kept(tmp_path):
    tester = Bench(Device())
    search, kept = measure(tmp_path, tester)
    assert near(search)
    assert search.mrr_pps == 7e6
    assert len(kept) == len(tester.seen)
    assert [kept[0].purpose, kept[-1].purpose] == ["mrr", "latency"]
    assert kept[-1].rate_pps == search.rate("pdr") / 2


@pytest.mark.parametrize("what", ["duplicated_pkts", "corrupt_pkts", "misrouted_pkts"])
def test_a_rate_at_which_wrong_packets_come_meets_no_goal(tmp_path, what):
    class Wrong(Bench):
        def trial(self, specification):
            given = super().trial(specification)
            rate = TrialSpec.model_validate(specification).rate_pps
            if rate != "max" and rate <= 3e6:
                return given
            return given.model_copy(update={"total": given.total.model_copy(update={what: 5})})

    search, kept = measure(tmp_path, Wrong(Device()))
    assert 3e6 / 1.06 <= search.rate("pdr") <= 3e6
    assert search.mrr_pps is None
    assert {t.rate_pps > 3e6 for t in kept if t.verdict == "failed" and t.rate_pps} == {True}


def test_an_invalid_trial_is_repeated_and_counted(tmp_path):
    tester = Bench(Device(), pauses=3)
    search, kept = measure(tmp_path, tester)
    assert near(search)
    first = tester.seen[1][0]
    assert [rate for rate, _ in tester.seen].count(first) >= 4
    assert sum(trial.verdict == "invalid" for trial in kept) == search.invalid + 3
    assert search.invalid > 0


def test_a_guess_is_not_trusted_when_more_came_through(tmp_path):
    search, _ = measure(tmp_path, Bench(Device()), guess=0.3e6)
    assert near(search)


def test_trials_that_an_interrupted_run_kept_are_not_done_again(tmp_path):
    whole, kept = measure(tmp_path / "one", Bench(Device()))
    tester = Bench(Device())
    search, again = measure(tmp_path / "two", tester, kept=kept[:4])
    assert search.goals == whole.goals
    assert len(tester.seen) == len(kept) - 4
    assert [t.rate_pps for t in again] == [t.rate_pps for t in kept[4:]]


def test_a_latency_trial_in_which_others_ran_is_no_result(tmp_path):
    class Timed(Bench):
        def trial(self, specification):
            paused = made_up(tester={"lost_time": {"descheduled_ns": 2_000_000}})
            own = {"duration_ns": 100_000_000, "tester": paused.tester}
            return super().trial(specification).model_copy(update=own)

    tester = Timed(Device())
    measurement = Measurement(POINT, bed(tester, RunFolder(tmp_path)))
    assert measurement.at(1e6, "idle", 0.1).verdict == "invalid"
    assert measurement.trials == 5


def test_a_device_that_dies_is_named(tmp_path):
    with pytest.raises(ConvoyError, match="convoy: ended in the middle of a trial"):
        measure(tmp_path, Bench(Device(lives=3)))


def test_specifications_are_what_the_tester_takes():
    for size in ("64", "1500", "imix"):
        for rate in (None, 1e6):
            TrialSpec.model_validate(specification(size, rate, 0.1))


def test_traffic_meets_what_functions_know():
    firewall, router = read(function("firewall", 10)), read(function("router", 10))
    traffic = flows()
    assert IPv4Network(traffic["dst_ip"]).subnet_of(firewall.rules[-1].dst)
    assert int(traffic["dst_port"]) in firewall.rules[-1].dport
    first = int(IPv4Network(traffic["dst_ip"])[0])
    met = {
        route.prefix
        for route in router.routes
        for i in range(traffic["count"])
        if IPv4Address(first + i) in route.prefix
    }
    assert len(met) == len(router.routes) == 10
