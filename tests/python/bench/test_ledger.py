# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Claims of the papers against made-up results: some that hold, some that do not."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report.export import document as exported
from convoy.report.html import html
from convoy.report.ledger.agreement import verdicts
from convoy.report.ledger.page import Claims, claims_of, page
from convoy.report.run_data import read
from convoy.report.run_document import document
from convoy.report.text import markdown
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.documents import Cannot, Host
from convoy.results.folder import RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import SetupSpec
from convoy.results.simulated import Simulated
from convoy.results.trials import GoalResult, Point, Search, Trial

from .results import latency, plan, scenario
from .results import result as made_up

HOLDS, CONTRADICTED = "holds", "contradicted"
UNCLEAR, UNTESTED = "not significant here", "not testable here"
SETUPS = {name: SetupSpec() for name in "abcde"}
TEXT = """\
documents: {paper: A paper}
claims:
  - id: it
    source: {document: paper, section: "1"}
    says: Something is so.
    scenario: x
    because: It is another machine.
    predicate: {PREDICATE}
    each: {EACH}
"""


def point(setup, device, size, repeat, speed=1.0):
    return Point(scenario="x", setup=setup, device=device, functions=(), size=str(size),
                 repeat=repeat, cpu_speed=speed)  # fmt: skip


def searched(where, rate, bound=False):
    goal = GoalResult(goal="pdr", rate_pps=rate, lower_pps=rate, upper_pps=None,
                      regular=not bound, lower_bound=bound)  # fmt: skip
    return Search(point=where, outcome="measured", goals=(goal,))


def tried(where, pps, p50=1000, lost=0, notes=()):
    total = {"offered_pkts": 100 + lost, "received_pkts": 100, "lost_pkts": lost,
             "mean_frame_bytes": 64.0, "received_pps": 1.0, "loss_bursts_pkts": [],
             "refused_bursts_pkts": [],
             "latency": latency(p50, 2 * p50, [(p50, 100)])}  # fmt: skip
    return Trial(
        point=where, purpose="latency", load=f"{pps / 1e6:g} Mpps", rate_pps=pps, duration_s=0.1,
        verdict="passed", commands=(), result=made_up(total=total), notes=notes,
    )  # fmt: skip


def run_of(tmp_path, rates=(), delays=(), more=(), cannot=()):
    """rates: (setup, device, size): Mpps of the rounds; negative: lower bounds.

    delays: (setup, pps): (p50 of the rounds in ns, lost of 100).
    """
    folder = RunFolder(tmp_path / "run")
    folder.create(plan(x=scenario(setups=SETUPS, devices=("convoy", "testpmd"))))
    folder.write_host(Host(cannot=cannot))
    for (setup, device, size), values in dict(rates).items():
        for i, mpps in enumerate(values):
            where = point(setup, device, size, i)
            folder.append(tried(where, 5.0))
            folder.append(searched(where, abs(mpps) * 1e6, mpps < 0))
    for (setup, pps), (p50s, lost) in dict(delays).items():
        for i, p50 in enumerate(p50s):
            folder.append(tried(point(setup, "convoy", 64, i), pps, p50, lost))
    for line in more:
        folder.append(line)
    return read([folder.path])


def ledger_file(tmp_path, predicate, each="{}", caveat=""):
    path = tmp_path / "claims.yaml"
    text = TEXT.replace("{PREDICATE}", predicate).replace("{EACH}", each)
    path.write_text(f"{text}    caveat: {caveat!r}\n")
    return path


def verdict(tmp_path, run, predicate, each="{}", caveat=""):
    (one,) = claims_of(run, ledger_file(tmp_path, predicate, each, caveat), SCENARIOS).evaluations
    return one


A, B, C = "{setup: a}", "{setup: b}", "{setup: c}"
EACH = "{device: [convoy], size: [64]}"
SIZES = "{device: [convoy]}"
TEN, NINE, NEARLY = (10, 10.1, 9.9), (8, 8.1, 7.9), (9.95, 10.2, 9.8)


