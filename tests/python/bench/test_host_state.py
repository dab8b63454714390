# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Degraded host state: what is waited for, repeated, excluded and reported."""

from dataclasses import replace

import pytest

from convoy.dut.base import Running
from convoy.report.compare import compare
from convoy.report.findings import findings
from convoy.report.gains import bound, gain
from convoy.report.rates import rows
from convoy.report.run_data import read
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.host_state import (
    CHANGED,
    attributed,
    degraded_rounds,
    excluded_rounds,
    figures,
    nominal,
    slower,
)
from convoy.results.trial_result import SelfTest
from convoy.results.trials import GoalResult, Point, Search, Trial
from convoy.run.adaptive_repetition import ROUNDS_MAX, uncertain
from convoy.run.host_state import FIRST_S, SHARE, WAIT_S, HostState
from convoy.run.point import Measurement
from convoy.run.point import Testbed as Bed
from convoy.search.goals import goals
from convoy.tester.base import Tester

from .results import latency, plan, probe, result

NEAR, FAR = 70.0, 300.0


def probed(*args, **more):
    return result(probe=probe(*args, **more))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ({"before_ns": None, "after_ns": None}, {}),
        ({"before_ns": 70.0, "after_ns": None}, {"round_trip": 70.0}),
        ({"before_ns": 300.0, "after_ns": 70.0}, {"round_trip": 300.0}),
        (
            probe(70, 480, 490),
            {"round_trip": 70.0, "tester_work": 480.0, "device_work": 490.0, "both_work": 480.0},
        ),
    ],
)
def test_what_a_trial_tells_of_the_machine(given, expected):
    assert figures(result(probe=given)) == expected


def test_a_core_that_was_slowed_down_on_purpose_tells_nothing_of_others():
    assert figures(probed(70, 480, 960), cpu_speed=0.5) == {
        "round_trip": 70.0,
        "tester_work": 480.0,
    }


@pytest.mark.parametrize(
    ("purpose", "verdict", "expected"),
    [
        ("search", "failed", {"round_trip": FAR}),
        ("search", "passed", {}),  # kept up in spite of it
        ("latency", "passed", {"round_trip": FAR}),
        ("mrr", "passed", {"round_trip": FAR}),
        ("search", "invalid", None),  # counts for nothing
    ],
)
def test_what_is_attributed_to_a_trial(purpose, verdict, expected):
    one = trial(0, FAR, purpose=purpose).model_copy(update={"verdict": verdict})
    assert attributed(one) == expected


@pytest.mark.parametrize(
    ("what", "lines", "expected"),
    [
        ("not probed", [], {}),
        ("always the same", [70.0] * 3, {"round_trip": 70.0}),
        ("one outlier below", [20.0, *[70.0] * 40], {"round_trip": 70.0}),
        ("fast for a tenth of the time", [*[70.0] * 10, *[300.0] * 90], {"round_trip": 70.0}),
        ("all of it slow", [300.0, 310.0], {"round_trip": 300.0}),
    ],
)
def test_the_nominal_state(what, lines, expected):
    assert nominal({"round_trip": line} for line in lines) == expected, what


@pytest.mark.parametrize(
    ("what", "given", "placed", "changed"),
    [
        ("fast", probe(90, 490, 500), {}, {}),
        ("far from each other", probe(280), {"round_trip": 4.0}, {"round_trip": 4.0}),
        ("a noisy neighbour beside the tester", probe(70, 720), {}, {"tester_work": 1.5}),
        (
            "a noisy neighbour beside the device",
            probe(70, 480, 720),
            {"device_work": 1.5},
            {"device_work": 1.5},
        ),
        (
            "both are one core",
            probe(66, 960, 960),
            {"both_work": 2.0, "device_work": 2.0},
            {"tester_work": 2.0, "device_work": 2.0},
        ),
        ("not known", None, {}, {}),
    ],
)
def test_phases(what, given, placed, changed):
    fast = figures(probed(70))
    assert slower(figures(result(probe=given)), fast) == placed, what
    assert slower(figures(result(probe=given)), fast, CHANGED) == changed, what


@pytest.mark.parametrize(
    ("what", "lines", "slow", "out"),
    [
        ("fast", {0: [70, 90], 1: [139, 70]}, set(), set()),
        ("slow, and two fast", {0: [300] * 4, 1: [70], 2: [70]}, {0}, {0}),
        ("slow, and one fast", {0: [300] * 4, 1: [70], 2: [300]}, {0, 2}, set()),
        ("a quarter of its trials", {0: [300, 70, 70, 70], 1: [70], 2: [70]}, {0}, {0}),
        ("less", {0: [300, 70, 70, 70, 70], 1: [70], 2: [70]}, set(), set()),
        ("not known", {0: [], 1: [], 2: []}, set(), set()),
    ],
)
def test_rounds_that_are_left_out(what, lines, slow, out):
    states = {repeat: [{"round_trip": line} for line in some] for repeat, some in lines.items()}
    result = degraded_rounds(states, {"round_trip": NEAR})
    assert (result, excluded_rounds(result, lines)) == (slow, out), what


