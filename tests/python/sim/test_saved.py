# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What aggregation saves on the paper's topologies: figures of the models, and wrong input."""

import json

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.errors import InputError
from convoy.sim import saved
from convoy.sim.load import open_topology
from convoy.sim.profile import load

WAIT = 5.0


@pytest.fixture(scope="module")
def ways():
    ways = saved.compare([0.0, WAIT], duration_s=0.01)
    return {(way.topology, way.node, way.wait_us): way for way in ways}


@pytest.mark.parametrize("topology", ["I", "II"])
def test_unaggregated_is_what_the_model_says(ways, topology, tmp_path):
    paper, ours = ways[topology, "paper", None], ways[topology, "convoy", None]
    for way in (paper, ours):
        assert way.frames_at_sink == way.packets_at_sink
        assert way.frames_saved == 0
        assert way.bytes_per_packet == 64 + 20
    assert paper.cpu_ns == pytest.approx(1e9 / load("paper-simulation", tmp_path).plain_pps, 1e-3)
    costs = load("node-epyc", tmp_path).costs
    each = [1e9 / costs.rate_pps(name, 1, 64) for name in ("firewall", "ids", "router")]
    assert ours.cpu_ns == pytest.approx(sum(each) / 3, rel=2e-3)  # a few are still inside


@pytest.mark.parametrize("topology", ["I", "II"])
def test_a_wait_fills_frames_and_is_paid_in_latency(ways, topology):
    plain, unwaited, waited = (ways[topology, "convoy", w] for w in (None, 0.0, WAIT))
    assert waited.frames_at_sink < 0.1 * waited.packets_at_sink
    assert waited.frames_at_sink < unwaited.frames_at_sink <= plain.frames_at_sink
    assert waited.cpu_ns < plain.cpu_ns
    stages = 3
    assert plain.p50_s < waited.p50_s < plain.p50_s + 2 * stages * WAIT * 1e-6
    assert waited.dropped_packets == 0


def test_load_is_times_the_papers_rates():
    once, thrice = (saved._opened("node-1", {}, times).topology.sources for times in (1, 3))
    paper = open_topology("paper-1").topology.sources["servers"].on_off.mpps
    assert once["servers"].on_off.mpps == paper
    assert thrice["servers"].on_off.mpps == pytest.approx(3 * paper)


def test_command_prints_json_and_writes_the_page(tmp_path):
    page = tmp_path / "page.html"
    command = ["sim", "saved", "--duration-s", "0.001", "--wait-us", "5", "--report", str(page)]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["schema"] == "convoy.sim.saved/1"
    assert [way["wait_us"] for way in document["ways"]] == [None, 20.0, None, 5.0] * 2
    assert "Bytes on the wire" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--wait-us", "soon"], "--wait-us 'soon': write 0,5,20"),
        (["--wait-us", "0,-1"], "--wait-us '-1': give microseconds from 0"),
        (["--wait-us", "nan"], "--wait-us 'nan': give microseconds from 0"),
        (["--load", "0"], "--load 0: give a number above 0"),
    ],
)
def test_wrong_input_is_refused(options, words):
    done = CliRunner().invoke(app, ["sim", "saved", *options])
    assert isinstance(done.exception, InputError)
    assert done.exception.exit_code == 2
    assert words in str(done.exception)
