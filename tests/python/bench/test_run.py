# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whole runs with devices that are curves: order, resuming, failures, and what is kept."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from convoy.dut.base import Presence
from convoy.dut.dummy import Curve, Dummy
from convoy.errors import ConvoyError, InputError
from convoy.host.process import wait_for
from convoy.report.figures import figures
from convoy.report.findings import findings
from convoy.report.html import html
from convoy.report.run_data import read
from convoy.report.run_document import document as document_of
from convoy.results.documents import BenchPlan, Host
from convoy.results.folder import RunFolder
from convoy.results.trial_result import SelfTest
from convoy.run import scenario as scenarios
from convoy.run.baseline_rate import BaselineRate
from convoy.run.bench import Bench
from convoy.run.order import order
from convoy.run.packet_run import Settings
from convoy.run.session import wanted

CONVOY = [sys.executable, "-c", "from convoy.cli.main import main; main()"]


def settings(profile="quick", goals=("pdr",), repetition_share=0.0):
    return Settings(0, (1,), False, profile, goals, 0.2, repetition_share)


def named(name, curve=None, fails=()):
    """A dummy of another name; starts whose numbers are in `fails` raise."""

    class Other(Dummy):
        starts = 0

        def start(self, setup):
            self.starts += 1
            if self.starts in fails:
                raise ConvoyError(f"{name}: has no luck")
            return super().start(setup)

    Other.name = name
    return Other(curve)


def plan(names, repeats=3, quick=True):
    query = wanted(["baseline"], quick=quick, repeats=repeats)
    scenario = query.scenarios["baseline"].model_copy(update={"devices": names})
    return query, {"baseline": scenario}


def run(path, devices, repeats=3, until=None, goals=("pdr",), repetition_share=0.0, baseline=None):
    """Do a run; until: raise KeyboardInterrupt after so many device runs."""
    query, result = plan(tuple(devices), repeats)
    folder = RunFolder(path)
    if not (path / "plan.yaml").exists():
        folder.create(query.model_copy(update={"scenarios": result}))
        folder.write_host(Host.model_validate(HOST))
    steps = []

    def progress(step):
        steps.append(step)
        if until is not None and len(steps) > until:
            raise KeyboardInterrupt

    device_runs = order(result, devices, repeats, 2, 1).device_runs
    how = settings(goals=goals, repetition_share=repetition_share)
    Bench(folder, result, how, progress, baseline).run(device_runs)
    return folder, steps


class Rising(BaselineRate):
    """A tester on a degraded host at first; the second self-test fails."""

    def __init__(self):
        super().__init__(0, 1)
        self.seen = [30e6, ConvoyError("no tester"), 3e6]

    def due(self):
        return bool(self.seen)

    def measure(self):
        result = self.seen.pop()
        if isinstance(result, ConvoyError):
            raise result
        self.pps = result


HOST = {
    "schema": "convoy.host/2", "started": "2026-01-01T00:00:00+00:00", "cpu": "none",
    "cores": [0, 1], "cores_allowed": [0, 1], "governor": None, "kernel": "6", "root": False,
    "convoy": "0", "commit": None, "devices": {}, "mitigations": {}, "hugepages": False,
    "tester_core": 0, "device_core": 1, "cannot": [], "self_test": None, "remarks": {},
}  # fmt: skip


def test_devices_take_turns_and_the_first_meets_itself(tmp_path):
    devices = {"a": named("a"), "b": named("b")}
    _, steps = run(tmp_path, devices, repeats=2)
    device_runs = [step.what.removeprefix("baseline: ") for step in steps]
    once = ["a, router", "b, router", "a (A/A control), router", "a, firewall", "b, firewall"]
    assert device_runs == once * 2
    assert [(step.done, step.of) for step in steps] == [
        (i, len(device_runs)) for i in range(len(device_runs))
    ]
    assert all(step.left_s > 0 for step in steps)


