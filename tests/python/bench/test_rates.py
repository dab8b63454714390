# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Trials to rows: what is kept, what is missing, what is counted."""

from dataclasses import replace

import pytest

from convoy.errors import InputError
from convoy.report.compare import compare
from convoy.report.findings import findings, of_scenario
from convoy.report.packets import Delay
from convoy.report.rates import expected_pps, rows
from convoy.report.run_data import Run, read
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.trials import Cost, GoalResult, Point, Search, Trial

from .results import latency, plan, result, scenario

CHAIN = ("firewall", "router", "l2fwd")


def counts(packets, busy, own):
    return {
        "ports": {"left": {"rx_packets": packets}, "right": {"rx_packets": 0}},
        "functions": {"fw": {"busy_cycles": own}, "rtr": {"busy_cycles": own}},
        "workers": [{"busy_cycles": busy}],
    }


def point(repeat=0, device="convoy", functions=CHAIN, size="64"):
    return Point(device=device, functions=functions, size=size, repeat=repeat)


def trial(purpose="search", received=None, verdict="passed", repeat=0, device="convoy", **more):
    delays = latency(2000 + repeat, 9000, [(2000 + repeat, 99), (9000, 1)])
    total = {"received_pps": received, "mean_frame_bytes": 64.0, "latency": delays}
    return Trial(
        point=point(repeat, device, more.pop("functions", CHAIN), more.pop("size", "64")),
        purpose=purpose,
        load="50% of PDR" if purpose == "latency" else "",
        rate_pps=received,
        duration_s=0.1,
        verdict=verdict,
        commands=("convoyd plan.json",),
        result=result(total=total, tester={"tsc_hz": 2_600_000_000}, duration_ns=100_000_000),
        **more,
    )


def search(rate, repeat=0, regular=True, remark="", lower_bound=False, **more):
    goal = GoalResult(
        goal="pdr",
        rate_pps=rate,
        lower_pps=rate,
        upper_pps=None,
        regular=regular,
        remark=remark,
        lower_bound=lower_bound,
    )
    return Search(point=point(repeat, **more), outcome="measured", goals=(goal,))


@pytest.mark.parametrize(
    ("offered_pps", "expected"),
    [
        (None, 70_400.0),  # of 0.01 s, though all came within 9 us
        (77e6, 77e6),
    ],
)
def test_a_burst_is_no_rate_where_the_tester_waits(offered_pps, expected):
    total = {"received_pps": 77e6, "received_pkts": 704}
    one = Trial(
        point=point(), purpose="mrr", load="", rate_pps=offered_pps, duration_s=0.01,
        verdict="passed", commands=(), result=result(total=total),
    )  # fmt: skip
    assert one.received_pps == pytest.approx(expected)


@pytest.mark.parametrize(
    ("bounds", "expected"), [((), False), ((0,), False), ((1, 2), True), ((0, 1, 2), True)]
)
def test_a_median_of_bounds_is_a_bound(bounds, expected):
    result = [search(20e6, i, i not in bounds, lower_bound=i in bounds) for i in range(3)]
    (row,) = rows([trial(received=2e7)], result)
    assert row.lower_bound is expected


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [
        ((20e6, False), (20.1e6, False), True),
        ((20e6, False), (40e6, False), False),
        ((20e6, True), (40e6, False), True),  # at least 20, and 40
        ((20e6, True), (10e6, False), False),
        ((40e6, False), (20e6, True), True),
        ((20e6, True), (40e6, True), True),
    ],
)
def test_a_bound_agrees_with_everything_above_it(tmp_path, one, other, agrees):
    runs = []
    for name, (rate, bound) in (("one", one), ("other", other)):
        folder = RunFolder(tmp_path / name)
        folder.create(plan())
        folder.write_host(Host())
        for i in range(4):
            folder.append(trial(received=rate))
            folder.append(search(rate * (1 + i / 1e4), i, not bound, lower_bound=bound))
        runs.append(read([folder.path]))
    (result,) = compare(*runs)["points"]
    assert result["within_noise"] is agrees
    assert not (result["conclusive"] and (one[1] or other[1]))  # a rise over a bound is none