class World:
    """Time that passes where somebody sleeps or probes; a host that is nominal from a time on."""

    def __init__(self, near_at=0.0, slow=None):
        self.now, self.near_at, self.probes = 0.0, near_at, 0
        self.slow = slow or probe(FAR)

    @property
    def probe(self):
        return probe(NEAR) if self.now >= self.near_at else self.slow

    def sleep(self, seconds):
        self.now += seconds

    def probe_host(self):
        self.probes += 1
        self.now += 0.01
        return figures(result(probe=self.probe))

    def host_state(self, known=True):
        result = HostState(lambda: self.now, self.sleep)
        for _ in range(20 if known else 0):
            result.learn(figures(probed(NEAR)))
        return result


@pytest.mark.parametrize(
    ("near_at", "near", "least_s", "most_s"),
    [(0.0, True, 0.0, 0.1), (1.0, True, 1.0, 1.2), (60.0, False, WAIT_S, WAIT_S + 0.2)],
)
def test_the_wait_is_bounded(near_at, near, least_s, most_s):
    world = World(near_at)
    assert world.host_state().wait(world.probe_host) is near
    assert least_s <= world.now <= most_s


def test_all_waits_together_are_bounded():
    world = World(near_at=1e9)
    host_state = world.host_state()
    for _ in range(100):
        assert not host_state.wait(world.probe_host)
    assert world.now <= (FIRST_S + 100 * 0.2) / (1 - SHARE)


def test_nothing_is_probed_where_nothing_is_known():
    world = World(near_at=1e9)
    assert world.host_state(known=False).wait(world.probe_host)
    assert world.probes == 0


class Forwarding(Running):
    """A device of which nobody asks anything."""

    def ready(self, deadline_s):
        pass

    def alive(self):
        return True

    def stop(self):
        pass


class Moved(Tester):
    """Its device keeps up with 8 Mpps, and with half of that on a degraded host.

    It is so for a second, from one trial on.
    """

    baseline_pps = 30e6

    def __init__(self, world, trials):
        self.world, self.left = world, trials

    def trial(self, specification):
        if specification["duration_s"] <= 0.001:  # a probe
            self.world.probe_host()
            return result(probe=self.world.probe)
        self.left -= 1
        if self.left == 0:
            self.world.near_at = self.world.now + 1.0
        slow = self.world.now < self.world.near_at
        rate, limit = specification["rate_pps"], 4e6 if slow else 8e6
        loss = 0.3 if rate == "max" else max(0.0, 1 - limit / rate)
        total = {
            "received_pps": limit,
            "received_pkts": round(limit),  # more than in any trial
            "loss_ratio": loss,
            "offered_pkts": 1_000_000,
            "lost_pkts": round(1_000_000 * loss),
        }
        return result(total=total, probe=self.world.probe)


def measurement(tmp_path, tester, world):
    point = Point(device="convoy", functions=(), size="64", repeat=0)
    folder = RunFolder(tmp_path)
    return Measurement(point, Bed(tester, Forwarding(), folder, 0, world.host_state())), folder


@pytest.mark.parametrize("trials", [2, 4, 6])
@pytest.mark.parametrize("slow", [probe(FAR), probe(NEAR, device=720.0)])
def test_a_search_waits_for_an_episode_to_pass_and_finds_the_same(tmp_path, trials, slow):
    world = World(slow=slow)
    measured, folder = measurement(tmp_path, Moved(world, trials), world)
    search = measured.search(goals(["pdr"], "quick"), None)
    assert 8e6 / 1.06 <= search.rate("pdr") <= 8.05e6
    # What passed in spite of it has passed, and nothing is held against the round.
    met = [trial for trial in folder.trials() if trial.result.probe == slow]
    assert met and all(trial.verdict in ("invalid", "passed") for trial in met)
    assert not any(slower(one, figures(probed(NEAR))) for one in measured.figures)
    if any(trial.verdict == "invalid" for trial in met):
        assert world.now >= 1.0  # it was waited for


def test_a_degraded_state_that_stays_is_measured_as_it_is(tmp_path):
    world = World()
    tester = Moved(world, 4)
    measured, _ = measurement(tmp_path, tester, world)
    stays = tester.trial

    def trial(specification):
        world.near_at = 1e9 if tester.left <= 1 else world.near_at
        return stays(specification)

    tester.trial = trial
    search = measured.search(goals(["pdr"], "quick"), None)
    assert search.goals[0].regular
    assert search.rate("pdr") <= 4.03e6
    assert search.invalid == 1
    assert degraded_rounds({0: measured.figures}, figures(probed(NEAR))) == {0}
    assert world.now < 3 * WAIT_S


