# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Advice by rows that are given: what is chosen, what is refused, and what it says it rests on."""

import subprocess
import sys
from dataclasses import replace

import pytest

from convoy.advise.bound import bound
from convoy.advise.choose import HEADROOM, advise
from convoy.advise.traffic import Traffic, parse
from convoy.advise.words import lines
from convoy.errors import InputError
from convoy.report.rates import rows
from convoy.report.row import Conditions, conditions
from convoy.results.scenario import Pacing, Scenario, SetupSpec
from convoy.results.trials import GoalResult, Point, Search

CHAIN = ("firewall", "router")
NATIVE = Conditions(convoys=22, aggregates=True)


def row(device, functions, mpps, size="64", notes=(), under=Conditions(), role="device"):  # noqa: B008
    point = Point(
        scenario="s", setup="+".join(functions), device=device, role=role,
        functions=functions, size=size, repeat=0,
    )  # fmt: skip
    goal = GoalResult(goal="pdr", rate_pps=mpps * 1e6, lower_pps=1, upper_pps=2, regular=True)
    (result,) = rows([], [Search(point=point, outcome="measured", goals=(goal,))])
    return replace(result, notes=tuple(notes), conditions=under)


MEASURED = [
    row("convoy", ("firewall",), 10.0),
    row("convoy", ("router",), 10.0),
    row("convoy", CHAIN, 8.0),
    row("ovs-dpdk", ("firewall",), 6.0),
    row("ovs-dpdk", ("router",), 3.0),
    row("vm", ("firewall",), 90.0, notes=["emulated: not comparable"]),
    row("vm", ("router",), 90.0, notes=["emulated: not comparable"]),
    row("linux", ("firewall",), 1.0),
    row("dummy", CHAIN, 99.0),
    row("testpmd", (), 13.0),
    row("convoy", CHAIN, 9.0, role="control"),
]


def output(advice):
    return "\n".join(lines(advice))


def test_the_fewest_cores_win_and_a_chain_measured_whole_is_taken_as_it_is():
    advice = advise("web", CHAIN, Traffic(2e6, "64"), MEASURED)
    assert [option.way.device for option in advice.options] == ["convoy", "ovs-dpdk"]
    best, other = advice.options
    assert (best.capacity_pps, best.whole, best.cores) == (8e6, True, 1)
    # Not measured whole: its parts' times add up, 1/6 + 1/3 = 1/2 us.
    assert (other.capacity_pps, other.whole, other.cores) == (pytest.approx(2e6), False, 2)
    assert best.clock_share(2e6) == pytest.approx(2 / 8 / HEADROOM)


def test_what_is_emulated_a_curve_or_incomplete_is_no_option():
    advice = advise("web", CHAIN, Traffic(2e6, "64"), MEASURED)
    assert advice.passed_over == (
        "a virtual machine, inline: emulated: not comparable",
        "a container (kernel): router was not measured on one core of it",
    )


@pytest.mark.parametrize(
    "under",
    [
        NATIVE,  # the tester sent convoys
        Conditions(convoys=1, aggregates=True),  # they left in convoys
        Conditions(chains=3),
        Conditions(cores=4, queues=4),
        Conditions(queues=2),
        Conditions(evenly=False),
        Conditions(deployment="pipeline"),
        Conditions(options=(("datapath", "dpdk"),)),
    ],
)
def test_plain_traffic_is_promised_no_rate_measured_otherwise(under):
    faster = row("convoy", CHAIN, 66.5, under=under)
    advice = advise("web", CHAIN, Traffic(20e6, "64"), [*MEASURED, faster])
    inline = next(o for o in advice.options if str(o.way) == "convoy, inline")
    assert inline.used[0].rate_pps == 8e6
    assert inline.capacity_pps == 8e6


def test_a_rate_of_convoys_is_advice_for_convoys_of_as_many_packets_only():
    measured = [*MEASURED, row("convoy", CHAIN, 66.5, under=NATIVE)]
    traffic = parse("20 Mpps 64 in convoys of 22")
    advice = advise("web", CHAIN, traffic, measured)
    assert [(o.used[0].rate_pps, o.cores) for o in advice.options] == [(66.5e6, 1)]
    assert "66.50 Mpps (s: firewall+router; 64 B convoys of 22, 1 core)" in output(advice)
    other = advise("web", CHAIN, replace(traffic, convoys=8), measured)
    assert "convoys of 8; with other functions or sizes there are convoys of 22" in other.refusal


def test_of_rows_that_measured_the_same_the_lowest_counts_and_is_named():
    slower = row("convoy", CHAIN, 5.0, under=Conditions(entries=10, flows=100_000))
    advice = advise("web", CHAIN, Traffic(2e6, "64"), [*MEASURED, slower])
    assert advice.options[0].capacity_pps == 5e6
    row_of = "5.00 Mpps (s: firewall+router; 64 B plain packets, 1 core, 10 routes or rules, "
    assert f"measured whole: firewall → router {row_of}100,000 flows)" in output(advice)


def test_several_cores_are_advised_as_they_were_measured():
    two = row("convoy", CHAIN, 14.0, under=Conditions(cores=2, queues=2))
    four = row("convoy", CHAIN, 20.0, under=Conditions(cores=4, queues=4))
    measured = [*MEASURED, two, four]
    best = advise("web", CHAIN, Traffic(15e6, "64"), measured).options[0]
    assert (best.cores, best.measured_cores) == (4, True)
    text = output(advise("web", CHAIN, Traffic(15e6, "64"), measured))
    assert "2 cores 1.8 times as much, 14.00 Mpps" in text
    assert "4 cores 2.5 times as much, 20.00 Mpps" in text
    assert "not measured for this chain" not in text
    more = advise("web", CHAIN, Traffic(40e6, "64"), measured).options[0]
    assert (more.cores, more.measured_cores) == (7, False)  # 40 / (8 * 0.8), and more than four


