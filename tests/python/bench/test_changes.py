# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Configurations replaced while packets flow, and CPU time by load: from trials to reports."""

import json
import os
import subprocess
import sys
import threading

import pytest

from convoy.base.yaml_text import Text
from convoy.chain.load import check_text
from convoy.dut import functions
from convoy.dut.base import Changer, Function
from convoy.dut.variants import variant
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.report.changes import table
from convoy.report.figures import figures
from convoy.report.findings import findings
from convoy.report.rates import rows
from convoy.report.run_data import Run
from convoy.report.run_document import latencies
from convoy.results.folder import RunFolder
from convoy.results.scenario import Scenario
from convoy.results.trials import Point, Trial
from convoy.run.changing import Changing, control_core

from .results import latency, result

SETUPS = {"plain": {"functions": ["firewall"]},
          "changed": {"functions": ["firewall"], "changes": {"replace": "one"}}}  # fmt: skip


def trial(setup, rate_pps, p99_ns=9000, lost=0, **more):
    total = {
        "offered_pkts": 1000,
        "received_pkts": 1000 - lost,
        "lost_pkts": lost,
        "latency": latency(1000, p99_ns, [(1000, 98), (p99_ns, 2)]),
    }
    return Trial(
        point=Point(scenario="s", setup=setup, device="convoy", functions=("firewall",), size="64",
                    repeat=0),
        purpose="latency", load=f"{rate_pps / 1e3:g} kpps", rate_pps=rate_pps, duration_s=0.1,
        verdict="passed", commands=(), result=result(total=total, duration_ns=100_000_000), **more,
    )  # fmt: skip


def run_of(trials, **more):
    scenario = Scenario.model_validate({
        "title": "t", "from": "f", "asks": "a", "devices": ["convoy"], "setups": SETUPS,
        "search": False, "rates-pps": [1000], **more,
    })  # fmt: skip
    return Run((), {"s": scenario}, tuple(rows(trials)), (), (), (), ())


def test_changes_stand_beside_the_same_without():
    run = run_of([
        trial("plain", 1e4, p99_ns=5000),
        trial("changed", 1e4, p99_ns=7000, lost=1, changes_ns=(2_000_000, 4_000_000, 3_000_000)),
        trial("changed", 2e4, changes_ns=()),  # none ended in it
    ])  # fmt: skip
    (line,) = [[cell.written for cell in row] for row in table(run, "s").rows]
    assert line == ["changed", "convoy", "10 kpps", "3", "3.0 [2.0 .. 4.0]", "7.0", "5.0",
                    "0.1000%", "0"]  # fmt: skip
    (sentence,) = [text for text in findings(run) if "3 changes" in text]
    assert "**3.0 ms**; 0.1000% of the packets lost, p99 latency 7.0 us (without: 5.0 us)" in (
        sentence
    )


def test_cpu_time_is_the_share_of_the_core_in_the_time_of_the_trial():
    trials = [
        trial("plain", 1e4, device_cpu_ns=60_000_000, elapsed_ns=120_000_000),
        trial("plain", 2e4, device_cpu_ns=120_000_000, elapsed_ns=120_000_000, lost=500),
        trial("plain", 3e4),  # a device without processes
    ]
    run = run_of(trials, figure={"x": "rate", "y": "cpu"})
    (row,) = run.rows
    # Half of a core for 0.1 s and 1,000 packets; all of it, for 500 packets.
    assert [delay.cpu_us_per_packet for delay in row.delays] == [50.0, 200.0, None]
    assert any("**50 us** at 10 kpps" in text for text in findings(run))
    captions = [figure.caption for figure in figures(run, "s")]
    assert "CPU time for a packet by rate." in captions
    (shown,) = [f for f in figures(run, "s") if f.caption == "CPU time of the device by rate."]
    assert list(shown.plot.data[0].y) == pytest.approx([50.0, 200.0])
    assert latencies([row]).rows[0][-3].written == "50.000"


@pytest.mark.parametrize(
    ("elapsed_ns", "busy", "share"),
    [
        (150_000_000, 0.5, 0.75),  # with nothing to do in the last third
        (150_000_000, 1.0, 1.0),  # a poll loop
        (100_000_000, 0.5, 0.5),
        (50_000_000, 0.5, 0.5),  # made up: there is no such trial
        (None, 0.5, 0.5),
    ],
)
def test_a_core_was_busy_while_packets_came(elapsed_ns, busy, share):
    one = trial("plain", 1e4, elapsed_ns=elapsed_ns, core_busy_share=busy)
    (row,) = run_of([one]).rows
    assert row.core_shares == (pytest.approx(share),)


