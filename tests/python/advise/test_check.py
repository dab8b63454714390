# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The held-out check, and expectations for a chain, on rows that are made up."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from advise.test_advise import CHAIN_FILE, row
from advise.test_fit import ONE_BY_ONE, TOGETHER, parts, rows, true_cycles
from convoy.advise import check_words, expected
from convoy.advise.check import check
from convoy.advise.choose import advise
from convoy.advise.fit import Fit
from convoy.advise.model import Kind, Model, models
from convoy.advise.parts import AGGREGATED, CONVOYS, Chain, Part, on_own_cores
from convoy.advise.predict import plan, plans
from convoy.advise.servers import fits
from convoy.advise.traffic import Traffic, parse
from convoy.cli.advise import ChainAdvice, chain_lines
from convoy.errors import InputError
from convoy.frame.model import Outer
from convoy.report.packets import Delay
from convoy.report.row import Conditions

TSC_HZ = 2.6e9
KIND = Kind("convoy", "vhost-user", (), "saturation", "")
MODEL = Model(KIND, Fit(rows([*ONE_BY_ONE, *TOGETHER])), TSC_HZ, {"memif": 0.9}, ())


def made(chain, size=64, scenario="parts", times=1.0, noise=0.0):
    """Return the row of a chain that costs what it truly costs, so many times."""
    options = (("link", chain.link),) if chain.link else ()
    entries = next((part.entries for part in chain.parts if part.entries), 10)
    under = Conditions(
        deployment="process" if chain.link else "inline",
        convoys=chain.packets if chain.form != "plain" else 0,
        aggregates=chain.form != "plain", options=options, entries=entries, flows=chain.flows,
    )  # fmt: skip
    cycles = true_cycles(chain, size) * times
    rounds = {i: (cycles * (1 + noise * (i - 1)),) for i in range(3)}
    return replace(
        row("convoy", chain.functions, 1.0, size=str(size), under=under),
        scenario=scenario, setup=str(chain), saturation_cycles=rounds,
        saturation_pps={i: (TSC_HZ / some[0],) for i, some in rounds.items()}, tsc_hz=TSC_HZ,
    )  # fmt: skip


def pinned(chain, placement, size=64):
    """Return the row of a chain whose functions have a core each."""
    each = [true_cycles(one, size) for one in on_own_cores(chain, "memif", placement)]
    under = Conditions(deployment="process", cores=len(each), placement=placement,
                       options=(("link", "memif"),), entries=10)  # fmt: skip
    return replace(
        made(chain, size), setup=f"{chain}, {placement}", conditions=under,
        saturation_cycles={0: (sum(each),)},
        part_cycles={f"{i}: {part}": (cycles,)
                     for i, (part, cycles) in enumerate(zip(chain.parts, each, strict=True), 1)},
    )  # fmt: skip


PARTS = [made(chain, size) for chain in [*ONE_BY_ONE, *TOGETHER] for size in (64, 1400)]
WEB = parts("router", "firewall", "l2fwd")


def test_a_model_that_is_right_holds():
    held = [made(Chain(WEB), size, "held-out") for size in (64, 700)]
    held.append(made(Chain(WEB, link="memif"), 64, "held-out", noise=0.01))
    result = check([*PARTS, *held])
    assert result.holds
    assert result.median_error < 1e-6
    assert [(one.advised.chain.link, one.beaten) for one in result.choices] == [("", False)]
    assert check_words.lines(result)[-1] == "the check holds"


def late(one, chain, wrong=1.0):
    """Return a row with the latency that its cycles, functions and crossings make."""
    together = chain.packets if chain.form == CONVOYS else 1
    ns = 300 + 0.5 * true_cycles(chain, int(one.size)) * together + 40 * len(chain.parts)
    ns += chain.crossings * 4000
    return replace(one, delays=(Delay("1 Mpps", 1e6, (), (wrong * ns,), (), 0.0),))


