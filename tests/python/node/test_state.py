# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoyd --state: a node that is started again runs what ran last, whole, or its descriptor."""

import random
import resource
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.client import Client, ClientError
from convoy.errors import ConvoyError
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node

CHAIN = """
ports: {a: {memif: a.sock}, b: {memif: b.sock}}
functions: {limit: {ttl-limit: {min: 2}}}
chains: {all: {from: a, to: b, path: [limit]}}
memory: {mb: 64}
workers: {idle: sleep}
"""
KILLS = 12
NOT_KEPT = "what runs is not kept for the next start"


class Nodes:
    """Starts nodes with one state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir()
        self.lines: list[str] = []

    def plan(self, least: int, text: str = CHAIN) -> dict[str, Any]:
        machine = this_machine()
        text = text.replace("min: 2", f"min: {least}")
        return make_plan(loads(text, machine, self.folder), machine).data

    def start(self, least: int = 2, wrapper: tuple[str, ...] = ()) -> Node:
        self.lines.clear()
        return Node(
            self.plan(least),
            wrapper=wrapper,
            on_line=self.lines.append,
            options=["--state", str(self.state)],
        )

    def after_restart(self, least: int = 2) -> tuple[int, str]:
        """Return what a node runs that was started again, and where that is from."""
        with self.start(least) as node:
            return runs(node), state(node)["from"]


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory() as folder:  # sockets' paths must be short
        yield Nodes(Path(folder))


def runs(node: Node) -> int:
    with Client(Path(node.ready["read"])) as client:
        return client.plan()["functions"][0]["config"]["min"]


def state(node: Node) -> dict[str, Any]:
    with Client(Path(node.ready["read"])) as client:
        return client.state()


def kill(node: Node) -> None:
    node.process.signal(9)
    node.process.wait(30)


def history_text(node: Node) -> str:
    done = CliRunner().invoke(app, ["history", "--pid", str(node.process.pid)])
    assert done.exit_code == 0, done.output
    return done.output.replace("\n", " ")


def test_without_a_folder_nothing_is_kept(nodes):
    with Node(nodes.plan(2)) as node:
        apply(node.running, nodes.plan(3))
        assert state(node) == {
            "folder": None, "from": "descriptor", "number": 0,
            "written": 0, "failed": 0, "error": "",
        }  # fmt: skip
    assert list(nodes.state.iterdir()) == []


def test_it_comes_up_with_what_ran_last(nodes):
    assert nodes.after_restart() == (2, "descriptor")
    with nodes.start() as node:
        apply(node.running, nodes.plan(3))
        kill(node)
    with nodes.start() as node:
        assert (runs(node), state(node)["from"]) == (3, "state")
        assert f"convoyd: note: {nodes.state}: the node starts with what ran last" in nodes.lines
        assert "began with what ran last; state in " in history_text(node)
        apply(node.running, nodes.plan(4))
        with Client(Path(node.ready["control"])) as client:
            client.rollback()
        node.stop()
    assert nodes.after_restart() == (3, "state")


def test_what_is_not_confirmed_is_not_kept(nodes):
    with nodes.start() as node:
        apply(node.running, nodes.plan(3), confirm_s=600)
        kill(node)
    assert nodes.after_restart() == (2, "descriptor")
    with nodes.start() as node:
        apply(node.running, nodes.plan(3), confirm_s=600)
        with Client(Path(node.ready["control"])) as client:
            client.confirm()
        kill(node)
    assert nodes.after_restart() == (3, "state")


def test_a_descriptor_that_was_edited_wins_for_good(nodes):
    with nodes.start() as node:
        apply(node.running, nodes.plan(3))
        node.stop()
    assert nodes.after_restart(least=7) == (7, "descriptor")
    assert any("the descriptor has changed since" in line for line in nodes.lines)
    assert nodes.after_restart(least=7) == (7, "state")  # what ran last is the descriptor
    assert nodes.after_restart(least=2) == (2, "descriptor")


@pytest.mark.parametrize("before", [3, 7])
def test_what_is_applied_after_a_reload_stays(nodes, before):
    descriptor = nodes.folder / "edge.yaml"
    with nodes.start() as node:
        apply(node.running, nodes.plan(before))
        descriptor.write_text(CHAIN.replace("min: 2", "min: 7"))
        words = ["apply", "--reload", "--pid", str(node.process.pid), str(descriptor)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        apply(node.running, nodes.plan(4))
        kill(node)
    assert nodes.after_restart(least=7) == (4, "state")
    assert nodes.after_restart(least=2) == (2, "descriptor")


def spoil(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "empty":
        content.clear()
    elif how == "torn":
        del content[len(content) // 2 :]
    elif how == "longer":
        content += b" "
    elif how == "garbage":
        content[:] = random.Random(1).randbytes(5000)
    else:
        content[{"number": 20, "base": 40, "plan": 200}[how]] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["empty", "torn", "longer", "garbage", "number", "base", "plan"])
def test_a_file_that_is_not_whole_is_not_used(nodes, how):
    with nodes.start() as node:
        apply(node.running, nodes.plan(3))
        apply(node.running, nodes.plan(4))
        node.stop()
    files = sorted(nodes.state.iterdir(), key=lambda path: b'"min":4' in path.read_bytes())
    spoil(files[1], how)
    assert nodes.after_restart() == (3, "state")
    line = f"convoyd: {files[1]}: is not whole, and not used"
    assert (line in nodes.lines) == (how != "empty")
    spoil(files[0], how)
    assert nodes.after_restart() == (2, "descriptor")


def test_what_does_not_run_any_more_gives_way_to_the_descriptor(nodes):
    rules = nodes.folder / "rules"
    rules.write_text("@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF\n")
    other = CHAIN.replace("ttl-limit: {min: 2}", "firewall: {default: deny, rules-file: rules}")
    with nodes.start() as node:
        apply(node.running, nodes.plan(2, other))
        node.stop()
    rules.unlink()
    assert nodes.after_restart() == (2, "descriptor")
    assert any("what ran last does not run" in line and "rules" in line for line in nodes.lines)


def test_a_folder_that_is_not_there_harms_nothing(nodes):
    nodes.state.rmdir()
    with nodes.start() as node:
        apply(node.running, nodes.plan(3))
        assert runs(node) == 3
        assert state(node)["written"] == 0
        assert state(node)["failed"] == 3  # two files, one change
        assert [line for line in nodes.lines if NOT_KEPT in line] == [
            f"convoyd: {nodes.state}/plan-a: No such file or directory; {NOT_KEPT}"
        ]
        node.stop()


def test_two_nodes_do_not_share_a_folder(nodes):
    with nodes.start():
        other = Node(
            nodes.plan(2, CHAIN.replace("a.sock", "c.sock").replace("b.sock", "d.sock")),
            on_line=(lines := []).append,
            options=["--state", str(nodes.state)],
        )
        with other:
            assert f"convoyd: {nodes.state}/plan-a: another node uses it; {NOT_KEPT}" in lines


def test_no_room_is_said_once_and_what_was_kept_stays(nodes):
    with nodes.start(wrapper=("env", "--ignore-signal=XFSZ")) as node:
        apply(node.running, nodes.plan(3))
        nodes.lines.clear()
        limits = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (200, limits[1]))
        apply(node.running, nodes.plan(4))
        apply(node.running, nodes.plan(5))
        assert (runs(node), state(node)["failed"], state(node)["written"]) == (5, 2, 1)
        assert "File too large" in history_text(node)
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, limits)
        kill(node)
    assert len([line for line in nodes.lines if NOT_KEPT in line]) == 1
    assert nodes.after_restart() == (3, "state")


def test_killed_at_any_moment_it_comes_up_with_a_whole_plan(nodes):
    chance = random.Random(15)
    kept = 2
    for _ in range(KILLS):
        wanted = kept
        with nodes.start() as node:
            assert runs(node) == kept
            timer = threading.Timer(chance.uniform(0.0, 0.15), node.process.signal, [9])
            timer.start()
            try:
                while True:
                    wanted = kept + 1 if kept < 200 else 3
                    apply(node.running, nodes.plan(wanted))
                    kept = wanted
            except (ClientError, ConvoyError, OSError):
                timer.join()
            node.process.wait(30)
        with nodes.start() as node:
            assert runs(node) in (kept, wanted)
            kept = runs(node)
            node.stop()
