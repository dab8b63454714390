# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The two commands as people run them, shortened; what they measure is no matter of a test."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.results.folder import RunFolder
from convoy.results.hostile import HostileBench
from convoy.results.nf import NfBench

CONVOY = [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench"]


def convoy_bench(*arguments, **more):
    return subprocess.run(
        [*CONVOY, *arguments], capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.mark.skipif(find("bench-nf") is None, reason="bench-nf is not built: make build")
def test_nf_prints_one_document_of_its_schema():
    done = convoy_bench(
        "nf", "--json", "--repeats", "3", "--entries", "10,20",
        "--function", "l2fwd,router,firewall,classifier,chain,reference-router",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "convoy.bench.nf/3"
    bench = NfBench.model_validate(document)
    sized = ["router", "reference-router", "firewall", "classifier", "chain"]
    assert [(row.function, row.entries) for row in bench.results] == [
        ("l2fwd", 0),
        *[(name, entries) for entries in (10, 20) for name in sized],
    ]
    for row in bench.results:
        cycles = row.cycles_per_packet
        assert 0 < cycles.min <= cycles.median <= cycles.max
        assert len(cycles.repeats) == 3
        assert row.flows is None


@pytest.mark.skipif(find("bench-nf") is None, reason="bench-nf is not built: make build")
def test_nf_has_rows_of_functions_that_remember_flows():
    done = convoy_bench(
        "nf", "--json", "--repeats", "2", "--flows", "1000,2000",
        "--function", "stateful,reference-stateful,nat,balancer,policer,reference-policer",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bench = NfBench.model_validate_json(done.stdout)
    assert [(row.function, row.entries, row.flows) for row in bench.results] == [
        ("nat", 0, 1000), ("balancer", 0, 1000), ("policer", 0, 1000),
        ("reference-policer", 0, 1000), ("stateful", 0, 1000), ("reference-stateful", 0, 1000),
        ("stateful", 0, 2000), ("reference-stateful", 0, 2000),
    ]  # fmt: skip
    for row in bench.results:
        ours = not row.function.startswith("reference")
        assert (row.with_path_cycles_per_packet is not None) == ours
        assert (row.table_bytes_per_flow > 64) == ours
        assert row.functions_bytes_per_flow > 0
        assert row.new_flows_per_second > 0
        assert row.cycles_per_new_flow.min > 0


@pytest.mark.skipif(find("bench-nf") is None, reason="bench-nf is not built: make build")
def test_nf_prints_tables_and_what_their_columns_are():
    arguments = ("--repeats", "1", "--entries", "10", "--flows", "64")
    done = convoy_bench("nf", *arguments, "--function", "router,stateful,reference-stateful")
    assert done.returncode == 0, done.stderr
    heads = [line for line in done.stdout.splitlines() if line.startswith(" cycles per packet")]
    assert ["entries" in head for head in heads] == [True, False]
    assert ["Mflow/s" in head for head in heads] == [False, True]
    rows = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(" ")]
    for row in (["router", "10"], ["stateful", "64"], ["reference-stateful", "64"]):
        assert row in rows


@pytest.mark.skipif(find("bench-nf") is None, reason="bench-nf is not built: make build")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--function", "nap"), "--function: 'nap' is none of path ring ring-2-cores l2fwd"),
        (("--entries", "0"), "--entries: '0' is not a number from 1 to 1000000"),
        (("--entries", "ten"), "--entries: 'ten' is not a list of numbers; write 10,1000"),
        (("--flows", "64k"), "--flows: '64k' is not a list of numbers; write 10,1000"),
        (("--flows", "1"), "--flows: '1' is not a number from 64 to 16000000"),
    ],
)
def test_nf_refuses_bad_input(arguments, words):
    done = convoy_bench("nf", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def missing():
    if len(os.sched_getaffinity(0)) < 2:
        return "needs two cores"
    for program in ("convoyd", "convoy-gen"):
        if find(program) is None:
            return f"{program} is not built: make build"
    if shutil.which("dpdk-testpmd") is None:
        return "dpdk-testpmd is not installed"
    return ""


@pytest.mark.skipif(missing() != "", reason=missing())
def test_quick_measures_everybody_and_leaves_results_and_a_page(tmp_path):
    folder = tmp_path / "run"
    done = convoy_bench("quick", "--smoke", "--json", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "convoy.bench.run/3"
    measured = [(row["device"], len(row["functions"])) for row in document["rows"]]
    assert measured == [("testpmd", 0), ("convoy", 0), *[("convoy", 1)] * 3, *[("convoy", 3)] * 2]
    trials = list(RunFolder(folder).trials())
    assert len(trials) == sum(row["trials"] for row in document["rows"])
    # However busy this machine is: packets went through everybody, and nobody dropped them all.
    for row in document["rows"]:
        received = [
            trial.result.total.received_pkts
            for trial in trials
            if (trial.point.device, list(trial.point.functions))
            == (row["device"], row["functions"])
        ]
        assert max(received) > 0
    page = (folder / "report.html").read_text("utf-8")
    assert "The example chain beside dpdk-testpmd" in page
    assert "it shows that everything works, and measures nothing" in page


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sizes", "63"), "--sizes: '63' is neither 64 to 1518 (bytes) nor imix"),
        (("--sizes", "64,big"), "--sizes: 'big' is neither 64 to 1518 (bytes) nor imix"),
        (("--output", "/proc/none"), "/proc/none: No such file or directory; give another folder"),
    ],
)
def test_quick_refuses_bad_input(arguments, words):
    done = convoy_bench("quick", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_priority_that_is_none_is_refused_before_anything_is_made(tmp_path):
    environment = {**os.environ, "CONVOY_PRIORITY": "idle"}
    done = convoy_bench("quick", "--output", str(tmp_path / "run"), env=environment)
    assert done.returncode == 2
    assert done.stderr == "convoy: CONVOY_PRIORITY: 'idle' is neither high nor normal\n"
    assert not (tmp_path / "run").exists()


def test_quick_says_so_where_there_is_one_core():
    core = min(os.sched_getaffinity(0))
    done = convoy_bench("quick", preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    assert done.returncode == 2
    assert "quick: needs 2 cores; this process may use 1: see taskset" in done.stderr


def processes_with(text):
    result = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes():
                result.append(folder.name)
    return result


@pytest.mark.skipif(missing() != "", reason=missing())
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_quick_that_is_ended_leaves_its_trials_and_nothing_else(tmp_path, number):
    folder, temporary = tmp_path / "run", tmp_path / "t"
    temporary.mkdir()
    command = [*CONVOY, "quick", "--smoke", "--output", str(folder)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as ours:
        try:
            trials = folder / "trials.jsonl"
            wait_for(
                lambda: (
                    (trials.exists() and b"\n" in trials.read_bytes()) or ours.poll() is not None
                ),
                60,
                "a trial",
            )
            sockets = str(temporary / "convoy-")
            assert processes_with(sockets)
            ours.send_signal(number)
            code = ours.wait(30)
        finally:
            ours.kill()
    assert code == {signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    wait_for(lambda: not processes_with(sockets), 60, "the end of its processes")
    assert len(list(RunFolder(folder).trials())) > 0
    wait_for(lambda: not list(temporary.iterdir()), 60, "an empty folder")


def missing_to_be_hostile():
    if len(os.sched_getaffinity(0)) < 2:
        return "one core only"
    programs = ("bench-hostile-guest", "bench-hostile-memif", "convoyd", "convoy-gen")
    absent = [program for program in programs if find(program) is None]
    return f"{absent[0]} is not built: make build" if absent else ""


@pytest.mark.skipif(missing_to_be_hostile() != "", reason=missing_to_be_hostile())
def test_hostile_prints_one_document_of_its_schema():
    arguments = ("--rounds", "2", "--seconds", "0.05", "--port", "memif")
    done = convoy_bench("hostile", "--json", *arguments, "--guest", "tiny-buffers")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "convoy.bench.hostile/2"
    bench = HostileBench.model_validate_json(done.stdout)
    assert [(row.port, row.layout) for row in bench.rows] == [("memif", None)] * 3
    assert [row.guest for row in bench.rows] == ["nobody", "honest", "tiny-buffers"]
    nobody, _, tiny = bench.rows
    assert [trial.kept for trial in nobody.trials] == [1, 1]
    assert (tiny.reference, tiny.bound) == ("honest", 0.9)
    for row in bench.rows:
        assert len(row.trials) == 2
        assert all(trial.neighbour_pps > 0 for trial in row.trials)


# Guest: whether the node took packets from it, refused some, and put some into its buffers.
PEACEFUL = {
    "nobody": (False, False, False),
    "silent": (False, False, False),
    "honest": (False, False, True),
    "sending": (True, False, True),
}
PACKED = PEACEFUL | {
    "empty-tables": (False, True, False),
    "full-chains": (True, False, True),
    "tiny-buffers": (False, False, False),
    "nowhere": (False, True, False),
}
HOSTILE = {
    ("vhost-user", "split"): PACKED | {"long-chains": (False, True, False)},
    ("vhost-user", "packed"): PACKED,
    ("memif", None): PEACEFUL
    | {
        "empty-buffers": (False, True, False),
        "full-chains": (True, False, True),
        "endless-chains": (False, True, True),
        "tiny-buffers": (False, False, True),
        "nowhere": (False, True, True),
        "wild-indices": (False, False, True),
    },
}


@pytest.mark.skipif(missing_to_be_hostile() != "", reason=missing_to_be_hostile())
@pytest.mark.alone
def test_hostile_guests_do_what_they_say():
    done = convoy_bench("hostile", "--json", "--rounds", "1", "--seconds", "0.05")
    assert done.returncode == 0, done.stderr
    result = {kind: {} for kind in HOSTILE}
    for row in HostileBench.model_validate_json(done.stdout).rows:
        (trial,) = row.trials
        counts = (trial.guest_rx_pkts, trial.guest_rx_errors, trial.guest_tx_pkts)
        result[row.port, row.layout][row.guest] = tuple(count > 0 for count in counts)
        assert trial.neighbour_pps > 0
        assert trial.guest_broken_queues == (row.guest == "wild-indices")
    assert result == HOSTILE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--guest", "friendly"), "--guest: 'friendly' is none of nobody silent honest"),
        (("--port", "pcap"), "--port: 'pcap' is none of vhost-user memif"),
        (
            ("--port", "memif", "--guest", "empty-tables"),
            "--guest: 'empty-tables' is none of nobody silent honest sending empty-buffers",
        ),
    ],
)
def test_hostile_refuses_what_it_does_not_know(arguments, words):
    done = convoy_bench("hostile", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