def rates(**by_setup):
    return {(setup, "convoy", 64): values for setup, values in by_setup.items()}


def by_size(setup, values):
    return {(setup, "convoy", size): values for size, values in values.items()}


CASES = [
    # predicate, each, rates, verdict
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=TEN, b=NINE), HOLDS),
    (f"{{order: {{of: [{B}, {A}]}}}}", EACH, rates(a=TEN, b=NINE), CONTRADICTED),
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=TEN, b=NEARLY), UNCLEAR),
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=(10,), b=(5,)), UNCLEAR),  # one round
    (f"{{order: {{of: [{A}, {B}, {C}]}}}}", EACH, rates(a=TEN, b=NINE, c=(6, 6, 6)), HOLDS),
    (f"{{order: {{of: [{A}, {B}, {C}]}}}}", EACH, rates(a=TEN, b=NINE, c=TEN), CONTRADICTED),
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=TEN), UNTESTED),
    # A round is far off: others took from it. The best one counts, for another confirms it.
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=(10, 7, 9.9), b=(8, 8, 8)), HOLDS),
    (f"{{order: {{of: [{B}, {A}]}}}}", EACH, rates(a=(10, 7, 9.9), b=(8, 8, 8)), CONTRADICTED),
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=(10, 7, 9.4), b=(8, 8, 8)), UNCLEAR),
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=(10, 7, 9.9), b=(9.2, 5, 9)), UNCLEAR),
    (f"{{value: {{of: {A}, least: 9}}}}", EACH, rates(a=(10, 7, 9.9)), HOLDS),
    (f"{{value: {{of: {A}, least: 9.2}}}}", EACH, rates(a=(10, 7, 9.9)), UNCLEAR),
    (f"{{value: {{of: {{setup: a, per: {B}}}, least: 1.1}}}}", EACH,
     rates(a=(10, 7, 9.9), b=(8, 4, 8)), HOLDS),
    (f"{{ratio: {{of: {A}, over: {{setup: b, plus: [{C}]}}, most: 1}}}}", EACH,
     rates(a=(10, 7, 9.9), b=(8, 4, 8), c=(8, 4, 8)), HOLDS),
    # A lower bound's best round is one, too.
    (f"{{order: {{of: [{A}, {B}]}}}}", EACH, rates(a=(-10, -7, -10), b=(8, 8, 8)), HOLDS),
    (f"{{ratio: {{of: {A}, over: {B}, most: 2}}}}", EACH, rates(a=(-10, -7, -10), b=(8, 8, 8)),
     UNCLEAR),
    (f"{{ratio: {{of: {A}, over: {B}, least: 1.2, most: 1.3}}}}", EACH, rates(a=TEN, b=NINE),
     HOLDS),
    (f"{{ratio: {{of: {A}, over: {B}, least: 2}}}}", EACH, rates(a=TEN, b=NINE), CONTRADICTED),
    (f"{{ratio: {{of: {A}, over: {B}, most: 1.1}}}}", EACH, rates(a=TEN, b=NINE), CONTRADICTED),
    (f"{{ratio: {{of: {A}, over: {B}, least: 1.25}}}}", EACH, rates(a=TEN, b=NINE), UNCLEAR),
    # Lower bounds say that it is more, and not how much.
    (f"{{ratio: {{of: {A}, over: {B}, least: 2}}}}", EACH, rates(a=(-10, -10, -10), b=(4, 4, 4)),
     HOLDS),
    (f"{{ratio: {{of: {A}, over: {B}, most: 3}}}}", EACH, rates(a=(-10, -10, -10), b=(4, 4, 4)),
     UNCLEAR),
    (f"{{value: {{of: {A}, least: 9, most: 11}}}}", EACH, rates(a=TEN), HOLDS),
    (f"{{value: {{of: {A}, least: 12}}}}", EACH, rates(a=TEN), CONTRADICTED),
    (f"{{value: {{of: {A}, least: 10}}}}", EACH, rates(a=TEN), UNCLEAR),
    (f"{{value: {{of: {A}, least: 5}}}}", EACH, rates(a=(10,)), UNCLEAR),
    ("{monotone: {of: {}, along: setup, points: [c, b, a], direction: rises}}", EACH,
     rates(a=TEN, b=NINE, c=(6, 6, 6)), HOLDS),
    ("{monotone: {of: {}, along: setup, points: [c, b, a], direction: falls}}", EACH,
     rates(a=TEN, b=NINE, c=(6, 6, 6)), CONTRADICTED),
    ("{monotone: {of: {}, along: setup, points: [c, b, a], direction: rises}}", EACH,
     rates(a=TEN, b=NINE, c=NINE), UNCLEAR),
    ("{from: {of: {setup: a}, along: size, points: [64, 128, 256], at: 128, least: 9}}", SIZES,
     by_size("a", {64: NINE, 128: TEN, 256: TEN}), HOLDS),
    ("{from: {of: {setup: a}, along: size, points: [64, 128, 256], at: 128, least: 9}}", SIZES,
     by_size("a", {64: TEN, 128: TEN, 256: TEN}), CONTRADICTED),  # earlier than claimed
    ("{from: {of: {setup: a}, along: size, points: [64, 128, 256], at: 128, least: 9}}", SIZES,
     by_size("a", {64: NINE, 128: TEN, 256: NINE}), CONTRADICTED),  # not from there on
    ("{from: {of: {setup: a}, along: size, points: [64, 128, 256], at: 128, least: 9}}", SIZES,
     by_size("a", {64: NINE, 256: TEN}), UNTESTED),  # --quick leaves out a size
    ("{from: {of: {setup: a}, over: {setup: b}, along: size, points: [64, 128], at: 128,"
     " least: 1.1}}", SIZES,
     by_size("a", {64: TEN, 128: TEN}) | by_size("b", {64: TEN, 128: NINE}), HOLDS),
    ("{crossing: {of: {setup: a}, over: {setup: b}, along: size, points: [64, 128, 256],"
     " between: [64, 256]}}", SIZES,
     by_size("a", {64: TEN, 128: TEN, 256: NINE}) | by_size("b", {64: NINE, 128: TEN, 256: TEN}),
     HOLDS),
    ("{crossing: {of: {setup: a}, over: {setup: b}, along: size, points: [64, 256],"
     " between: [64, 256]}}", SIZES,
     by_size("a", {64: TEN, 256: TEN}) | by_size("b", {64: NINE, 256: NINE}), CONTRADICTED),
    (f"{{all: [{{order: {{of: [{A}, {B}]}}}}, {{value: {{of: {A}, least: 9}}}}]}}", EACH,
     rates(a=TEN, b=NINE), HOLDS),
    (f"{{all: [{{order: {{of: [{A}, {B}]}}}}, {{value: {{of: {A}, least: 11}}}}]}}", EACH,
     rates(a=TEN, b=NINE), CONTRADICTED),
    # A sum, and a quotient of quotients.
    (f"{{ratio: {{of: {A}, over: {{setup: b, plus: [{C}]}}, most: 1}}}}", EACH,
     rates(a=TEN, b=NINE, c=NINE), HOLDS),
    (f"{{ratio: {{of: {C}, over: {{setup: a, plus: [{B}]}}, least: 1}}}}", EACH,
     rates(a=TEN, b=NINE, c=NINE), CONTRADICTED),
    (f"{{order: {{of: [{{setup: a, per: {B}}}, {{setup: a, per: {C}}}]}}}}", EACH,
     rates(a=TEN, b=(4, 4, 4), c=(5, 5, 5)), HOLDS),
    (f"{{order: {{of: [{{setup: a, per: {C}}}, {{setup: a, per: {B}}}]}}}}", EACH,
     rates(a=TEN, b=(4, 4, 4), c=(5, 5, 5)), CONTRADICTED),
    # Over a lower bound a quotient is at most so much.
    (f"{{value: {{of: {{setup: a, per: {B}}}, least: 0.9}}}}", EACH,
     rates(a=TEN, b=(-10, -10, -10)), UNCLEAR),
    (f"{{value: {{of: {{setup: a, per: {B}}}, most: 1.1}}}}", EACH,
     rates(a=TEN, b=(-10, -10, -10)), HOLDS),
    (f"{{order: {{of: [{{setup: a, per: {B}}}, {{setup: a, per: {C}}}]}}}}", EACH,
     rates(a=TEN, b=(-4, -4, -4), c=(5, 5, 5)), UNCLEAR),
    (f"{{order: {{of: [{{setup: a, per: {B}}}, {{setup: a, per: {C}}}]}}}}", EACH,
     rates(a=TEN, b=(5, 5, 5), c=(-4, -4, -4)), UNCLEAR),
    (f"{{order: {{of: [{{setup: a, per: {B}}}, {{setup: a, per: {C}}}]}}}}", EACH,
     rates(a=TEN, b=(-6, -6, -6), c=(5, 5, 5)), CONTRADICTED),
    (f"{{value: {{of: {{setup: a, per: {B}}}, most: 1.1}}}}", EACH,
     rates(a=(-10, -10, -10), b=(-10, -10, -10)), UNCLEAR),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "each", "measured", "expected"), CASES)