def test_latency_is_compared_one_by_one_and_in_convoys():
    some = [
        late(made(chain, size), chain)
        for chain in [*ONE_BY_ONE, *TOGETHER] for size in (64, 1400)
    ]  # fmt: skip
    both = Chain(parts("firewall", "router"), CONVOYS, 8)
    chains = [Chain(WEB), Chain(WEB, link="memif"), both]
    held = [late(made(chain, 64, "held-out"), chain) for chain in chains]
    held.append(late(made(chains[0], 1400, "held-out"), chains[0], wrong=2))
    result = check([*some, *held])
    assert [one.error for one in result.delayed] == pytest.approx([0, 0, 0, -0.5], abs=1e-6)
    (line,) = (line for line in check_words.lines(result) if "latency" in line)
    assert line.startswith("median latency at 1 Mpps: median error 0.0% over 4 rows; ")
    assert line.endswith(f"worst -50.0%: {result.delayed[-1].row.name}, 1400 B")
    (_, _, _, off) = check_words.document(result)["latencies"]
    assert (off["way"], off["size"], off["error"], off["inside"]) == ("convoy", 1400, -0.5, False)


def test_a_crossing_that_was_not_measured_has_no_latency():
    some = [late(made(chain), chain) for chain in ONE_BY_ONE]
    (model,) = models(some)
    (line,) = model.latency
    assert line.of(Chain(WEB, link="memif"), 100.0) is not None
    assert line.of(Chain(WEB, link="shared"), 100.0) is None
    assert line.of(Chain(WEB, CONVOYS, 8), 100.0) is None


def test_a_chain_that_costs_otherwise_fails_it():
    held = [made(Chain(WEB), 64, "held-out", times=1.5)]
    result = check([*PARTS, *held])
    assert not result.holds
    assert result.compared[0].error == pytest.approx(1 / 1.5 - 1)
    assert not result.compared[0].inside
    assert "median error 33.3% (at most 10%)" in "\n".join(check_words.lines(result))


@pytest.mark.parametrize(("noise", "beaten"), [(0.01, True), (0.19, False)])
def test_another_way_that_is_better_fails_it_if_that_is_no_noise(noise, beaten):
    held = [made(Chain(WEB), 64, "held-out", times=1.5, noise=noise),
            made(Chain(WEB, link="memif"), 64, "held-out", times=0.6, noise=noise)]  # fmt: skip
    result = check([*PARTS, *held])
    (choice,) = result.choices
    assert (choice.advised.chain.link, choice.best.chain.link) == ("", "memif")
    assert choice.beaten is beaten
    assert (choice.pairs, len(choice.turned)) == (int(beaten), int(beaten))
    order = "of 1 pairs of ways that differ beyond noise, 0 are predicted in the order"
    assert any(line.startswith(order) for line in check_words.lines(result)) is beaten


def test_held_out_rows_are_kept_from_the_fit_and_unknown_ones_are_named():
    odd = Chain(parts("ids"))
    held = [replace(made(Chain(WEB), 64, "held-out"), functions=odd.functions)]
    result = check([*PARTS, *held])
    assert result.refused[0][1] == "not measured at 64 B: ids (10 entries)"
    assert not result.holds
    assert check_words.document(result)["median_error"] is None


@pytest.mark.parametrize(("noise", "kept"), [(0.19, True), (0.21, False)])
def test_a_row_whose_rounds_say_two_things_is_left_out_and_named(noise, kept):
    disturbed = made(Chain(parts("router"), form=CONVOYS, packets=22), times=3, noise=noise)
    held = [made(Chain(WEB), 64, "held-out")]
    result = check([*PARTS, disturbed, *held])
    assert (result.left_out == ()) is kept
    assert kept or result.left_out == (
        f"parts: {disturbed.setup}, 64 B, convoy: its rounds differ by the factor 1.5; "
        "measure it again",
    )
    assert check_words.document(result)["left_out"] == list(result.left_out)
    errors = {how: sigma for model in result.models for how, _, _, sigma in model.fit.errors()}
    assert (errors["in convoys"] > 0.1) is kept