def test_a_time_limit_leaves_out_the_last_rounds(tmp_path, monkeypatch):
    now, each = 0.0, 10.0

    class Slow(Dummy):
        def start(self, setup):
            nonlocal now
            now += each
            return super().start(setup)

    devices = {name: type(name, (Slow,), {"name": name})() for name in ("a", "b")}
    monkeypatch.setattr("convoy.run.bench.time", SimpleNamespace(monotonic=lambda: now))
    query, result = plan(("a", "b"), repeats=3)
    result["again"] = result["baseline"]  # 5 device runs a round, each of them
    folder = RunFolder(tmp_path)
    folder.create(query.model_copy(update={"scenarios": result}))
    folder.write_host(Host.model_validate(HOST))
    device_runs = order(result, devices, 3, 2, 1).device_runs
    steps = []
    bench = Bench(folder, result, settings(), steps.append)
    assert bench.run(device_runs, end=170.0) == 15
    rounds = ["baseline"] * 5 + ["again"] * 5 + ["baseline"] * 5  # the next ends at 200
    assert [step.what.partition(":")[0] for step in steps] == rounds
    assert now == 150.0
    assert max(step.left_s for step in steps) <= 170.0
    assert [text for text in findings(read([tmp_path])) if "ended" in text] == [
        f"**The run ended after round {number} of 3** of {name}; "
        "`convoy bench resume` does the others."
        for number, name in ((2, "baseline"), (1, "again"))
    ]
    # Resumed, the others are done; a round that takes longer than it should is cut.
    each = 20.0
    steps.clear()
    bench = Bench(folder, result, settings(), steps.append)
    assert bench.run(device_runs, end=195.0) == 12
    assert bench.run(device_runs) == 0
    assert len(steps) == 15
    assert not any("ended" in text for text in findings(read([tmp_path])))


def test_what_is_left_is_estimated_by_what_device_runs_took(tmp_path, monkeypatch):
    now = 0.0

    class Slow(Dummy):
        def start(self, setup):
            nonlocal now
            now += 20.0
            return super().start(setup)

    devices = {name: type(name, (Slow,), {"name": name})() for name in ("a", "b")}
    monkeypatch.setattr("convoy.run.bench.time", SimpleNamespace(monotonic=lambda: now))
    _, steps = run(tmp_path, devices, repeats=2)
    assert steps[0].left_s < 20.0 * steps[0].of / 2
    # After one of them more is expected of the others, too.
    assert steps[0].left_s < steps[1].left_s < 20.0 * (steps[1].of - 1)
    assert [step.left_s for step in steps[-5:]] == [
        pytest.approx(20.0 * (step.of - step.done)) for step in steps[-5:]
    ]


def test_a_difference_is_found_and_noise_is_none(tmp_path):
    devices = {
        "a": named("a", Curve(noise=0.002)),
        "same": named("same", Curve(noise=0.002)),
        "slow": named("slow", Curve(cycles_per_packet=300.0, noise=0.002)),
    }
    run(tmp_path, devices, repeats=5)
    text = "\n".join(findings(read([tmp_path])))
    assert "not significantly different from" in text
    assert "faster than slow" in text
    assert re.search(r"Noise floor: \*\*[\d.]+%\*\* at 64 B", text)


def test_two_runs_in_one_report_crown_no_control_and_pair_no_rounds(tmp_path):
    """Run A has the slow device only, run B a fast one and a control that happens to be faster."""
    slow = named("a", Curve(cycles_per_packet=300.0))
    run(tmp_path / "A", {"a": slow}, repeats=3)
    run(tmp_path / "B", {"a": named("a"), "b": named("b", Curve(cycles_per_packet=299.0))})
    lucky = [
        json.loads(line) for line in (tmp_path / "B" / "points.jsonl").read_text().splitlines()
    ]
    for line in lucky:
        if line["point"]["role"] == "control":
            for goal in line["goals"]:
                goal["rate_pps"] *= 1.5
    text = "".join(json.dumps(line) + "\n" for line in lucky)
    (tmp_path / "B" / "points.jsonl").write_text(text)
    both = read([tmp_path / "A", tmp_path / "B"])
    assert both.names("baseline") == ("a [A]", "a [B]", "b [B]")
    output = findings(both)
    best = [line for line in output if line.startswith("router, 64 B: **")]
    assert [re.match(r"[^*]*\*\*(\S+ \S+) ", line)[1] for line in best] == ["a [A]", "a [B]"]
    assert "[B]" not in best[0]  # nobody of the other run is compared
    assert "[A]" not in best[1]
    assert not any("control" in line for line in output if not line.startswith("Noise floor"))
    noise = [line for line in output if line.startswith("Noise floor")]
    assert [
        re.search(r"\[([AB])\], router, against its A/A control", line)[1] for line in noise
    ] == [
        "A",
        "B",
    ]
    assert both.noise_floor("baseline", "64", "A") < 0.1 < both.noise_floor("baseline", "64", "B")
    rates = [both.noise_pairs("baseline", name)[0][0].run for name in ("A", "B")]
    assert rates == ["A", "B"]
    drawn = figures(both, "baseline")
    assert len(drawn) >= 2
    for figure in drawn:
        who = {trace.name.partition(",")[0] for trace in figure.plot.data}
        who = {name for name in who if not name.endswith("line rate")}
        assert who <= {"a [A]", "a [B]", "b [B]"}