def test_a_predicate_is_evaluated(tmp_path, predicate, each, measured, expected):
    one = verdict(tmp_path, run_of(tmp_path, measured), predicate, each)
    assert one.verdict == expected, one.why
    assert ("It is another machine." in one.why) == (expected == CONTRADICTED)


def test_both_numbers_stand_beside_a_verdict(tmp_path):
    run = run_of(tmp_path, rates(a=TEN, b=NINE))
    one = verdict(tmp_path, run, f"{{ratio: {{of: {A}, over: {B}, least: 2}}}}", EACH)
    assert "at least 2" in one.why
    assert "10 [9.9 .. 10.1] Mpps / 8 [7.9 .. 8.1] Mpps" in one.why
    (part,) = one.as_json()["parts"]
    assert part["here"]["median"] == pytest.approx(1.25, rel=0.01)
    assert part["here"]["low"] < 1.25 < part["here"]["high"] < 2


@pytest.mark.parametrize(
    ("switch", "vnf", "expected"),
    [((300, 310, 290), (100, 104, 98), HOLDS), ((100, 104, 98), (300, 310, 290), CONTRADICTED)],
)
def test_parts_of_a_device_are_compared_by_their_cycles(tmp_path, switch, vnf, expected):
    run = run_of(tmp_path, rates(a=TEN))
    row = replace(run.rows[0], part_cycles={"switch": switch, "VNF 1": vnf})
    sides = "{metric: cycles, side: switch}, {metric: cycles, side: VNF 1}"
    predicate = f"{{order: {{of: [{sides}]}}}}"
    each = "{device: [convoy], setup: [a], size: [64]}"
    one = verdict(tmp_path, replace(run, rows=(row,)), predicate, each)
    assert one.verdict == expected, one.why
    assert "switch of convoy, a, 64 B / VNF 1 of convoy, a, 64 B" in one.why
    one = verdict(tmp_path, run, predicate, each)
    assert one.verdict == UNTESTED
    assert "switch of convoy, a, 64 B: no cycles was measured" in one.why


