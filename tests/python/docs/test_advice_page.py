# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The table of the held-out check says what the results beside its page say."""

import json
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from convoy.advise.check import Check, Compared, Delayed, check
from convoy.cli.advise import _profile
from convoy.report.run_data import read
from convoy.sim.saved import Way, compare

from .pages import ROOT

PAGE = ROOT / "docs/measurements/advice.md"


@pytest.fixture(scope="module")
def result() -> Check:
    return check(read([PAGE.with_suffix(".tar.xz")]).rows)


def ways(result: Check) -> dict[str, list[Compared]]:
    ours = [one for one in result.compared if one.kind.device == "convoy"]
    plain = [one for one in ours if one.chain.form != "convoys"]
    return {
        "our node, one process, one by one": [one for one in plain if not one.chain.link],
        "a process for each function, one by one": [one for one in plain if one.chain.link],
        "in convoys": [one for one in ours if one.chain.form == "convoys"],
        "Open vSwitch": [one for one in result.compared if one.kind.device == "ovs-dpdk"],
        "all": list(result.compared),
    }


def row(name: str, some: Sequence[Compared]) -> str:
    errors = [abs(one.error) for one in some]
    width = statistics.median(one.interval for one in some)
    inside = sum(one.inside for one in some)
    return (
        f"| {name} | {len(some)} | {statistics.median(errors):.1%} [{max(errors):.1%}] | "
        f"{inside} | {width:.0%} |"
    ).replace("%", " %")


def test_the_table_is_that_of_the_results(result):
    rows = [row(name, some) for name, some in ways(result).items()]
    lines = PAGE.read_text("utf-8").splitlines()
    assert [line for line in lines if line in rows] == rows, "\n".join(rows)


def words() -> str:
    return " ".join(PAGE.read_text("utf-8").split())


def order(result: Check) -> str:
    pairs = sum(one.pairs for one in result.choices)
    turned = sum(len(one.turned) for one in result.choices)
    return f"{pairs - turned} of {pairs} pairs of ways that differ beyond noise"


def choices(result: Check) -> str:
    best = sum(one.advised is one.best for one in result.choices)
    return (
        f"In {best} of {len(result.choices)} choices the advised way was the best of those that "
        f"were measured; in {len(result.beaten)} another one was better beyond noise."
    )


def latencies(some: Sequence[Delayed]) -> str:
    errors = [abs(one.error) for one in some]
    return (
        f"median error {statistics.median(errors):.1%}, at most {max(errors):.1%}, "
        f"{sum(one.inside for one in some)} of {len(some)} rows inside their intervals"
    ).replace("%", " %")


def test_latencies_are_those_of_the_results(result):
    assert {one.load for one in result.delayed} == {"1 Mpps"}
    in_convoys = [one for one in result.delayed if one.row.chain.form == "convoys"]
    singly = [one for one in result.delayed if one not in in_convoys]
    assert f"one by one {latencies(singly)}" in words()
    assert f"in convoys {latencies(in_convoys)}" in words()


def test_the_choices_are_those_of_the_results(result):
    assert choices(result) in words()
    assert f"Of all ways, too, the order is right: {order(result)}" in words()
    assert result.holds


def test_the_reference_run_says_what_the_page_says():
    again = check(read([ROOT / "docs/measurements/reference.tar.xz"]).rows)
    worst = max(abs(one.error) for one in again.compared)
    inside = sum(one.inside for one in again.compared)
    errors = f"median error {again.median_error:.1%}, at most {worst:.1%};".replace("%", " %")
    rows = f"{inside} of {len(again.compared)} rows are inside their intervals."
    assert f"docs/measurements/reference.tar.xz`: {errors} {rows} {choices(again)}" in words()
    assert again.holds
    assert f"Latencies in it: {latencies(again.delayed)}" in words()
    assert f"The order is right for {order(again)}" in words()


def numbers(document: dict[str, Any], place: str = "") -> dict[str, float]:
    result = {}
    for key, value in document.items():
        if isinstance(value, dict):
            result |= numbers(value, f"{place}{key}.")
        elif isinstance(value, int | float):
            result[place + key] = value
    return result


def saved(way: Way) -> str:
    waits = {None: "no", 0.0: "0", 5.0: "5 us", 20.0: "20 us"}[way.wait_us]
    wait = ("yes" if way.wait_us else "no") if way.node == "paper" else waits
    through = way.packets_at_sink + way.dropped_packets
    lost = f"{100 * way.dropped_packets / through:.1f} %" if way.dropped_packets else "0"
    each = (1e6 * seconds for seconds in (way.p50_s, way.p99_s))
    latency = " / ".join(f"{us:,.0f}" if us >= 100 else f"{us:.3g}" for us in each)
    return (
        f"| {way.topology}, {way.offered_pps / 1e6:.1f} | {way.node} | {wait} | "
        f"{100 * way.frames_saved:.1f} % | {way.bytes_per_packet:.1f} | {way.cpu_ns:.0f} | "
        f"{way.busy_cores:.2f} | {lost} | {latency} |"
    )


def test_what_is_saved_is_simulated_with_costs_of_the_results(tmp_path):
    run = read([PAGE.with_suffix(".tar.xz")])
    _profile(run, tmp_path / "node-epyc.json")
    ours = ROOT / "convoy/sim/profiles/node-epyc.json"
    made = numbers(json.loads((tmp_path / "node-epyc.json").read_text()))
    assert numbers(json.loads(ours.read_text())) == pytest.approx(made, rel=1e-3, abs=0.02)
    rows = [saved(way) for load in (1.0, 8.0) for way in compare(load=load)]
    lines = PAGE.read_text("utf-8").splitlines()
    assert [line for line in lines if line in rows] == rows, "\n".join(rows)
