# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Every figure in a real browser: those of the reference run's pages, and one of each kind."""

from dataclasses import replace
from typing import get_args

import pytest
from typer.testing import CliRunner

from bench.results import latency, plan, result, scenario
from convoy.cli.main import app
from convoy.host.programs import CHECKOUT
from convoy.report.document import Document, Figure
from convoy.report.figures import _drawn
from convoy.report.html import html
from convoy.report.run_data import read
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.scenario import Figure as Axes
from convoy.results.scenario import SetupSpec
from convoy.results.trials import Cost, GoalResult, Point, Search, Trial
from convoy.sim import saved
from convoy.sim.engine import run as simulate
from convoy.sim.load import open_topology
from convoy.sim.report import add_result
from convoy.sim.resolve import resolve
from convoy.sim.saved_report import saved_figure

from .browser import CHROMIUM, LOOK, visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")
WIDTH = 1400
MEASUREMENTS = CHECKOUT / "docs/measurements"
REFERENCE = [str(MEASUREMENTS / f"{name}.tar.xz") for name in ("claims", "reference")]


def test_the_reference_run_is_drawn_whole_and_sorts(tmp_path):
    report = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", *REFERENCE, "-o", str(report)])
    assert done.exit_code == 0, done.output
    for page, tables in ((report, 120), (tmp_path / "report-claims.html", 15)):
        seen = visit(page.read_text("utf-8"), LOOK, tmp_path, WIDTH)
        assert (seen["problems"], seen["empty"], seen["unsorted"]) == ([], [], [])
        assert len(seen["figures"]) >= 20
        assert "Median latency by rate." in seen["figures"]  # without its histograms
        assert seen["tables"] >= tables


def counters(times):
    """Return what a node has counted after so many trials."""
    timed = {"packets": 10 * times, "ns": 5000 * times, "up_to_ns": {"1024": 10 * times}}
    port = {"rx_packets": 100 * times, "rx_latency": timed, "tx_latency": timed}
    return {
        "ports": {"left": port},
        "functions": {"fw": {"busy_cycles": 9000 * times, "latency": timed}},
    }


def trial(point, mpps):
    total = {
        "offered_pkts": 100, "received_pkts": 90, "lost_pkts": 10, "received_pps": mpps * 0.9e6,
        "loss_bursts_pkts": [(1, 2), (8, 1)], "refused_bursts_pkts": [], "mean_frame_bytes": 64.0,
        "latency": latency(1000, 3000, [(1000, 80), (3000, 10)]),
    }  # fmt: skip
    convoys = {"received_by_packets": [[2, 10], [8, 5]], "received_pkts": 60}
    return Trial(
        point=point, purpose="latency", load=f"{mpps} Mpps", rate_pps=mpps * 1e6, duration_s=0.1,
        verdict="passed", commands=(), result=result(total=total, convoys=convoys),
        elapsed_ns=10**8, device_cpu_ns=5 * 10**7, device_before=counters(1),
        device_after=counters(2), cost=Cost(cycles=20_000, packets=90, source="workers"),
    )  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """A scenario of which everything is known that is ever drawn."""
    folder = RunFolder(tmp_path / "run")
    setups = {"one": SetupSpec(), "two": SetupSpec()}
    folder.create(plan(2, x=scenario(setups=setups, devices=("convoy",))))
    folder.write_host(Host())
    for setup in setups:
        for size, speed in (("64", 1.0), ("64", 0.5), ("512", 1.0)):
            for repeat in range(2):
                point = Point(scenario="x", setup=setup, device="convoy", functions=("firewall",),
                              size=size, cpu_speed=speed, repeat=repeat)  # fmt: skip
                for mpps in (1, 4):
                    folder.append(trial(point, mpps))
                goal = GoalResult(goal="pdr", rate_pps=speed * 8e6 + repeat, lower_pps=8e6,
                                  upper_pps=None, regular=True)  # fmt: skip
                folder.append(Search(point=point, outcome="measured", goals=(goal,)))
        for size in (64, 512):
            served = ApplicationPoint(
                scenario="x", setup=setup, device="convoy", functions=(), port_kind="af_packet",
                application="iperf3-udp", frame_bytes=size, repeat=0,
            )  # fmt: skip
            folder.append(ApplicationTrial(
                point=served, outcome="measured", duration_s=1, figure="mbps",
                figures={"mbps": float(size)},
            ))  # fmt: skip
    return read([folder.path])


def one_of_each(run):
    """Return figures by caption, of all axes that scenarios know."""
    result = {}
    for y in get_args(Axes.model_fields["y"].annotation):
        for x in get_args(Axes.model_fields["x"].annotation):
            axes = run.scenarios["x"].model_copy(update={"figure": Axes(x=x, y=y)})
            for plot, caption in _drawn(replace(run, scenarios={"x": axes}), "x"):
                assert plot is not None, f"{caption} has no results here: make some up"
                result.setdefault(caption, plot)
    return result


def test_a_figure_of_each_kind_is_drawn(run, tmp_path):
    page = Document("One of each kind")
    for caption, plot in one_of_each(run).items():
        page.add(Figure(plot, caption))
    topology = open_topology("paper-1", {"simulate.duration-s": 0.01})
    add_result(page, simulate(resolve(topology).data))
    page.add(Figure(saved_figure(saved.compare([5.0], duration_s=0.001)), "Saved"))
    seen = visit(html(page), LOOK, tmp_path, WIDTH)
    assert (seen["problems"], seen["empty"], seen["unsorted"]) == ([], [], [])
    assert len(seen["figures"]) == sum(isinstance(block, Figure) for block in page.blocks)