def test_reason_and_caveat_are_sentences_of_the_verdict(tmp_path):
    run = run_of(tmp_path, rates(a=TEN, b=NINE))
    orders = [f"{{order: {{of: [{A}, {B}]}}}}", f"{{order: {{of: [{B}, {A}]}}}}"]
    holds, contradicted = (verdict(tmp_path, run, one, EACH, "Not quite.") for one in orders)
    assert (holds.verdict, contradicted.verdict) == (HOLDS, CONTRADICTED)
    assert holds.why.endswith("Mpps. Not quite.")
    assert contradicted.why.endswith("Mpps. It is another machine. Not quite.")


def test_a_claim_of_several_devices_is_tested_on_those_that_are_here(tmp_path):
    measured = rates(a=TEN, b=NINE)
    cannot = (Cannot("x", "", "testpmd", "not installed: dpdk-testpmd"),)
    predicate, each = f"{{order: {{of: [{A}, {B}]}}}}", "{device: [convoy, testpmd], size: [64]}"
    one = verdict(tmp_path, run_of(tmp_path, measured, cannot=cannot), predicate, each)
    assert (one.verdict, one.why.partition("Not here: ")[2]) == (HOLDS, "testpmd.")
    assert one.parts[1].numbers == "testpmd: not installed: dpdk-testpmd"
    one = verdict(tmp_path, run_of(tmp_path / "2", {}, {("a", 1e6): ((1, 1), 0)}, cannot=cannot),
                  predicate, "{device: [testpmd], size: [64]}")  # fmt: skip
    assert (one.verdict, one.why) == (UNTESTED, "testpmd: not installed: dpdk-testpmd")
    slower = {(s, "testpmd", 64): v for s, v in (("a", NINE), ("b", TEN))}
    one = verdict(tmp_path, run_of(tmp_path / "3", measured | slower), predicate, each)
    assert one.verdict == CONTRADICTED