def test_a_search_that_begins_far_apart_is_measured_as_it_is(tmp_path):
    world = World(near_at=1e9)
    measured, _ = measurement(tmp_path, Moved(world, 1000), world)
    search = measured.search(goals(["pdr"], "quick"), None)
    assert 4e6 / 1.06 <= search.rate("pdr") <= 4.03e6


def trial(repeat, line, rate=5e6, load="50% of PDR", purpose="latency", median=2000):
    total = {"received_pps": rate, "latency": latency(median, 9000, [(median, 100)])}
    return Trial(
        point=Point(scenario="x", device="convoy", functions=(), size="64", repeat=repeat),
        purpose=purpose,
        load=load,
        rate_pps=rate,
        duration_s=0.1,
        verdict="passed",
        commands=(),
        result=result(total=total, probe={"before_ns": line, "after_ns": line}),
    )


def search(repeat, rate):
    goal = GoalResult(goal="pdr", rate_pps=rate, lower_pps=rate, upper_pps=rate, regular=True)
    point = Point(scenario="x", device="convoy", functions=(), size="64", repeat=repeat)
    return Search(point=point, outcome="measured", goals=(goal,))


def test_a_row_is_of_the_rounds_nearby():
    trials = [trial(0, NEAR), trial(1, FAR, 2e6, median=9000), trial(2, NEAR, 6e6)]
    searches = [search(0, 10e6), search(1, 4e6), search(2, 12e6)]
    (row,) = rows(trials, searches)
    assert row.rounds == {0: 10e6, 2: 12e6}
    assert row.delays[0].p50s_ns == (2000, 2000)
    assert (row.degraded, row.excluded_rounds, row.repeats, row.trials) == ({1}, 1, 3, 3)
    assert row.host_state == {"round_trip": NEAR}
    assert row.irregular[0] == "1 of 3 rounds on a degraded host: excluded"
    failed = Search(point=searches[1].point, outcome="failed", why="gone")
    (row,) = rows(trials, [searches[0], failed, searches[2]])
    # A failed device always counts.
    assert (row.excluded_rounds, row.failed) == (1, ("gone",))
    (row,) = rows([*trials[:2], trial(2, FAR)], searches)
    assert row.rounds == {0: 10e6, 1: 4e6, 2: 12e6}
    assert (row.degraded, row.excluded_rounds) == ({1, 2}, 0)
    assert row.irregular[0].endswith("kept, for want of others")


def test_a_degraded_round_is_not_compared_with_a_nominal_one():
    fast = rows([trial(i, NEAR) for i in range(3)], [search(i, 10e6) for i in range(3)])[0]
    slow = rows(
        [trial(0, NEAR), trial(1, FAR), trial(2, FAR)],
        [search(0, 20e6), search(1, 5e6), search(2, 5e6)],
    )[0]
    # For want of others they are kept.
    assert (set(slow.rounds), slow.excluded_rounds) == ({0, 1, 2}, 0)
    assert gain(slow, fast) == (2.0, 2.0, 2.0)
    assert gain(slow, slow) == (1.0, 1.0, 1.0)


def test_a_gain_over_a_bound_is_one_and_of_two_bounds_is_not_known():
    exact, other = (
        rows([trial(i, NEAR) for i in range(3)], [search(i, rate) for i in range(3)])[0]
        for rate in (10e6, 20e6)
    )
    capped = replace(other, lower_bound=True)
    assert (gain(exact, capped), bound(exact, capped)) == ((0.5, 0.5, 0.5), "≤ ")
    assert (gain(capped, exact), bound(capped, exact)) == ((2.0, 2.0, 2.0), "≥ ")
    assert (gain(other, exact), bound(other, exact)) == ((2.0, 2.0, 2.0), "")
    assert gain(capped, replace(exact, lower_bound=True)) is None


def test_rates_that_nobody_searched_for_are_left_out_as_well():
    trials = [
        trial(repeat, line, load=load, median=round(30 * line))
        for repeat, line in ((0, NEAR), (1, FAR), (2, NEAR))
        for load in ("100 pps", "1 Mpps")
    ]
    (row,) = rows(trials, [])
    assert [delay.p50s_ns for delay in row.delays] == [(2100, 2100)] * 2
    # One load alone, of a round that was near otherwise.
    more = [trial(repeat, NEAR, load=f"{i} Mpps") for repeat in range(3) for i in range(8)]
    far = [trial(repeat, (NEAR, NEAR, FAR)[repeat], load="9 Mpps") for repeat in range(3)]
    (row,) = rows([*more, *far], [])
    assert not row.degraded
    assert [len(delay.p50s_ns) for delay in row.delays] == [*[3] * 8, 2]


