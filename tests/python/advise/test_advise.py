# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Advice by rows that are given: what is chosen, what is refused, and what it says it rests on."""

import subprocess
import sys
from dataclasses import replace

import pytest

from convoy.advise.choose import HEADROOM, advise
from convoy.advise.traffic import Traffic, parse
from convoy.errors import InputError
from convoy.report.rates import rows
from convoy.results.trials import Goal, Point, Search

CHAIN = ("firewall", "router")


def row(device, functions, mpps, size="64", notes=(), role="device"):
    point = Point(
        scenario="s", setup="+".join(functions), device=device, role=role,
        functions=functions, size=size, repeat=0,
    )  # fmt: skip
    goal = Goal(goal="pdr", rate_pps=mpps * 1e6, lower_pps=1, upper_pps=2, regular=True)
    (found,) = rows([], [Search(point=point, outcome="found", goals=(goal,))])
    return replace(found, notes=tuple(notes))


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


def test_the_fewest_cores_win_and_a_chain_measured_whole_is_taken_as_it_is():
    advice = advise("web", CHAIN, Traffic(2e6, "64"), MEASURED)
    assert [option.arm for option in advice.options] == ["convoy", "ovs-dpdk"]
    best, other = advice.options
    assert (best.capacity_pps, best.whole, best.cores) == (8e6, True, 1)
    # Not measured whole: its parts' times add up, 1/6 + 1/3 = 1/2 us.
    assert (other.capacity_pps, other.whole, other.cores) == (pytest.approx(2e6), False, 2)
    assert best.clock_share(2e6) == pytest.approx(2 / 8 / HEADROOM)


def test_what_is_emulated_a_curve_or_incomplete_is_no_option():
    advice = advise("web", CHAIN, Traffic(2e6, "64"), MEASURED)
    assert advice.passed_over == (
        "vm: emulated: not comparable",
        "linux: router was not measured on it",
    )


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
    assert [number.arm for number in each["firewall"]] == ["vm", "convoy", "ovs-dpdk", "linux"]


@pytest.mark.parametrize(
    ("text", "rate_pps", "size"),
    [
        ("2 Mpps 64", 2e6, "64"), ("2Mpps@64", 2e6, "64"), ("500 kpps, imix", 5e5, "imix"),
        ("12 Gb/s 1500 B", 1e6, "1500"), ("1e6 pps 128", 1e6, "128"),
    ],
)  # fmt: skip
def test_traffic_is_read(text, rate_pps, size):
    assert parse(text) == Traffic(pytest.approx(rate_pps), size)


@pytest.mark.parametrize(
    "text", ["", "2 Mpps", "fast 64", "2 Mpps 64 x", "0 pps 64", "1 Gb/s imix"]
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