P50 = "{metric: latency-p50, pps: 1.0e+6, setup: %s}"
LOST = "{metric: lost, pps: 1.0e+6, setup: %s}"


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (f"{{order: {{of: [{P50 % 'a'}, {P50 % 'b'}]}}}}", HOLDS),
        (f"{{value: {{of: {P50 % 'a'}, least: 1.9, most: 2.1}}}}", HOLDS),  # us
        (f"{{order: {{of: [{P50 % 'b'}, {P50 % 'a'}]}}}}", CONTRADICTED),
        # Others only add to a delay.
        (f"{{order: {{of: [{P50 % 'a'}, {P50 % 'd'}]}}}}", HOLDS),
        (f"{{order: {{of: [{P50 % 'a'}, {P50 % 'e'}]}}}}", UNCLEAR),  # nothing confirms the least
        (f"{{order: {{of: [{LOST % 'a'}, {LOST % 'b'}]}}}}", HOLDS),  # some, and none
        (f"{{order: {{of: [{LOST % 'b'}, {LOST % 'a'}]}}}}", CONTRADICTED),
        (f"{{order: {{of: [{LOST % 'b'}, {LOST % 'c'}]}}}}", UNCLEAR),  # none, and none
        (f"{{ratio: {{of: {LOST % 'b'}, over: {LOST % 'c'}, most: 0.2}}}}", UNCLEAR),
        (f"{{value: {{of: {LOST % 'a'}, least: 10, most: 40}}}}", HOLDS),  # per cent
    ],
)
def test_latency_and_loss_are_compared_by_round(tmp_path, predicate, expected):
    delays = {
        ("a", 1e6): ((2000, 2020, 1990), 25),
        ("b", 1e6): ((1000, 1010, 1005), 0),
        ("c", 1e6): ((1000, 1010, 1005), 0),
        ("d", 1e6): ((1010, 5000, 1000), 0),
        ("e", 1e6): ((1010, 5000, 900), 0),
    }
    assert verdict(tmp_path, run_of(tmp_path, {}, delays), predicate, EACH).verdict == expected


