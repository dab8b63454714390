# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Results of several runs answer SQL; what is no SELECT is refused in one line."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.cli.results_query import EXAMPLES, help_text
from convoy.dut.dummy import Curve
from convoy.errors import InputError
from convoy.results.archive import pack
from convoy.results.database import TABLES, Database
from convoy.results.folder import RunFolder
from convoy.results.memory import Memory
from convoy.results.simulated import Simulated

from .test_run import CONVOY, named, run


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs of two machines, whose folders have one name."""
    made = []
    for place, cycles in (("one", 200.0), ("two", 400.0)):
        folder = tmp_path_factory.mktemp(place) / "run"
        run(folder, {"a": named("a", Curve(cycles_per_packet=cycles))}, repeats=2)
        made.append(folder)
    return made


def test_runs_are_joined_and_told_apart(folders):
    answer = Database(folders).query(
        "SELECT run, device, avg(pdr_pps) AS pps FROM points JOIN runs USING (run) "
        "WHERE role='device' AND size='64' AND setup='router' GROUP BY 1, 2 ORDER BY pps DESC"
    )
    assert answer.columns == ("run", "device", "pps")
    assert [row[:2] for row in answer.rows] == [("run", "a"), ("run (2)", "a")]
    expected = [
        [s.rate("pdr") for s in RunFolder(folder).searches()
         if (s.point.role, s.point.size, s.point.setup) == ("device", "64", "router")]
        for folder in folders
    ]  # fmt: skip
    assert [row[2] for row in answer.rows] == [pytest.approx(sum(e) / len(e)) for e in expected]


def test_all_trials_and_goals_are_there(folders):
    database = Database(folders[:1])
    trials = list(RunFolder(folders[0]).trials())
    assert database.query("SELECT count(*), sum(sent_pkts) FROM trials").rows == (
        (len(trials), sum(t.result.total.sent_pkts for t in trials)),
    )
    goals = sum(len(s.goals) for s in RunFolder(folders[0]).searches())
    assert database.query("SELECT count(*) FROM goals").rows == ((goals,),)


def test_the_rate_of_a_trial_is_that_of_reports(folders, tmp_path):
    # The tester was kept waiting: what came within an instant is no rate.
    one = next(trial for trial in RunFolder(folders[0]).trials() if trial.rate_pps is None)
    total = one.result.total.model_copy(update={"received_pps": 77e6, "received_pkts": 704})
    folder = RunFolder(tmp_path / "run")
    folder.create(RunFolder(folders[0]).plan())
    folder.write_host(RunFolder(folders[0]).host())
    folder.append(one.model_copy(update={"result": one.result.model_copy(update={"total": total})}))
    query = Database([folder.path]).query("SELECT received_pps FROM trials")
    assert query.rows == ((pytest.approx(704 / one.duration_s),),)


def test_what_was_measured_in_memory_and_simulated_is_there(folders, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(RunFolder(folders[0]).plan())
    folder.write_host(RunFolder(folders[0]).host())
    numbers = {"median": 30.5, "min": 29.0, "max": 41.0}
    row = {"row": "coalesce", "packet_bytes": 60, "cycles_per_packet": numbers}
    folder.append(Memory(scenario="x", what="vring", command=(), result={"results": [row]}))
    links = [{"link": "A-1", "mean_bytes": [64.0, 65.0], "frames_per_packet": [0.5, 0.25]}]
    tables = {"tables": [{"topology": "paper-1", "links": links}]}
    folder.append(Simulated(scenario="y", what="paper", command=(), result=tables))
    database = Database([folder.path])
    assert database.query("SELECT * FROM memory").rows == (
        ("run", "x", "vring", "row coalesce, packet bytes 60", "cycles_per_packet", 30.5, 29, 41),
    )
    assert database.query("SELECT * FROM simulated WHERE figure='mean_bytes'").rows == (
        ("run", "y", "paper", "paper-1", "A-1", "mean_bytes", 0, 64.0),
        ("run", "y", "paper", "paper-1", "A-1", "mean_bytes", 1, 65.0),
    )


def test_each_table_and_example_can_be_asked(folders):
    database = Database(folders)
    for table in TABLES:
        answer = database.query(f"SELECT * FROM {table.name}")
        assert answer.columns == ("run", *table.columns)
        assert f"{table.name}: " in help_text()
    assert len(EXAMPLES) >= 3
    for _, sql in EXAMPLES:
        database.query(sql)


def test_archives_are_asked_as_their_folders(folders, tmp_path):
    pack(folders[:1], tmp_path / "runs.tar.xz", tmp_path)
    sql = "SELECT * FROM trials"
    assert Database([tmp_path / "runs.tar.xz"]).query(sql) == Database(folders[:1]).query(sql)


@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE runs", "DELETE FROM trials", "ATTACH 'x.db' AS x", "PRAGMA query_only=0",
     "CREATE TABLE x (y)", "INSERT INTO runs (run) VALUES (1)", "VACUUM INTO 'x.db'",
     "SELECT load_extension('x')", "BEGIN"],
)  # fmt: skip
def test_nothing_is_written(folders, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="SQL: ") as error:
        Database(folders[:1]).query(sql)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", "SQL: near"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("", "SQL: empty"),
        ("SELECT x FROM runs", "no such column: x"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
         "add a LIMIT"),
        ("SELECT '\x00'", "SQL: "),
    ],
)  # fmt: skip
def test_bad_sql_is_one_line(folders, sql, words):
    with pytest.raises(InputError, match=words) as error:
        Database(folders[:1]).query(sql)
    assert "\n" not in str(error.value)


def convoy(*arguments):
    return subprocess.run(
        [*CONVOY, "results", "query", *map(str, arguments)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def digests(folder):
    return {p: hashlib.sha256(p.read_bytes()).digest() for p in folder.rglob("*") if p.is_file()}


def test_the_command(folders, tmp_path):
    assert sys.executable in CONVOY
    before = digests(folders[0])
    sql = "SELECT device, NULL AS none, 1.5 AS half FROM points LIMIT 1"
    done = convoy(sql, *folders)
    assert (done.returncode, done.stdout.splitlines()) == (
        0, ["device  none  half", "a       -      1.5"],
    )  # fmt: skip
    document = json.loads(convoy(sql, *folders, "--json").stdout)
    assert document == {
        "schema": "convoy.results.query/1",
        "columns": ["device", "none", "half"],
        "rows": [["a", None, 1.5]],
    }
    bad = convoy("SELEC", *folders)
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    nowhere = convoy("SELECT 1", tmp_path)
    assert (nowhere.returncode, nowhere.stderr.count("\n")) == (2, 1)
    assert digests(folders[0]) == before