@pytest.mark.parametrize(
    ("one", "other", "change"),
    [
        # The second run met neighbours in most of its rounds: medians differ by a third.
        ([10e6, 9.9e6, 9.8e6], [6e6, 10.1e6, 6.1e6, 9.9e6, 6.5e6], 0.01),
        ([10e6, 9.9e6, 9.8e6], [8e6, 8.1e6, 7.9e6], -0.19),
        ([10e6, 9.9e6, 9.8e6], [6e6, 10.1e6, 6.1e6, 9.5e6, 6.5e6], None),  # nothing confirms it
        ([10e6, 9.9e6, 9.8e6], [10e6], None),
    ],
)
def test_best_rounds_are_compared_where_another_confirms_them(tmp_path, one, other, change):
    runs = []
    for name, rates in {"one": one, "other": other}.items():
        folder = RunFolder(tmp_path / name)
        folder.create(plan())
        folder.write_host(Host())
        for i, rate in enumerate(rates):
            folder.append(trial(received=rate, repeat=i))
            folder.append(search(rate, i))
        runs.append(read([folder.path]))
    compared = compare(*runs)
    (point,) = compared["points"]
    assert (point["best"] and point["best"]["change"]) == (change and pytest.approx(change))
    assert (point["best"] and point["best"]["agrees"]) == (change and abs(change) < 0.05)
    assert ("By best rounds" in compared["summary"]) == (change is not None)


@pytest.mark.parametrize(
    ("others_ns", "agrees"),
    [((9000, 1010, 1040), True), ((9000, 1010, 5000), None), ((2000, 2010, 1990), False)],
)
def test_best_latencies_are_compared_where_another_confirms_them(tmp_path, others_ns, agrees):
    runs = []
    for name, p50s_ns in {"one": (1000, 4000, 1001), "other": others_ns}.items():
        folder = RunFolder(tmp_path / name)
        folder.create(plan())
        folder.write_host(Host())
        for i, p50_ns in enumerate(p50s_ns):
            total = {"offered_pkts": 100, "received_pkts": 100, "received_pps": 1e6,
                     "latency": latency(p50_ns, 9999, [(p50_ns, 100)])}  # fmt: skip
            folder.append(
                Trial(
                    point=point().model_copy(update={"scenario": "x", "repeat": i}),
                    purpose="latency", load="1 Mpps", rate_pps=1e6, duration_s=1.0,
                    verdict="passed", commands=(), result=result(total=total),
                )
            )  # fmt: skip
        runs.append(read([folder.path]))
    (line,) = compare(*runs)["latencies"]
    assert (line["load"], line["best"] and line["best"]["agrees"]) == ("1 Mpps", agrees)