def test_without_a_loss_there_is_no_loss_period_and_the_ledger_says_why(tmp_path):
    run = run_of(tmp_path, delays={("a", 1e6): ((1000, 1000, 1000), 0)})
    of = "{metric: loss-period, pps: 1.0e+6, setup: a, device: convoy, size: 64}"
    one = verdict(tmp_path, run, f"{{value: {{of: {of}, least: 31}}}}")
    assert (one.verdict, one.why) == (UNTESTED, "convoy, a, 64 B, 1 Mpps: no packet was lost")


def applications(mbps, hosts_busy=None):
    """Return trials of iperf3, three rounds behind each setup."""
    return [
        ApplicationTrial(
            point=ApplicationPoint(scenario="x", setup=setup, device="convoy", functions=(),
                                   port_kind="af_packet", application="iperf3-udp",
                                   frame_bytes=64, repeat=repeat),
            outcome="measured", duration_s=1, figure="mbps", figures={"mbps": value + repeat},
            hosts_busy_share=(hosts_busy or {}).get(setup),
        )
        for setup, value in mbps.items()
        for repeat in range(3)
    ]  # fmt: skip


IPERF3 = "{metric: iperf3-udp, setup: %s}"


@pytest.mark.parametrize(
    ("busy", "verdict_of", "words"),
    [
        ({"a": 0.5, "b": 0.5}, CONTRADICTED, "50 .. 52] Mbit/s / 101"),
        ({"a": 0.5, "b": 0.99}, CONTRADICTED, "/ ≥ 101"),  # that was faster, and maybe more so
        ({"a": 0.99, "b": 0.5}, UNCLEAR, "≥ 51"),
        ({"a": 0.99, "b": 0.99}, UNCLEAR, "≥ 51"),
    ],
)
def test_what_hosts_with_nothing_left_got_is_a_lower_bound(tmp_path, busy, verdict_of, words):
    more = applications({"a": 50.0, "b": 100.0}, busy)
    run = run_of(tmp_path, rates(a=TEN), more=more)
    order = f"{{order: {{of: [{IPERF3 % 'a'}, {IPERF3 % 'b'}]}}}}"
    one = verdict(tmp_path, run, order, EACH)
    assert one.verdict == verdict_of
    assert words in one.why


def test_programs_in_memory_and_applications_are_quantities(tmp_path):
    rows = [{"row": "one", "cycles_per_packet": {"median": 10, "min": 9, "max": 11}},
            {"row": "two", "cycles_per_packet": {"median": 20, "min": 19, "max": 21}}]  # fmt: skip
    more = [Memory(scenario="x", what="vring", command=("b",), result={"results": rows})]
    more += applications({"a": 100.0, "b": 50.0})
    run = run_of(tmp_path, rates(a=TEN), more=more)
    part = "{metric: in-memory, part: {what: vring, figure: cycles_per_packet, row: {row: %s}}}"
    two, one = part % "two", part % "one"
    assert verdict(tmp_path, run, f"{{order: {{of: [{two}, {one}]}}}}").verdict == HOLDS
    assert verdict(tmp_path, run, f"{{order: {{of: [{one}, {two}]}}}}").verdict == CONTRADICTED
    assert verdict(tmp_path, run, f"{{value: {{of: {one}, most: 10}}}}").verdict == UNCLEAR
    order = f"{{order: {{of: [{IPERF3 % 'a'}, {IPERF3 % 'b'}]}}}}"
    assert verdict(tmp_path, run, order, EACH).verdict == HOLDS