@pytest.mark.parametrize("rounds", [{0: (0.0,), 1: (2e6,), 2: (2e6,)}, {0: (0.0,), 1: (0.0,)}])
def test_a_row_by_which_nothing_passed_is_left_out_and_named(rounds):
    dead = replace(made(Chain(parts("router"))), saturation_cycles={}, saturation_pps=rounds)
    result = check([*PARTS, dead, made(Chain(WEB), 64, "held-out")])
    assert result.holds
    assert result.left_out == (
        f"parts: {dead.setup}, 64 B, convoy: nothing passed in some of its rounds; "
        "measure it again",
    )


def test_rows_of_other_loads_are_no_part_of_a_fit():
    odd = made(Chain(parts("router")), times=9)
    others = [replace(odd, conditions=replace(odd.conditions, **more)) for more in (
        {"chains": 2}, {"cores": 2}, {"evenly": False}, {"connections": "tcp"},
    )]  # fmt: skip
    others += [replace(odd, role="control"), replace(odd, size="imix"), replace(odd, cpu_speed=0.5)]
    (model,) = models([*PARTS, *others])
    assert len(model.fit.rows) == len(PARTS)


def slower(row, times=0.5):
    """Return what the same cycles give on a machine of another clock, uncounted."""
    pps = {i: tuple(times * pps for pps in some) for i, some in row.saturation_pps.items()}
    return replace(row, tsc_hz=times * TSC_HZ, saturation_pps=pps, saturation_cycles={})


def test_cycles_are_those_of_the_machine_that_a_row_is_of():
    rows = [*PARTS, *(replace(slower(row), run="other") for row in PARTS)]
    one, other = models(rows)
    at = Chain(WEB)
    assert other.fit.predict(at, 64).cycles == pytest.approx(one.fit.predict(at, 64).cycles)
    assert other.rate_pps(at, 100.0) == pytest.approx(0.5 * one.rate_pps(at, 100.0))


def test_rows_of_machines_with_different_clocks_share_no_fit():
    with pytest.raises(InputError, match=r"1\.30 and 2\.60 GHz.*one machine"):
        models([*PARTS, *map(slower, PARTS)])
    # One machine's is measured anew by each run.
    (model,) = models([*PARTS, *(slower(row, 1.0001) for row in PARTS)])
    assert model.tsc_hz == pytest.approx(TSC_HZ, rel=1e-3)


def test_ways_that_were_not_measured_are_searched_and_the_fewest_cores_win():
    ways, refused = plans([MODEL], WEB, Traffic(2e6, "64"), None)
    assert refused == ()
    best = ways[0]
    assert (best.cores, best.nodes[0].chain) == (1, Chain(WEB))
    assert best.nodes[0].rate_pps == pytest.approx(TSC_HZ / true_cycles(Chain(WEB), 64))
    memif = next(one for one in ways if one.nodes[0].chain.link)
    cycles = true_cycles(Chain(WEB, link="memif"), 64)
    assert memif.nodes[0].rate_pps == pytest.approx(0.9 * TSC_HZ / cycles)
    # Two or three servers, packets one by one between them or in convoys.
    cut = [one for one in ways if len(one.nodes) > 1]
    assert {len(one.nodes) for one in cut} == {2, 3}
    assert all(one.cores == len(one.nodes) for one in cut)
    ways, _ = plans([MODEL], WEB[:2], Traffic(2e6, "64"), None)
    forms = [[node.chain.form for node in one.nodes] for one in ways]
    assert [AGGREGATED, CONVOYS] in forms