def test_runs_whose_folders_are_called_alike_are_told_apart(tmp_path):
    for name in ("x", "y"):
        run(tmp_path / name / "run", {"a": named("a")}, repeats=1)
    both = read([tmp_path / "x" / "run", tmp_path / "y" / "run"])
    assert both.names("baseline") == tuple(f"a [{tmp_path / n / 'run'}]" for n in ("x", "y"))


def test_an_older_runs_folder_is_refused_in_one_line(tmp_path):
    run(tmp_path, {"a": named("a")}, repeats=1)
    old = (tmp_path / "points.jsonl").read_text().replace("bench.point/3", "bench.point/1")
    (tmp_path / "points.jsonl").write_text(old)
    with pytest.raises(InputError, match=r"points.jsonl:1: schema: 'convoy.bench.point/1': this "):
        read([tmp_path])


def test_an_interrupted_run_goes_on_and_does_nothing_twice(tmp_path):
    devices = {"a": named("a"), "b": named("b")}
    whole, _ = run(tmp_path / "whole", devices)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", devices, until=4)
    folder = RunFolder(tmp_path / "cut")
    finished = list(folder.trials())
    searched = [search.point.key for search in folder.searches()]
    run(tmp_path / "cut", devices)
    trials = list(folder.trials())
    assert trials[: len(finished)] == finished
    ends = [search.point.key for search in folder.searches()]
    assert ends[: len(searched)] == searched
    assert len(ends) == len(set(ends)) == len(list(whole.searches()))
    assert len(trials) == len(list(whole.trials()))