def test_simulations_are_quantities_by_seed(tmp_path):
    links = [
        {"link": "near", "mean_bytes": [220.0, 222.0, 221.0], "frames_per_packet": [0.3] * 3},
        {"link": "far", "mean_bytes": [880.0, 860.0, 870.0], "frames_per_packet": [0.07] * 3},
    ]
    result = {"tables": [{"topology": "paper-1", "links": links}]}
    more = [Simulated(scenario="x", what="paper-topologies", command=("b",), result=result)]
    run = run_of(tmp_path, rates(a=TEN), more=more)
    part = "{metric: simulated, part: {what: paper-topologies, figure: %s, row: {link: %s}}}"
    near, far = part % ("mean_bytes", "near"), part % ("mean_bytes", "far")
    one = verdict(tmp_path, run, f"{{order: {{of: [{far}, {near}]}}}}")
    assert one.verdict == HOLDS
    assert "870 [860 .. 880] bytes" in one.why
    assert verdict(tmp_path, run, f"{{order: {{of: [{near}, {far}]}}}}").verdict == CONTRADICTED
    share = part % ("frames_per_packet", "far")
    assert verdict(tmp_path, run, f"{{value: {{of: {share}, most: 0.08}}}}").verdict == HOLDS
    other = part % ("mean_bytes", "nowhere")
    assert verdict(tmp_path, run, f"{{value: {{of: {other}, most: 1}}}}").verdict == UNTESTED


def test_a_caveat_is_shown_with_each_verdict(tmp_path):
    run = run_of(tmp_path, rates(a=TEN))
    for bound, expected in (("least: 1", HOLDS), ("most: 1", CONTRADICTED)):
        one = verdict(tmp_path, run, f"{{value: {{of: {A}, {bound}}}}}", EACH, caveat="Of a model.")
        assert one.verdict == expected
        assert one.why.endswith(". Of a model.")


def test_emulated_devices_are_no_evidence(tmp_path):
    more = [tried(point("a", "vm", 64, 0), 1e6, notes=("emulated: not comparable",))]
    more.append(searched(point("a", "vm", 64, 0), 1e6))
    run = run_of(tmp_path, {}, more=more)
    one = verdict(tmp_path, run, f"{{value: {{of: {A}, least: 1}}}}", "{device: [vm], size: [64]}")
    assert (one.verdict, one.why) == (UNTESTED, "vm: emulated: not comparable")


def test_what_was_not_run_says_what_it_takes(tmp_path):
    run = run_of(tmp_path, rates(a=TEN))
    text = TEXT.replace("{PREDICATE}", f"{{value: {{of: {A}, least: 1}}}}")
    text = text.replace("{EACH}", EACH)
    path = tmp_path / "claims.yaml"
    path.write_text(text.replace("scenario: x", "scenario: baseline").replace(
        "{setup: a}", "{setup: router}"))  # fmt: skip
    (one,) = claims_of(run, path, SCENARIOS).evaluations
    assert (one.verdict, one.why) == (UNTESTED, "convoy bench run baseline")
    path.write_text(text.replace("scenario: x", "scenario: nope\n    needs: a moon"))
    (one,) = claims_of(run, path, SCENARIOS).evaluations
    assert (one.verdict, one.why) == (UNTESTED, "needs scenario nope; a moon")


def test_two_runs_of_a_scenario_must_both_agree(tmp_path):
    folders = []
    for name, values in (("one", TEN), ("two", NINE)):
        (tmp_path / name).mkdir()
        folders.append(run_of(tmp_path / name, rates(a=values, b=NINE)).folders[0])
    path = ledger_file(tmp_path, f"{{order: {{of: [{A}, {B}]}}}}", EACH)
    (one,) = claims_of(read(folders), path, SCENARIOS).evaluations
    assert one.verdict == UNCLEAR
    assert len(one.parts) == 2
    assert (
        claims_of(read(folders), path, SCENARIOS).as_json()
        == claims_of(read(folders), path, SCENARIOS).as_json()
    )


def ledger_of(path, **orders):
    """Write a ledger of claims that the first setup's rate is above the second's."""
    head, claim = TEXT.split("  - id: it")
    for name, (a, b) in orders.items():
        predicate = f"{{order: {{of: [{a}, {b}]}}}}"
        text = claim.replace("{PREDICATE}", predicate).replace("{EACH}", EACH)
        head += f"  - id: {name}{text}"
    path.write_text(head)
    return path