def test_functions_with_a_core_each_are_as_fast_as_the_slowest_and_know_their_numa_nodes():
    measured = [pinned(Chain(parts(*path)), placement)
                for placement in ("same-node", "other-node")
                for path in (("firewall", "router"), ("firewall", "l2fwd", "router"))]  # fmt: skip
    (model,) = models([*PARTS, *measured])
    ways, _ = plans([model], WEB, Traffic(10e6, "64"), None)
    near, far = (one for one in ways if one.nodes[0].chain.own)
    for way, placement in ((near, "same-node"), (far, "other-node")):
        each = [true_cycles(one, 64) for one in on_own_cores(Chain(WEB), "memif", placement)]
        assert [n.prediction.cycles for n in way.nodes] == pytest.approx(each)
        assert way.narrowest.rate_pps == pytest.approx(TSC_HZ / max(each))
        assert (way.cores, way.servers, way.latency()) == (3, 1, [])
    text = "\n".join(expected.lines([near, far], ()))
    assert "a core for each function, joined by memif, on one NUMA node: 3 cores." in text
    assert "a core for each function, joined by memif, in turn on two NUMA nodes: 3 cores." in text
    servers = expected.document(far)["servers"]
    assert {(one["link"], one["placement"]) for one in servers} == {("memif", "other-node")}
    # The slowest core's limit is the chain's; no more was measured, nor what nobody counted apart.
    over = Traffic(0.81 * far.narrowest.rate_pps, "64")
    ways, _ = plans([model], WEB, over, None)
    assert [one.nodes[0].chain.own.placement for one in ways if one.nodes[0].chain.own] == [
        "same-node"
    ]
    (model,) = models([*PARTS, *(replace(one, part_cycles={}) for one in measured)])
    assert not any(one.nodes[0].chain.own for one in plans([model], WEB, over, None)[0])


def test_a_core_of_a_chain_is_held_out_as_well_but_is_no_way_to_run_it():
    chain = Chain(parts("firewall", "router"))
    three = pinned(Chain(parts("router", "firewall", "l2fwd")), "same-node")
    fitted = [pinned(Chain(parts("firewall", "l2fwd", "router")), "same-node")]
    held = [replace(three, scenario="held-out"), made(chain, 64, "held-out")]
    result = check([*PARTS, *fitted, *held])
    assert (len(result.compared), result.choices) == (4, ())
    assert result.median_error < 1e-6


def test_frames_are_as_full_as_the_load_makes_them():
    def ways(mpps):
        options, _ = plans([MODEL], WEB[:2], Traffic(mpps * 1e6, "64"), None)
        return {one.way.wait_us: one for one in options if one.way.fills}

    few, many = ways(2), ways(100)
    assert list(few) == [0.0]  # a wait would save no core
    assert few[0.0].nodes[1].chain.packets < 1.01
    assert few[0.0].nodes[0].prediction.cycles == pytest.approx(
        true_cycles(Chain(WEB[:1]), 64), rel=0.01
    )  # packets leave alone, as they came
    assert 1.2 < many[0.0].nodes[1].chain.packets < 2
    # With a wait they are full, and cost what full ones cost.
    assert many[5.0].nodes[1].chain.packets == pytest.approx(22, rel=1e-3)
    assert many[5.0].nodes[1].prediction.cycles == pytest.approx(
        true_cycles(Chain(WEB[1:2], CONVOYS, 22), 64), rel=0.01
    )
    assert many[5.0].cores < many[0.0].cores
    assert list(many) == [5.0, 0.0]  # 20 us would save no more
    assert many[5.0].limit_pps * 0.8 >= 100e6
    text = "\n".join(expected.lines(list(many.values()), ()))
    assert "packets in convoys between, waiting 5 us at most: at least 6 cores" in text
    assert "frames between have 22 packets" in text
    # The same way, under less of a load, has emptier frames.
    fewer = plan(MODEL, many[0.0].way, 64, 40e6)
    assert fewer.nodes[1].prediction.cycles > many[0.0].nodes[1].prediction.cycles


def test_a_mix_of_sizes_is_carried_at_the_mean_of_its_costs():
    load = parse("2 Gb/s imix")
    assert load.rate_pps == pytest.approx(2e9 / 8 / 353.8, rel=1e-3)
    ways, why = plans([MODEL], WEB, load, None)
    assert not why
    assert not any(way.way.fills for way in ways)  # frames between are of one size
    (one,) = (way for way in ways if len(way.nodes) == 1 and not way.nodes[0].chain.link)
    expected_cycles = sum(true_cycles(Chain(WEB), size) * share for size, share in load.frames)
    assert one.nodes[0].prediction.cycles == pytest.approx(expected_cycles, rel=1e-6)
    assert one.latency() == []
    assert plans([MODEL], WEB, parse("2 Mpps facebook-like"), None)[0] == ()
    assert "by rows of 64 and 1400 B" in "\n".join(expected.lines(ways, why))


