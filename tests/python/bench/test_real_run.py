# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A short run with every kind of device that can be here, for real; and with parts of it killed.

How fast anybody is is no matter of these tests: that everybody was measured, that what failed is
said, and that nothing is left, is.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.dut.devices import device
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.report.findings import findings
from convoy.report.run_data import read
from convoy.results.folder import RunFolder

CONVOY = [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench"]
SMOKE = ("--quick", "--search", "smoke")
SCENARIO = """\
title: Is everybody measured?
from: no paper
asks: Does it all work?
devices: [convoy, testpmd, ovs-dpdk, linux, dummy]
setups:
  router: {functions: [router]}
  forward: {functions: [], devices: [testpmd]}
sizes: [64]
latency: [0.4, 0.5, 0.6]
noise: false
"""


def missing():
    if len(os.sched_getaffinity(0)) < 2:
        return "needs two cores"
    if find("convoyd") is None or find("convoy-gen") is None:
        return "convoyd and convoy-gen are not built: make build"
    return device("testpmd").presence().missing


pytestmark = pytest.mark.skipif(missing() != "", reason=missing())


def processes_with(text):
    result = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes():
                result.append(int(folder.name))
    return result


def links():
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


@pytest.fixture
def place(tmp_path):
    """A scenario, a folder for the run, and a folder for temporary files with a short name."""
    (tmp_path / "t").mkdir()
    scenario = tmp_path / "all.yaml"
    scenario.write_text(SCENARIO)
    return scenario, tmp_path / "run", {**os.environ, "TMPDIR": str(tmp_path / "t")}


def nothing_left(environment):
    temporary = environment["TMPDIR"]
    wait_for(lambda: not processes_with(temporary), 20, "the end of all processes")
    wait_for(lambda: not list(Path(temporary).iterdir()), 20, "the end of all files")


@pytest.mark.alone
def test_everybody_is_measured_and_nothing_is_left(place):
    scenario, folder, environment = place
    command = [*CONVOY, "run", str(scenario), *SMOKE, "--repeats", "1", "--json"]
    done = subprocess.run(
        [*command, "--output", str(folder)], env=environment, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    here = [n for n in ("convoy", "ovs-dpdk", "linux") if device(n).presence().here]
    assert [row["device"] for row in document["rows"]] == [*here, "dummy", "testpmd"]
    assert [row["failed"] for row in document["rows"]] == [[]] * len(document["rows"])
    trials = list(RunFolder(folder).trials())
    for name in [*here, "testpmd"]:
        mine = [trial for trial in trials if trial.point.device == name]
        totals = [trial.result.total for trial in mine]
        received = [0 if total is None else total.received_pkts for total in totals]
        assert max(received) > 0, name
        assert all(trial.commands for trial in mine)
    assert "Is everybody measured?" in (folder / "report.html").read_text("utf-8")
    nothing_left(environment)
    named = {name for t in trials for text in t.commands for name in re.findall(r"cv[lr]\w+", text)}
    assert "linux" not in here or named
    assert not named & set(links())


def name_of(pid: int) -> str:
    """Return a process's name; empty: it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize(
    ("victim", "devices"), [("convoy-gen", ["convoy"]), ("convoyd", ["convoy", "testpmd"])]
)
def test_what_is_killed_costs_one_turn(place, victim, devices):
    scenario, folder, environment = place
    command = [*CONVOY, "run", str(scenario), *SMOKE, "--repeats", "2"]
    command += ["--devices", ",".join(devices), "--output", str(folder)]
    points = folder / "points.jsonl"
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as ours:
        try:
            trials = folder / "trials.jsonl"
            wait_for(
                lambda: (trials.exists() and trials.stat().st_size > 0) or ours.poll() is not None,
                60,
                "a trial",
            )
            children = Path(f"/proc/{ours.pid}/task/{ours.pid}/children").read_text().split()
            named = [pid for pid in map(int, children) if name_of(pid) == victim]
            assert len(named) == 1
            os.kill(named[0], signal.SIGKILL)
            assert ours.wait(120) == 0, ours.stderr.read()
        finally:
            ours.kill()
    ends = [json.loads(line) for line in points.read_text().splitlines()]
    outcomes = [(end["point"]["device"], end["outcome"]) for end in ends]
    turns = [(name, "measured") for _ in range(2) for name in devices]
    assert outcomes == [("convoy", "failed"), *turns[1:]]
    assert ends[0]["why"]
    assert any("convoy failed" in line for line in findings(read([folder])))
    nothing_left(environment)