@pytest.mark.parametrize(
    ("what", "one", "other", "counted", "changed"),
    [
        ("equal", rates(a=TEN, b=NINE), rates(a=TEN, b=NINE), (2, 2, 0, 0, 0), {}),
        ("moved", rates(a=TEN, b=NINE), rates(a=TEN, b=NEARLY), (2, 0, 2, 0, 0),
         {"above": (HOLDS, UNCLEAR), "below": (CONTRADICTED, UNCLEAR)}),
        ("opposite", rates(a=TEN, b=NINE), rates(a=NINE, b=TEN), (2, 0, 0, 2, 0),
         {"above": (HOLDS, CONTRADICTED), "below": (CONTRADICTED, HOLDS)}),
        ("tested by one", rates(a=TEN, b=NINE, c=NINE), rates(a=TEN, b=NINE), (2, 2, 0, 0, 1), {}),
    ],
)  # fmt: skip
def test_verdicts_of_two_runs_are_compared(tmp_path, what, one, other, counted, changed):
    path = ledger_of(tmp_path / "claims.yaml", above=(A, B), below=(B, A), third=(A, C))
    runs = []
    for name, measured in (("one", one), ("other", other)):
        (tmp_path / name).mkdir()
        runs.append(run_of(tmp_path / name, measured))
    result = verdicts(*runs, path, SCENARIOS)
    keys = ("tested", "equal", "moved", "opposite", "tested_by_one")
    assert tuple(result[key] for key in keys) == counted, what
    assert {line["id"]: (line["one"], line["other"]) for line in result["changed"]} == changed
    named = f"above ({HOLDS}, then {CONTRADICTED}), below ({CONTRADICTED}, then {HOLDS})."
    assert (named in result["summary"]) == (what == "opposite")
    assert ("1 more are tested by one" in result["summary"]) == (what == "tested by one")
    folders = [str(run.folders[0]) for run in runs]
    command = ["bench", "compare", *folders, "--claims", str(path)]
    document = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (document["schema"], document["verdicts"]) == ("convoy.bench.compare/5", result)
    shown = " ".join(CliRunner().invoke(app, command).stdout.split())
    assert shown.endswith(result["summary"])


def test_without_a_claim_that_was_tested_no_verdicts_are_compared(tmp_path):
    run = run_of(tmp_path, rates(a=TEN))
    assert verdicts(run, run, LEDGER, SCENARIOS) is None


def test_the_page_has_every_claim_its_numbers_and_the_figures(tmp_path):
    measured = by_size("a", {64: TEN, 128: TEN}) | by_size("b", {64: NINE, 128: NINE})
    run = run_of(tmp_path, measured)
    path = ledger_file(tmp_path, f"{{order: {{of: [{A}, {B}]}}}}", "{device: [convoy], size: [64]}")
    claims = claims_of(run, path, SCENARIOS)
    assert claims.sentence == (
        "1 of 1 claims of the papers hold, 0 are contradicted, 0 are not significant here, "
        "0 are not testable here"
    )
    text = html(page(run, claims))
    assert '<h2 id="x">x</h2>' in text
    assert '<a href="#x">it</a>' in text
    assert 'data-figure="figure-1"' in text
    assert "Something is so." in text
    assert "Claims of the papers" in markdown(document(run, claims))
    ledger = exported(run, claims)["ledger"]
    assert ledger["counts"] == {HOLDS: 1, CONTRADICTED: 0, UNCLEAR: 0, UNTESTED: 0}
    assert ledger["claims"][0]["verdict"] == HOLDS


def test_the_ledger_that_comes_along_is_right_and_whole(tmp_path):
    run = run_of(tmp_path, rates(a=TEN))
    claims = claims_of(run, LEDGER, SCENARIOS)
    assert isinstance(claims, Claims)
    assert len(claims.evaluations) >= 50
    assert set(claims.ledger.documents) == {one.claim.source.document for one in claims.evaluations}
    assert all(one.verdict == UNTESTED and one.why for one in claims.evaluations)