def run(path, rounds, tester=None, baseline=None):
    folder = RunFolder(path)
    folder.create(plan())
    folder.write_host(Host(self_test=baseline and SelfTest(baseline_pps=baseline)))
    for repeat, (rate, line) in enumerate(rounds):
        one = trial(repeat, line, rate)
        if tester is not None:
            beside = one.result.model_copy(update={"probe": probe(line, tester)})
            one = one.model_copy(update={"result": beside})
        folder.append(one)
        folder.append(search(repeat, rate))
    return read([path])


@pytest.mark.parametrize(
    ("what", "one", "other", "agrees", "times"),
    [
        ("both near", [(5e6, NEAR)] * 3, [(5e6, NEAR)] * 3, True, None),
        ("both far", [(2e6, FAR)] * 3, [(5e6, FAR)] * 3, False, None),
        ("one far", [(5e6, NEAR)] * 3, [(2e6, FAR)] * 3, None, FAR / NEAR),
        ("the other", [(2e6, FAR)] * 3, [(5e6, NEAR)] * 3, None, NEAR / FAR),
        ("a round far", [(5e6, NEAR)] * 3, [*[(5e6, NEAR)] * 2, (2e6, FAR)], True, None),
        ("not probed", [(5e6, None)] * 3, [(2e6, FAR)] * 3, False, None),
    ],
)
def test_runs_compare_only_where_the_machine_was_the_same(
    tmp_path, what, one, other, agrees, times
):
    result = compare(run(tmp_path / "one", one), run(tmp_path / "other", other))
    (point,) = result["points"]
    changed = {} if times is None else {"round_trip": pytest.approx(times)}
    assert (point["within_noise"], point["host_state_changed"]) == (agrees, changed), what
    assert ("not compared" in result["summary"]) == (times is not None)
    if times is not None:
        output = f"4.3 times as long from core to core in the {'first' if times < 1 else 'second'}"
        assert output in result["summary"]


@pytest.mark.parametrize(
    ("what", "baseline", "agrees"),
    [("far from its limit", 50e6, True), ("near it", 9e6, None), ("unknown", None, None)],
)
def test_the_testers_core_matters_only_near_the_testers_limit(tmp_path, what, baseline, agrees):
    rounds = [(5e6, NEAR)] * 3
    one = run(tmp_path / "one", rounds, 480.0, baseline)
    other = run(tmp_path / "other", rounds, 720.0, baseline)
    assert compare(one, other)["points"][0]["within_noise"] is agrees, what


@pytest.mark.parametrize(
    ("what", "other", "agrees", "tells", "words"),
    [
        ("the same", (5.0, 5.1, 4.9), True, True, "at each of these a change by 25%"),
        (
            "twice as fast, much noise",
            (5.0, 10.0, 16.0),
            True,
            False,
            "at none of these a change by 25%",
        ),
        ("half as fast, much noise", (1.5, 2.5, 5.0), True, False, "they are underpowered"),
        ("half as fast", (2.4, 2.5, 2.6), False, True, "0 of 1 points agree"),
    ],
)
def test_to_agree_within_much_noise_says_little(tmp_path, what, other, agrees, tells, words):
    one = run(tmp_path / "one", [(rate * 1e6, NEAR) for rate in (4.9, 5.0, 5.1)])
    two = run(tmp_path / "two", [(rate * 1e6, NEAR) for rate in other])
    result = compare(one, two)
    (point,) = result["points"]
    assert (point["within_noise"], point["conclusive"]) == (agrees, tells), what
    assert words in result["summary"]


def test_findings_count_what_was_slow(tmp_path):
    output = findings(run(tmp_path / "one", [(5e6, NEAR), (5e6, NEAR), (2e6, FAR)]))
    assert [line for line in output if "1 of 3 rounds ran" in line and "1 of these" in line]
    assert not [
        line for line in findings(run(tmp_path / "two", [(5e6, FAR)] * 3)) if "degraded" in line
    ]


@pytest.mark.parametrize(
    ("rounds", "slow", "searched", "expected"),
    [
        (3, (), True, False),
        (3, (1,), True, True),
        (4, (1,), True, False),  # made up for
        (3 + ROUNDS_MAX, (0, 1, 2, 3), True, False),  # often enough
        (3, (), False, False),
        (3, (0, 1, 2), False, True),
        (4, (2,), False, False),
    ],
)
def test_points_that_were_measured_on_a_degraded_host_are_repeated(
    rounds, slow, searched, expected
):
    ends = [search(repeat, 5e6) for repeat in range(rounds)]
    if not searched:
        ends = [end.model_copy(update={"goals": ()}) for end in ends]
    assert uncertain(ends, 3, degraded=slow, searched=searched) is expected
