# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy top finds the running node, and says so when there is none, or several."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoy.cli import top
from convoy.cli.main import app
from convoy.errors import InputError
from convoy.host.counts import RunningNode, running_nodes
from convoy.host.node import Node

from .test_node import plan

NODES = [RunningNode(7, Path("a")), RunningNode(9, Path("b"))]


def test_a_running_node_is_found_and_read():
    with Node(plan().data) as node:
        pid = node.process.pid
        assert pid in [result.pid for result in running_nodes()]
        done = CliRunner().invoke(app, ["top", str(pid), "--json"])
        assert done.exit_code == 0
        document = json.loads(done.stdout)
        assert document["counts"]["accounting"]["received"] > 0
        assert document["counts"]["ports"].keys() == {"a", "b"}
        assert "cycles/packet" in CliRunner().invoke(app, ["top", str(pid)]).stdout
    assert pid not in [result.pid for result in running_nodes()]


@pytest.mark.parametrize(
    ("nodes", "pid", "message"),
    [
        ([], None, "no convoyd of yours is running"),
        (NODES, None, r"say which: convoy top PID \(7, 9\)"),
        (NODES, 8, "PID: 8: no convoyd of yours; there are: 7, 9"),
    ],
)
def test_which_node(nodes, pid, message):
    with pytest.raises(InputError, match=message):
        top.choose(nodes, pid)


def test_the_only_node_needs_no_name():
    assert top.choose(NODES[:1], None).pid == 7
    assert top.choose(NODES, 9).pid == 9


def test_sockets_of_dead_nodes_are_passed_over(tmp_path):
    folder = tmp_path / "dpdk" / "convoyd-1"
    folder.mkdir(parents=True)
    (folder / "control.sock").write_text("")
    with contextlib.suppress(OSError):
        os.mkfifo(tmp_path / "dpdk" / "convoyd-x")
    assert running_nodes({"XDG_RUNTIME_DIR": str(tmp_path)}, uid=1000) == []