def test_a_load_of_many_cores_is_a_lower_bound():
    ways, refused = plans([MODEL], WEB, Traffic(100e6, "64"), None)
    best = ways[0]
    each = TSC_HZ / true_cycles(Chain(WEB), 64)
    assert best.cores == math.ceil(100e6 / (0.8 * each))
    text = "\n".join(expected.lines(ways, refused))
    assert f"at least {best.cores} cores" in text
    assert "several cores: not measured" in text
    assert "processes were measured on one" in text


def test_a_convoy_of_a_size_that_was_not_measured_is_not_claimed():
    ways, refused = plans([MODEL], WEB[:2], Traffic(2e6, "64", 30), None)
    assert ways == ()
    assert refused[0].endswith("convoys of 30 at 64 B: measured from 2 to 22")
    ways, _ = plans([MODEL], WEB[:2], Traffic(2e6, "64", 8), None)
    assert ways[0].nodes[0].chain == Chain(WEB[:2], CONVOYS, 8)


@pytest.mark.parametrize(("size", "packets"), [(64, 23), (128, 11), (256, 5), (512, 2), (1400, 1)])
def test_packets_in_a_full_frame_are_those_that_the_node_sends(size, packets):
    assert fits(size) == packets  # docs/measurements/convoys.md, cost of aggregation


def test_as_many_packets_share_a_frame_as_one_that_is_written_can_hold():
    outer = Outer(dst_mac="02:00:00:00:00:01", src_mac="02:00:00:00:00:02",
                  src="192.0.2.1", dst="192.0.2.2")  # fmt: skip
    for size in range(64, 1519):
        assert fits(size) == max(1, outer.payload_max // (size - 4 + 2)), size


def test_words_name_rate_latency_cpu_limit_and_rows():
    ways, refused = plans([MODEL], (Part("firewall", 10),), Traffic(2e6, "64"), None)
    text = "\n".join(expected.lines(ways, refused))
    cycles = true_cycles(Chain((Part("firewall", 10),)), 64)
    assert (
        f"the core: {cycles:.0f} cycles a packet (ports, plain 73, firewall (10 entries) 10" in text
    )
    assert "Mpps at saturation, " in text
    assert "in 95 of 100 cases" in text
    assert "latency   not measured" in text
    assert "rests on  s: 1 (64 B) 88 cycles" in text
    json.dumps([expected.document(one) for one in ways])


def convoy(*arguments):
    command = [sys.executable, "-c", "from convoy.cli.main import main; main()", "advise"]
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CHAIN"], "--results: missing: give a run's folder"),
        (["CHAIN", "--results", "nowhere", "--traffic", "2 Mpps 64"], "nowhere/plan.yaml: No such"),
        (["--results", "nowhere"], "CHAIN: missing: write convoy advise chain.yaml"),
        (["CHAIN", "--results", "nowhere"], "--traffic: missing"),
        (["CHAIN", "--results", "nowhere", "--check"], "--check takes --results alone"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, arguments, words):
    chain = tmp_path / "chain.yaml"
    chain.write_text(CHAIN_FILE.replace("PATH", "fw, rtr"))
    done = convoy(*(chain if one == "CHAIN" else one for one in arguments))
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_parts_that_do_not_suffice_say_what_is_missing():
    measured = advise("web", ("ids",), Traffic(1e6, "64"), [])
    ways, refused = plans([MODEL], parts("ids"), Traffic(1e6, "64"), None)
    text = chain_lines(ChainAdvice(measured, ways, refused))
    assert text[1:] == [
        "  no advice: not all that it costs was measured",
        "  not predicted: convoy, vhost-user ports: not measured at 64 B: ids",
    ]