def test_what_was_not_measured_of_cores_and_servers_is_said_where_that_is_so():
    text = output(advise("web", CHAIN, Traffic(20e6, "64"), MEASURED))
    assert "at least 4 cores, if flows spread evenly" in text
    assert "one core: 8.00 Mpps, 6.40 with 80% load on it: not enough" in text
    assert "several cores: not measured for this chain" in text
    assert "a second server, with a function on each: not measured (scenario numa)" in text
    apart = Conditions(deployment="process", options=(("link", "veth"),))
    text = output(
        advise(
            "web", CHAIN, Traffic(2e6, "64"), [*MEASURED, row("convoy", CHAIN, 0.5, under=apart)]
        )
    )
    assert "a second server, with a function on each: 0.50 Mpps (s: firewall+router;" in text


@pytest.mark.parametrize(
    ("cycles", "kind"),
    [
        ({"64": 30.0, "1500": 33.0}, "I/O-bound"),
        ({"64": 30.0, "1500": 900.0}, "compute-bound"),
        ({"64": 30.0, "1500": 45.0}, "between"),
        ({"64": 30.0}, "not known"),
        ({"64": 30.0, "128": 30.0}, "not known"),  # too much alike to tell
        ({}, "not known"),
    ],
)
def test_what_a_function_is_bound_by_is_measured_or_not_known(cycles, kind):
    measured = [
        replace(row("convoy", ("router",), 1.0, size=size), function_cycles=(value,))
        for size, value in cycles.items()
    ]
    result = bound("router", [*measured, row("convoy", ("firewall",), 1.0, size="1500")])
    assert result.kind == kind


@pytest.mark.parametrize(
    ("functions", "size", "words"),
    [
        (("firewall", "nat"), "64", "nothing was measured for nat at 64; at that size there are "),
        (CHAIN, "1500", "measured sizes: 64"),
        ((), "64", "nothing was measured for a wire"),
    ],
)
def test_it_does_not_guess(functions, size, words):
    advice = advise("web", functions, Traffic(1e6, size), MEASURED)
    assert advice.options == ()
    assert words in advice.refusal


def test_where_each_function_is_fastest_is_said():
    each = advise("web", CHAIN, Traffic(1e6, "64"), MEASURED).each
    result = [way.device for way, _ in each["firewall"]]
    assert result == ["vm", "convoy", "ovs-dpdk", "linux"]


def test_a_plan_says_under_what_its_setups_were_measured():
    scenario = Scenario(
        title="x", source="y", asks="z", devices=("convoy",), flows=1000,
        pacing=Pacing(burst_pkts=32),
        setups={
            "a": SetupSpec(functions=("router",), entries=10, queues=2, cores=2, convoys=22,
                           options={"convoy": {"convoys": "native", "memory": "128"}}),
            "b": SetupSpec(functions=("firewall", "router"), placement="other-node",
                           deployment="process"),
        },
    )  # fmt: skip
    assert conditions(scenario, "a", "convoy", "64") == Conditions(
        cores=2, queues=2, convoys=22, aggregates=True, evenly=False,
        options=(("memory", "128"),), entries=10, flows=1000,
    )  # fmt: skip
    there = conditions(scenario, "b", "convoy", "64")
    assert (there.cores, there.deployment, there.placement) == (2, "process", "other-node")


@pytest.mark.parametrize(
    ("text", "rate_pps", "size"),
    [
        ("2 Mpps 64", 2e6, "64"), ("2Mpps@64", 2e6, "64"), ("500 kpps, imix", 5e5, "imix"),
        ("12 Gb/s 1500 B", 1e6, "1500"), ("1e6 pps 128", 1e6, "128"),
    ],
)  # fmt: skip
def test_traffic_is_read(text, rate_pps, size):
    assert parse(text) == Traffic(pytest.approx(rate_pps), size)
    assert parse(f"{text}, in convoys of 22").convoys == 22


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2 Mpps",
        "fast 64",
        "2 Mpps 64 x",
        "0 pps 64",
        "1 Gb/s jumbo",
        "1 Gb/s facebook-like",
        "1 Gb/s 0",
        "1 Mpps 63",
        "1 Mpps 9019 B",
        "1 Mpps " + "6" * 5000,
        "1 Mpps \u0666\u0664",
        "1e400 pps 64",
        "1 Mpps 64 in convoys of 0",
    ],
)
def test_traffic_that_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match="--traffic: '"):
        parse(text)


CHAIN_FILE = """\
ports: {a: {null: }, b: {null: }}
functions:
  fw: {firewall: {default: allow}}
  rtr: {router: {routes: [default via 192.0.2.1 dev b], neighbours: {192.0.2.1: 02:00:00:00:00:01}}}
  mac: {l2fwd: {mode: swap}}
chains: {web: {from: a, to: b, path: [PATH]}}
"""


def test_the_command_refuses_a_curve_as_evidence(tmp_path):
    convoy = [sys.executable, "-c", "from convoy.cli.main import main; main()"]
    results, chain = tmp_path / "run", tmp_path / "chain.yaml"
    chain.write_text(CHAIN_FILE.replace("PATH", "fw, rtr"))
    subprocess.run(
        [*convoy, "bench", "run", "baseline", "--devices", "dummy", "--quick", "--output", results],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    command = [*convoy, "advise", chain, "--traffic", "1 Mpps 64", "--results", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no advice: nothing was measured for firewall, router at 64" in done.stdout
    assert "web: not measured, so no advice" in done.stderr
