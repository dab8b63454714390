# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy apply --handover: ports and workers change while packets flow; guests stay connected."""

import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.errors import ConvoyError
from convoy.host.counts import running_nodes
from convoy.host.node import Node
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .test_handover import (
    SOON_S,
    counts_of,
    ended,
    is_gone,
    send_until_joined,
    until_it_forwards,
)

pytestmark = pytest.mark.alone

PAIR = """
  {a}: {{vhost-user: {a}.sock}}
  {b}: {{vhost-user: {b}.sock}}"""
CHAIN = """
  {a}: {{from: {a}, to: {b}, path: [f{extra}]}}"""


def descriptor(*pairs: tuple[str, str], workers: str = "1", extra: str = "") -> str:
    """Return chains between pairs of guests, with a function that all share."""
    ports = "".join(PAIR.format(a=a, b=b) for a, b in pairs)
    chains = "".join(CHAIN.format(a=a, b=b, extra=extra) for a, b in pairs)
    return f"""
ports: {ports}
functions:
  f: {{l2fwd: {{mode: rewrite}}}}
  limit: {{ttl-limit: {{min: 1, non-ip: pass}}}}
chains: {chains}
memory: {{mb: 64}}
workers: {{cores: [{workers}], idle: sleep}}
"""


ONE = descriptor(("left", "right"), workers=str(CORES[0]))
TWO = descriptor(
    ("third", "fourth"), ("left", "right"), workers=f"{CORES[0]}, {CORES[-1]}", extra=", limit"
)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # sockets' paths must be short
        folder = Path(name)
        (folder / "one.yaml").write_text(ONE)
        (folder / "two.yaml").write_text(TWO)
        monkeypatch.chdir(folder)
        yield folder
        monkeypatch.undo()


@pytest.fixture
def runtime_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(folder))
    return folder / "dpdk"


def plan_of(name: str) -> dict[str, Any]:
    ran = CliRunner().invoke(app, ["check", name, "--plan"])
    assert ran.exit_code == 0, ran.output
    return dict(json.loads(ran.stdout))


def guests(*names: str) -> ConvoyGen:
    return ConvoyGen([f"vhost-user:{name}.sock,ring=1024" for name in names], core=CORES[-1])


def apply_file(name: str, *options: str) -> dict[str, Any]:
    ran = CliRunner().invoke(app, ["apply", name, "--handover", "--json", *options])
    assert ran.exit_code == 0, ran.output
    return dict(json.loads(ran.stdout))


class Changing(threading.Thread):
    """Applies files one after the other."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names
        self.error: BaseException | None = None

    def run(self) -> None:
        """See Thread."""
        try:
            for name in self.names:
                apply_file(name)
        except BaseException as error:
            self.error = error


@pytest.fixture
def node(folder: Path, runtime_folder: Path) -> Iterator[Node]:
    with Node(plan_of("one.yaml")) as node, ended(runtime_folder):
        yield node


def last_counts() -> dict[str, Any]:
    (last,) = [one for one in running_nodes() if not is_gone(one.pid)]
    return counts_of(last)


def test_ports_and_workers_come_and_go_and_nothing_is_lost(node, folder):
    with guests("left", "right") as tester:
        until_it_forwards(tester)
        before = counts_of(node.running)["accounting"]["received"]
        changing = Changing("two.yaml", "one.yaml", "two.yaml")
        changing.start()
        sent, received = send_until_joined(changing, tester)
        assert changing.error is None, changing.error
        counts = last_counts()
        full = counts["ports"]["right"]["drops"]["tx_full"]
        assert sent - received == full == counts["accounting"]["dropped"]
        assert counts["accounting"]["received"] == before + sent
        assert counts["functions"]["f"]["packets"] == before + sent
        assert counts["ports"]["left"]["device"]["peers"] == 1
        assert [worker["core"] for worker in counts["workers"]] == [CORES[0], CORES[-1]]
        with guests("third", "fourth") as other:
            until_it_forwards(other)
        passed = last_counts()["accounting"]["received"] - before - sent
        assert passed > 0
        # What ports that are gone have counted stays in the sums.
        done = apply_file("one.yaml")
        assert {"what": "port", "name": "third", "change": "removed", "key": None} in done[
            "differences"
        ]
        assert done["handover"]["gap_us"] > 0
        accounting = last_counts()["accounting"]
        assert accounting["received"] == before + sent + passed
        assert accounting["received"] == accounting["sent"] + accounting["dropped"]
    assert sorted(path.name for path in folder.glob("*.sock")) == ["left.sock", "right.sock"]


def test_a_dry_run_says_what_differs_and_does_nothing(node):
    ran = CliRunner().invoke(app, ["apply", "two.yaml", "--handover", "--dry-run"])
    assert ran.exit_code == 0, ran.output
    for line in (
        "+ port third",
        "+ chain third",
        "~ chain left: path: f, limit",
        "~ setting workers",
    ):
        assert line in ran.output
    assert "nothing has changed" in ran.output
    assert [one.pid for one in running_nodes()] == [node.process.pid]
    ran = CliRunner().invoke(app, ["apply", "one.yaml", "--handover"])
    assert "runs that already" in ran.output
    assert [one.pid for one in running_nodes()] == [node.process.pid]


def refusal(*arguments: str) -> str:
    """Return the one line that a refused command prints."""
    ran = CliRunner().invoke(app, ["apply", *arguments])
    assert isinstance(ran.exception, ConvoyError), ran.output
    assert "\n" not in str(ran.exception)
    return str(ran.exception)


def test_what_cannot_be_is_refused_and_the_node_goes_on(node, folder):
    (folder / "path.yaml").write_text(TWO.replace("third.sock", "left.sock"))
    (folder / "value.yaml").write_text(ONE.replace("min: 1", "min: 1000"))
    (folder / "kind.yaml").write_text(ONE.replace("vhost-user: left", "memif: left"))
    (folder / "mtu.yaml").write_text(ONE.replace("left.sock}", "left.sock, mtu: 9000}"))
    (folder / "other.yaml").write_text(ONE.replace("left.sock}", "other.sock}"))
    (folder / "none.json").write_text('{"schema": "convoy.plan/1"}')
    assert "convoy apply --handover" in refusal("two.yaml")
    assert "none.json: ports" in refusal("none.json", "--handover")
    assert "--confirm: not with --handover" in refusal("two.yaml", "--handover", "--confirm", "9s")
    for name, words in (
        ("value", "value.yaml:7: functions.limit"),
        ("path", "path.yaml"),
        ("kind", "kind.yaml:3: ports.left: not as the node runs it"),
        ("mtu", "mtu.yaml:3: ports.left: not as the node runs it"),
    ):
        assert words in refusal(f"{name}.yaml", "--handover")
        assert [one.pid for one in running_nodes()] == [node.process.pid]
    with guests("left", "right") as tester:
        until_it_forwards(tester)
    apply_file("other.yaml")
    with guests("other", "right") as tester:
        until_it_forwards(tester)


def test_a_killed_node_comes_up_with_ports_that_were_added(folder, runtime_folder):
    (folder / "state").mkdir()
    plan = plan_of("one.yaml")
    with Node(plan, options=["--state", "state"]) as node, ended(runtime_folder):
        apply_file("two.yaml")
        assert node.process.wait(SOON_S) == 0
    with Node(plan, options=["--state", "state"]) as node:
        counts = counts_of(node.running)
        assert set(counts["ports"]) == {"left", "right", "third", "fourth"}
        assert len(counts["workers"]) == 2