def meets(described: Function) -> list[object]:
    """Return what of a function's configuration benchmark traffic meets, as sets where it can."""
    if described.type == "firewall":
        return [rule for rule in described.config["rules"] if "allow" in rule]
    return [route.split()[0] for route in described.config["routes"]]


@pytest.mark.parametrize("replaces", ["one", "all"])
@pytest.mark.parametrize(
    "described", [functions.firewall(100), functions.stateful(), functions.router(100)]
)
def test_a_variant_does_the_same_to_benchmark_traffic(tmp_path, described, replaces):
    (other,) = variant((described,), replaces)
    assert meets(other) == meets(described)
    key = "rules" if described.type == "firewall" else "routes"
    before, after = described.config[key], other.config[key]
    differ = sum(one != two for one, two in zip(before, after, strict=False))
    if len(before) == len(after):
        assert differ == (1 if replaces == "one" else 100 if key == "routes" else 99)
    else:
        assert after[1:] == before
    document = {
        "ports": {"left": {"vhost-user": "a"}, "right": {"vhost-user": "b"}},
        "functions": {"f": {other.type: other.config}},
        "chains": {"c": {"from": "left", "to": "right", "path": ["f"]}},
    }
    check_text(Text.of_data(document, "variant"), tmp_path, this_machine())


def test_what_has_no_rules_is_not_varied():
    with pytest.raises(InputError, match="of firewall and router"):
        variant((functions.layer2(),), "all")


class Steps(Changer):
    """Notes the configurations that it goes over to; fails at one of them, if told so."""

    def __init__(self, fails_at=None):
        self.numbers, self.closed, self._fails_at = [], threading.Event(), fails_at

    def change(self, number):
        self.numbers.append(number)
        if len(self.numbers) == self._fails_at:
            raise ConvoyError("has no luck")

    def threads(self):
        return ()

    def _leave(self):
        self.closed.set()


def test_configurations_alternate_and_each_change_is_told_once():
    steps, core = Steps(), min(os.sched_getaffinity(0))
    with Changing(steps, 0.001, core) as changing:
        taken = []
        wait_for(lambda: taken.extend(changing.take()) or len(taken) >= 5, 20, "five changes")
    taken.extend(changing.take())
    assert steps.closed.is_set()
    assert steps.numbers == [(1, 0)[i % 2] for i in range(len(steps.numbers))]
    assert len(taken) == len(steps.numbers)


def test_a_change_that_fails_is_told():
    def failed():
        try:
            changing.take()
        except ConvoyError as error:
            return "has no luck" in str(error)
        return False

    with Changing(Steps(fails_at=2), 0.001, min(os.sched_getaffinity(0))) as changing:
        wait_for(failed, 20, "the failure")


@pytest.mark.parametrize(
    ("allowed", "device", "core"), [({0, 1}, (1,), 1), ({0, 1, 2}, (1,), 2), ({3, 4, 9}, (3,), 9)]
)
def test_changes_have_a_core_of_their_own_where_there_is_one(allowed, device, core):
    assert control_core(allowed, 4 if 4 in allowed else 0, device) == core


def drops(counters):
    return {
        (name, reason): count
        for name, function in counters["functions"].items()
        for reason, count in function["drops"].items()
    }


@pytest.mark.alone
@pytest.mark.skipif(find("convoyd") is None or find("convoy-gen") is None, reason="not built")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_node_is_changed_while_it_is_measured(tmp_path):
    scenario = tmp_path / "churn.yaml"
    scenario.write_text(json.dumps({
        "title": "t", "from": "f", "asks": "a", "devices": ["convoy"], "sizes": [64],
        "setups": {"changed": {"functions": ["firewall", "router"],
                               "options": {"convoy": {"idle": "yield"}},
                               "changes": {"every-ms": 20}}},
        "search": False, "rates-pps": [10000], "noise": False,
    }))  # fmt: skip
    subprocess.run(
        [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench", "run",
         str(scenario), "--quick", "--search", "smoke", "--repeats", "1", "--output",
         str(tmp_path / "run")],
        check=True, timeout=120, capture_output=True,
    )  # fmt: skip
    trials = list(RunFolder(tmp_path / "run").trials())
    assert trials
    assert all(one.changes_ns for one in trials)
    received = [one.result.total.received_pkts for one in trials]
    assert max(received) > 0
    # No packet met rules or routes that were being replaced. What the referee sent came before.
    for one in trials:
        before, after = drops(one.device_before), drops(one.device_after)
        assert after == before
        assert sum(before.values()) > 0  # of the referee's packets: they are counted