def test_a_run_cut_in_the_middle_of_a_search_uses_its_trials(tmp_path):
    devices = {"a": named("a")}
    whole, _ = run(tmp_path / "whole", devices, repeats=1)
    lines = (tmp_path / "whole/trials.jsonl").read_bytes().splitlines(keepends=True)
    run_folder = tmp_path / "cut"
    run_folder.mkdir()
    for name in ("plan.yaml", "host.json"):
        (run_folder / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    # Killed in the fifth trial: four lines and a half, no search has ended.
    (run_folder / "trials.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:40])
    folder, _ = run(run_folder, devices, repeats=1)
    again = list(folder.trials())
    assert len(again) == len(lines)
    key = again[0].point.key
    rates = [[t.rate_pps for t in f.trials() if t.point.key == key] for f in (whole, folder)]
    assert rates[0] == rates[1]


def test_a_device_that_fails_is_noted_and_left_out_and_the_others_go_on(tmp_path):
    devices = {"a": named("a"), "bad": named("bad", fails=range(1, 99))}
    folder, steps = run(tmp_path, devices, repeats=5)
    failed = [s for s in folder.searches() if s.outcome == "failed"]
    assert {s.point.device for s in failed} == {"bad"}
    assert {s.point.repeat for s in failed} == {0, 1}  # then it is left out
    points = [s.point for s in folder.searches() if s.point.device == "a"]
    assert len([one for one in points if one.role == "device"]) == 2 * 2 * 5
    assert len(steps) == 5 * 5
    result = read([tmp_path])
    assert any("bad failed**: bad: has no luck" in line for line in findings(result))
    assert "has no luck" in html(document_of(result))


def test_one_bad_start_costs_one_turn(tmp_path):
    devices = {"a": named("a"), "b": named("b", fails=(2,))}
    folder, _ = run(tmp_path, devices, repeats=3)
    ends = [s.outcome for s in folder.searches() if s.point.device == "b"]
    assert ends.count("failed") == 2  # both sizes of that device run
    assert ends.count("measured") == 2 * 2 * 3 - 2


def test_what_failed_once_is_measured_once_more_where_there_is_time(tmp_path):
    devices = {"a": named("a"), "b": named("b", fails=(2,))}
    folder, steps = run(tmp_path, devices, repeats=3, repetition_share=1000.0)
    ends = [s for s in folder.searches() if s.point.device == "b"]
    assert [s.outcome for s in ends].count("failed") == 2  # both sizes of a device run
    again = [s for s in ends if s.point.repeat == 3]
    assert [s.point.size for s in again] == [s.point.size for s in ends if s.outcome == "failed"]
    assert len(ends) == 2 * 2 * 3 + 2
    assert steps[-1].what.endswith("B repeated")
    # A resumed run finds nothing left to do.
    steps_before = len(steps)
    _, steps = run(tmp_path, devices, repeats=3, repetition_share=1000.0)
    assert steps_before > 0
    assert steps == []


def test_what_cannot_be_compared_is_not_measured_once_more(tmp_path):
    device = named("b", fails=(2,))
    device.presence = lambda: Presence("1.0", remark="emulated: not comparable")
    folder, steps = run(
        tmp_path, {"a": named("a"), "b": device}, repeats=3, repetition_share=1000.0
    )
    assert any(s.outcome == "failed" for s in folder.searches())
    assert not any(step.what.endswith("repeated") for step in steps)


def test_what_ended_at_a_baseline_rate_that_rose_is_measured_once_more(tmp_path):
    folder, _ = run(tmp_path, {"a": named("a")}, repetition_share=1000.0, baseline=Rising())
    ends = [s for s in folder.searches() if s.point.size == "64" and s.point.setup == "router"]
    bounds = {s.point.repeat for s in ends if s.goals[0].lower_bound}
    assert bounds == {0, 1}
    assert {s.point.repeat for s in ends} >= {2, 3, 4}
    row = next(r for r in read([tmp_path]).rows if (r.setup, r.size) == ("router", "64"))
    assert not row.lower_bound
    assert row.rate_pps > 5e6


def test_a_self_test_that_fails_is_not_repeated_at_once(monkeypatch):
    def fail(*arguments, **options):
        raise ConvoyError("no tester")

    monkeypatch.setattr("convoy.run.baseline_rate.ConvoyGen", fail)
    baseline = BaselineRate(0, 1)
    assert baseline.due()
    with pytest.raises(ConvoyError):
        baseline.measure()
    assert not baseline.due()
    assert baseline.pps is None


def test_self_tests_are_rarer_as_long_as_none_is_higher(monkeypatch):
    now, pps, kept = 0.0, 10e6, []
    monkeypatch.setattr(
        "convoy.run.baseline_rate.ConvoyGen",
        lambda *ports, **how: nullcontext(SimpleNamespace(self_test=SelfTest(baseline_pps=pps))),
    )
    monkeypatch.setattr("convoy.run.baseline_rate.time", SimpleNamespace(monotonic=lambda: now))
    baseline = BaselineRate(0, 1, kept.append)
    taken = []
    for second in range(3000):
        now, pps = float(second), 20e6 if second >= 400 else 10e6 - second
        if baseline.due():
            baseline.measure()
            taken.append(second)
    # Waits of 45, 90, 180 and 360 s; the fourth is higher.
    assert taken == [0, 46, 137, 318, 679, 725, 816, 997, 1358, 2079, 2800]
    assert [one.baseline_pps for one in kept] == [10e6, 20e6]
    assert baseline.pps == 20e6


def test_one_percent_of_hiccups_changes_no_rate(tmp_path):
    quiet, _ = run(tmp_path / "quiet", {"a": named("a")}, repeats=5)
    shaken, _ = run(tmp_path / "shaken", {"a": named("a", Curve(hiccups=0.01))}, repeats=5)
    for one, other in zip(quiet.searches(), shaken.searches(), strict=True):
        assert other.rate("pdr") == pytest.approx(one.rate("pdr"), rel=0.02)


def test_invalid_trials_are_excluded_and_counted(tmp_path):
    folder, _ = run(tmp_path, {"a": named("a", Curve(invalid=0.2))}, repeats=2)
    invalid = sum(trial.verdict == "invalid" for trial in folder.trials())
    assert invalid > 0
    assert sum(search.invalid for search in folder.searches()) == invalid
    assert sum(row.invalid for row in read([tmp_path]).rows) == invalid


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: x\n", "x.yaml:1: the key 'from' is missing"),
        ("title: x\nfrom: y\nasks: z\n", "needs setups and devices"),
        ("title: x\nfrom: y\nasks: z\npending: a\nsizes: [63]\n", "x.yaml:5: sizes"),
        ("title: x\nfrom: y\nasks: z\npending: a\nsices: [64]\n", "x.yaml:5: sices"),
    ],
)
def test_a_bad_scenario_names_the_line(tmp_path, text, words):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        scenarios.load(str(path))
    assert words in str(error.value)