def test_what_came_out_of_order_is_a_share_of_what_came(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create(plan())
    folder.write_host(Host())
    one = point().model_copy(update={"scenario": "x"})
    for repeat, reordered in enumerate((0, 30)):
        total = {"offered_pkts": 200, "received_pkts": 100, "reordered_pkts": reordered}
        folder.append(
            Trial(
                point=one.model_copy(update={"repeat": repeat}), purpose="latency",
                load="1 Mpps", rate_pps=1e6,
                duration_s=1.0, verdict="passed", commands=(), result=result(total=total),
            )
        )  # fmt: skip
    run = read([folder.path])
    ((delay,),) = (row.delays for row in run.of("x"))
    assert delay.reordered_ratio == 0.15
    sentences = [line for line in of_scenario(run, "x") if "order" in line]
    assert len(sentences) == 1
    assert "**15.00%** of the packets came out of order within their flow" in sentences[0]


def test_latency_without_a_histogram_is_the_median_of_the_rounds():
    kept = Delay("1 Mpps", 1e6, (), (1000.0, 3000.0, 2000.0), (9000.0,), None)
    assert [kept.quantile(share) for share in (0.5, 0.9, 0.99)] == [2000.0, None, 9000.0]
    assert Delay("1 Mpps", 1e6, (), (), (), None).quantile(0.5) is None


def test_beside_the_first_device_its_noise_counts_too(tmp_path):
    runs = []
    for name, first in (("one", (8e6, 10e6, 12e6)), ("other", (7e6, 9e6, 10e6))):
        folder = RunFolder(tmp_path / name)
        folder.create(plan())
        folder.write_host(Host())
        for device, rates in (("convoy", first), ("testpmd", (5e6, 5.001e6, 5.002e6))):
            for i, rate in enumerate(rates):
                folder.append(trial(received=rate, repeat=i, device=device))
                folder.append(search(rate, i, device=device))
        runs.append(read([folder.path]))
    first, testpmd = compare(*runs)["points"]
    # testpmd is what it was; that convoy was slower by a seventh is no more than its noise.
    assert (testpmd["change"], testpmd["within_noise"]) == (0, True)
    assert testpmd["relative"] == pytest.approx(0.15, abs=0.01)
    assert testpmd["relative_within_noise"] is True
    assert first["relative_within_noise"] is None  # beside itself
    assert "beside each run's own first device, 1 of 1 do" in compare(*runs)["summary"]


def test_a_rate_is_the_median_of_what_the_searches_found():
    (row,) = rows(
        [trial("mrr", 9e6), trial(received=5e6), trial(received=8e6, verdict="invalid")],
        [search(6e6), search(4e6, 1), search(None, 2, False, "not even 1000 packets/s")],
    )
    assert row.rounds == {0: 6e6, 1: 4e6}
    assert row.rate_pps == 5e6
    assert row.gbps == pytest.approx(5e6 * 64 * 8 / 1e9)
    assert (row.repeats, row.trials, row.invalid) == (3, 3, 1)
    assert row.irregular == ("PDR: not even 1000 packets/s",)


def test_a_lower_bound_is_no_rate_where_another_repeat_has_one():
    (row,) = rows([], [search(6e6), search(1e6, 1, False, "a lower bound")])
    assert row.rounds == {0: 6e6}
    (row,) = rows([], [search(1e6, 1, False, "a lower bound")])
    assert row.rounds == {1: 1e6}


def test_what_nobody_measured_is_missing_not_zero():
    (row,) = rows([trial(received=5e6, verdict="failed")], [search(None, regular=False)])
    assert (row.rate_pps, row.gbps, row.p50_ns, row.node_cycles_per_packet) == (None,) * 4


def test_latency_is_of_latency_trials_only_and_histograms_add_up():
    trials = [trial(received=6e6), trial("latency", 3e6), trial("latency", 3e6, repeat=1)]
    trials.append(trial("latency", 3e6, repeat=2, verdict="invalid"))
    (row,) = rows(trials)
    (delay,) = row.delays
    assert (delay.load, delay.rate_pps, delay.count) == ("50% of PDR", 3e6, 200)
    assert delay.histogram_ns == ((2000, 99), (2001, 99), (9000, 2))
    assert [delay.quantile(q) for q in (0.1, 0.5, 0.99, 1.0)] == [2000, 2001, 2001, 9000]
    assert delay.p50s_ns == (2000, 2001)


def test_cycles_are_those_of_the_trial_not_of_the_devices_life():
    before, after = counts(100, 1_000_000, 100_000), counts(1100, 1_400_000, 140_000)
    cost = Cost(cycles=400_000, packets=1000, source="convoyd's workers")
    (row,) = rows([trial(received=6e6, device_before=before, device_after=after, cost=cost)])
    assert row.node_cycles_per_packet == 400
    assert row.cycles_source == "convoyd's workers"
    assert row.function_cycles_per_packet == 80


@pytest.mark.parametrize(
    ("limit", "lower_bound", "rates"),
    [
        (7e6, True, (4e6, 6e6, 7e6)),
        (5e6, True, (4e6, 6e6, 5e6)),
        (4.9e6, True, (4e6, 6e6)),  # below their median: says nothing new
        (7e6, False, (4e6, 6e6)),  # a search that was cut short
    ],
)
def test_a_lower_limit_counts_where_the_median_does_not_depend_on_the_rate(
    limit, lower_bound, rates
):
    cut = search(limit, 2, False, "a lower bound")
    goal = cut.goals[0].model_copy(update={"lower_bound": lower_bound})
    cut = cut.model_copy(update={"goals": (goal,)})
    (row,) = rows([trial(received=6e6)], [search(4e6), search(6e6, 1), cut])
    assert row.rates_pps == rates


def test_expected_rate_adds_cycles_to_a_packets_time():
    assert expected_pps(10e6, 260, 2.6e9) == pytest.approx(5e6)


def test_each_row_knows_the_clock_of_its_own_machine(tmp_path):
    folders = []
    for name, hz in (("one", 3_400_000_000), ("other", 2_000_000_000)):
        folder = RunFolder(tmp_path / name)
        folder.create(plan())
        folder.write_host(Host())
        one = trial(received=5e6)
        made = one.result.model_copy(update={"tester": result(tester={"tsc_hz": hz}).tester})
        folder.append(one.model_copy(update={"result": made}))
        folders.append(folder.path)
    assert [row.tsc_hz for row in read(folders).rows] == [3.4e9, 2e9]
    assert [row.tsc_hz for row in read(folders[::-1]).rows] == [2e9, 3.4e9]


def test_findings_say_what_the_rows_say():
    before, after = counts(0, 0, 0), counts(1000, 400_000, 35_000)
    result = rows(
        [
            trial(received=6e6, device_before=before, device_after=after),
            trial(received=9e6, device="testpmd", functions=()),
        ],
        [search(6e6), search(9e6, device="testpmd", functions=())],
    )
    result = [replace(row, tsc_hz=2.6e9) for row in result]
    run = Run((), {result[0].scenario: scenario()}, tuple(result), (), (), (), ())
    text = "\n".join(findings(run))
    assert "**convoy 6.00 [6.00 .. 6.00] Mpps**" in text
    assert "**testpmd 9.00 [9.00 .. 9.00] Mpps**" in text
    assert "took 70 cycles per packet" in text
    assert f"{expected_pps(9e6, 70, 2.6e9) / 1e6:.2f} Mpps" in text


def test_a_folder_gives_back_what_was_kept_and_refuses_a_second_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(plan(5))
    kept = [trial(received=5e6), trial(received=6e6, verdict="invalid")]
    for one in kept:
        folder.append(one)
    folder.append(search(5e6))
    assert list(folder.trials()) == kept
    assert list(folder.searches()) == [search(5e6)]
    assert folder.plan() == plan(5).model_copy(update={"created": folder.plan().created})
    with pytest.raises(InputError, match="holds another run's trials"):
        folder.create(plan())


def test_a_run_that_was_killed_in_a_line_loses_that_line_only(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(trial(received=5e6))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"repeat": 1, "dev')
    assert len(list(folder.trials())) == 1
    folder.repair()
    folder.append(trial(received=6e6))
    assert [one.received_pps for one in folder.trials()] == [5e6, 6e6]


@pytest.mark.parametrize("text", ["", "a list: [", "- a", "42"])
def test_a_file_that_is_no_mapping_is_named(tmp_path, text):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(InputError, match=r"plan\.yaml: .*is this a run's folder"):
        RunFolder(tmp_path).plan()


def test_a_bad_line_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(trial(received=5e6))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"point": "x"}\n')
    with pytest.raises(InputError, match=r"trials.jsonl:2: schema: missing; .*bench.trial/6"):
        list(folder.trials())


def test_a_frame_of_pandas_reads_the_trials(tmp_path):
    import pandas

    folder = RunFolder(tmp_path)
    for rate in (5e6, 6e6):
        folder.append(trial(received=rate))
    frame = pandas.read_json(tmp_path / "trials.jsonl", lines=True)
    assert list(frame["rate_pps"]) == [5e6, 6e6]
    assert list(pandas.json_normalize(frame["point"])["device"]) == ["convoy", "convoy"]


def test_losses_are_counted_by_place_and_the_rest_is_shown():
    def node(no_room, denied):
        return {
            "ports": {"left": {"rx_packets": 0, "drops": {"no_room": no_room}}},
            "functions": {"fw": {"busy_cycles": 0, "drops": {"denied": denied}}},
            "workers": [],
        }

    total = {"offered_pkts": 1000, "lost_pkts": 100, "refused_pkts": 60, "received_pps": 1e6}
    lost = trial(received=1e6, verdict="failed", device_before=node(1, 5), device_after=node(11, 8))
    lost = lost.model_copy(update={"result": result(total=total)})
    (row,) = rows([lost, trial(received=5e5)])
    assert row.lost == (
        ("refused at the entrance", 0.06),
        ("inside or at the exit, not counted", 0.027),
        ("left: no_room", 0.01),
        ("fw: denied", 0.003),
    )
