# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Sweeps: the same results over processes and over Dask, and going on after a stop."""

import json
from multiprocessing import cpu_count

import pytest

from convoy.errors import ConvoyError, InputError
from convoy.sim import sweep

PARAMETERS = {"simulate.duration-s": [0.002], "aggregation": [True, False]}


def counted(results):
    """Results without what depends on the machine."""
    return [{k: v for k, v in result.items() if k != "run"} for result in results]


@pytest.fixture(scope="module")
def todo():
    return sweep.points("paper-1", PARAMETERS, [1, 2])


def test_points_are_all_combinations(todo):
    assert [(p.parameters["aggregation"], p.seed) for p in todo] == [
        (True, 1),
        (True, 2),
        (False, 1),
        (False, 2),
    ]
    assert len({p.key for p in todo}) == 4


def test_processes_and_dask_give_the_same(todo, tmp_path):
    distributed = pytest.importorskip("distributed")
    local = sweep.sweep(todo, tmp_path / "local.jsonl", workers=2)
    with distributed.LocalCluster(
        host="127.0.0.1",
        protocol="tcp://",
        n_workers=min(2, cpu_count()),
        threads_per_worker=1,
        dashboard_address=None,
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tcp://127.0.0.1:")
        remote = sweep.sweep(todo, tmp_path / "remote.jsonl", scheduler=address)
    assert len(local) == 4
    assert counted(local) == counted(remote)
    one = sweep.sweep(todo, tmp_path / "one.jsonl", workers=1)
    assert counted(one) == counted(local)


def test_resumes_where_it_stopped(todo, tmp_path):
    out = tmp_path / "out.jsonl"
    whole = sweep.sweep(todo, out, workers=1)
    lines = out.read_text().splitlines(keepends=True)
    partial = json.loads(lines[1]) | {"complete": False}
    out.write_text(lines[0] + json.dumps(partial) + "\n" + lines[2] + lines[3][:40])
    seen = []
    again = sweep.sweep(todo, out, workers=1, on_result=seen.append)
    assert len(seen) == 2
    assert counted(again) == counted(whole)
    assert sweep.sweep(todo, out, on_result=lambda _: pytest.fail("nothing was left")) == again


def test_a_file_of_something_else_is_refused(todo, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("hello\nworld\n")
    with pytest.raises(InputError, match=r"out\.jsonl:1"):
        sweep.sweep(todo, out)


def test_no_scheduler(todo, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "CONNECT_S", 0.5)
    with pytest.raises(ConvoyError, match="no scheduler answers"):
        sweep.sweep(todo[:1], tmp_path / "out.jsonl", scheduler="tcp://127.0.0.1:9")


def test_wrong_place_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match="instancs"):
        sweep.points("paper-1", {"functions.dpi.instancs": [1]}, [1])