def test_every_scenario_is_read_and_kept_whole(tmp_path):
    for name in scenarios.names():
        plan = wanted([name], quick=True)
        again = BenchPlan.model_validate(plan.as_document()).scenarios[name]
        assert again.sizes == plan.scenarios[name].sizes
    assert {"baseline", "chain", "latency-rate", "dataplane-vs-vnf"} <= set(scenarios.names())


def convoy(*arguments):
    return subprocess.run(
        [*CONVOY, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


def test_commands_run_report_compare(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        done = convoy("bench", "run", "baseline", "chain", "latency-rate", "--quick",
                      "--devices", "dummy", "--output", folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "a response curve, not a measurement" in done.stdout
    done = convoy("bench", "compare", one, two, "--json")
    compared = json.loads(done.stdout)
    assert compared["points"]
    assert all(point["within_noise"] for point in compared["points"])
    points = len(compared["points"])
    assert compared["summary"].startswith(
        f"{points} of {points} points agree within their noise (med"
    )
    shown = convoy("bench", "compare", one, two).stdout  # to a terminal of 80 columns
    assert shown.count("agrees") == points
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    for form, words in (("md", "# What was found"), ("csv", "scenario,"), ("json", '"rows"')):
        done = convoy("report", one, "--format", form)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
    done = convoy("report", one, "-o", tmp_path / "page.html")
    assert done.returncode == 0
    assert "Niu" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bench", "run", "basline"), "scenario 'basline': there is none called so"),
        (("bench", "run", "baseline", "--devices", "ovs"), "--devices: 'ovs': choose of"),
        (("bench", "run", "baseline", "--goal", "best"), "goal 'best': there is none called so"),
        (("bench", "run", "baseline", "--search", "x"), "--search: 'x': choose of smoke, quick"),
        (("bench", "resume", "/proc"), "/proc/plan.yaml"),
        (("report", "/proc"), "/proc/plan.yaml"),
        (("report", "/proc", "--format", "pdf"), "--format: 'pdf': choose of html, md, csv, json"),
        (("bench", "run"), "name some of `convoy bench list`, or add --all or --for-claims"),
        (("bench", "run", "vpn", "--all"), "--all: it is every scenario; leave it or 'vpn' out"),
        (("bench", "run", "--all", "--for-claims"), "leave it or --for-claims out"),
        (("bench", "run", "vpn", "--for-claims"), "--for-claims: no claim is about scenario 'vpn'"),
        (("bench", "run", "numa", "--devices", "testpmd", "--output", "{}"), "has no firewall"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path, arguments, words):
    done = convoy(*(word.format(tmp_path / "run") for word in arguments))
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_resumes(tmp_path, number):
    folder = tmp_path / "run"
    command = [*CONVOY, "bench", "run", "baseline", "--devices", "dummy", "--quick"]
    command += ["--repeats", "99", "--output", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as ours:
        try:
            points = folder / "points.jsonl"
            wait_for(
                lambda: points.exists() and points.read_bytes().count(b"\n") > 3, 30, "a search"
            )
            os.kill(ours.pid, number)
            assert ours.wait(30) == {signal.SIGINT: 130}.get(number, -9)
        finally:
            ours.kill()
    before = list(RunFolder(folder).trials())
    assert len(before) > 3
    # The plan is what says how much is left; a person may cut it down.
    plan = folder / "plan.yaml"
    plan.write_text(plan.read_text().replace("repeats: 99", "repeats: 2"))
    done = convoy("bench", "resume", folder)
    assert done.returncode == 0, done.stderr
    after = list(RunFolder(folder).trials())
    assert after[: len(before)] == before
    keys = [search.point.key for search in RunFolder(folder).searches()]
    assert len(keys) == len(set(keys))
