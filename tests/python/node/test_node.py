# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The real node stops cleanly, and refuses bad plans with one clear message."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.cli.run import run
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.node_check import check_plan
from convoy.host.programs import need

TEXT = """
ports: {a: {null: 60}, b: {null: }}
functions: {f: {l2fwd: {mode: swap}}, g: {firewall: {default: allow}}}
chains: {all: {from: a, to: b, path: [f, g]}}
memory: {hugepages: never}
"""


def plan(text: str = TEXT):
    machine = this_machine()
    return make_plan(loads(text, machine, Path("/nowhere")), machine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
def test_a_signal_drains(number, deployment):
    text = TEXT.replace("path:", f"deployment: {deployment}, path:")
    with Node(plan(text).data) as node:
        passing = node.counts()
        final = node.stop(number)
        assert node.process.exit_code == 0
    assert final["accounting"]["conserved"]
    assert final["accounting"]["held"] == 0
    assert final["accounting"]["received"] >= passing["accounting"]["received"]
    for name in ("f", "g"):
        assert final["functions"][name]["packets"] == final["accounting"]["received"]


def test_counts_while_it_runs_have_the_shape_of_the_final_ones():
    with Node(plan().data) as node:
        now = node.counts()
        final = node.stop()
    for part in ("ports", "functions"):
        assert now[part].keys() == final[part].keys()
        for name, thing in now[part].items():
            assert thing["drops"].keys() == final[part][name]["drops"].keys()
    assert len(now["workers"]) == len(final["workers"])


def test_it_ends_by_itself_after_a_duration():
    result = run(Path("x"), plan(), duration_s=0.2)
    assert result.ended_by == "duration"
    assert result.counts["accounting"]["received"] > 0


def test_our_watch_sees_packets():
    seen = []
    enough = threading.Event()

    def watch(sample):
        seen.append(sample.counts["accounting"]["received"])
        if len(seen) > 2:
            enough.set()

    run(Path("x"), plan(), duration_s=2, watch=watch)
    assert enough.is_set()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_no_node_outlives_a_killed_command(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan().data))
    code = f"""
import json, time
from convoy.host.node import Node
with Node(json.load(open({str(path)!r}))) as node:
    print(node.process.pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as us:
        assert us.stdout is not None
        pid = int(us.stdout.readline())
        with Path(f"/proc/{pid}/comm").open() as file:
            assert file.read() == "convoyd\n"
        us.kill()
    from convoy.host.process import wait_for

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/comm").read_text() != "convoyd\n" or (
                Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
            )
        except OSError:
            return True

    wait_for(gone, 60, "convoyd is gone")


# description, change of a good plan, words that must be in the one message
ROWS = [
    ("schema", lambda p: p.update(schema="convoy.plan/9"), "schema"),
    ("unknown key", lambda p: p.update(colour="red"), "colour"),
    ("no ports", lambda p: p.update(ports=[]), "ports"),
    ("ports of another type", lambda p: p.update(ports="none"), "ports"),
    ("kind", lambda p: p["ports"][0].update(kind="carrier-pigeon"), "carrier-pigeon"),
    ("port name twice", lambda p: p["ports"][1].update(name="a"), '"a"'),
    ("function type", lambda p: p["functions"][0].update(type="l3fwd"), "l3fwd"),
    ("function name twice", lambda p: p["functions"][1].update(name="f"), '"f"'),
    ("function key", lambda p: p["functions"][0]["config"].update(colour=1), "colour"),
    ("function value", lambda p: p["functions"][0]["config"].update(mode="fly"), "fly"),
    ("chain to nowhere", lambda p: p["chains"][0].update(out="z"), '"z"'),
    ("unknown function in a path", lambda p: p["stages"][0].update(path=["z"]), '"z"'),
    ("a stage's worker", lambda p: p["stages"][0].update(worker=7), "worker"),
    ("a core that is not there", lambda p: p["workers"][0].update(core=1023), "1023"),
    ("a ring that leads nowhere", lambda p: p["stages"][0].update(sink={"ring": "r"}), "ring"),
    (
        "a long socket path",
        lambda p: p["ports"].__setitem__(
            1, {"name": "b", "kind": "vhost-user", "path": "/tmp/" + "x" * 120, "mode": "server"}
        ),
        "107",
    ),
]


@pytest.mark.parametrize("shares", [False, True])
def test_two_functions_with_one_address(shares):
    """The node refuses them itself, unless the nat says that it shares its router's."""
    data = plan().data
    nat = {"outside": ["b"], "inside": ["10.0.0.0/8"], "pool": ["192.0.2.0/28"]}
    configs = [
        ("router", {"addresses": {"b": ["192.0.2.7/24"]}}),
        ("nat", nat | {"share_address": shares}),
    ]
    data["functions"] = [
        {"name": name, "type": kind, "config": config}
        for name, (kind, config) in zip(("rtr", "nat"), configs, strict=True)
    ]
    for stage in data["stages"]:
        stage["path"] = ["rtr", "nat"]
    if shares:
        check_plan(need("convoyd"), data)
        return
    with pytest.raises(InputError) as refused:
        check_plan(need("convoyd"), data)
    assert '"rtr" and "nat" both have the address 192.0.2.7' in str(refused.value)


@pytest.mark.parametrize(("change", "words"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_a_plan_changed_by_hand(change, words):
    data = plan().data
    change(data)
    with pytest.raises(InputError) as checked:
        check_plan(need("convoyd"), data)
    with pytest.raises(InputError) as started, Node(data):
        pass
    for message in (str(checked.value), str(started.value)):
        assert words in message
        assert message.startswith("convoyd: ")
        assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": "convoy.plan/1"}',
        '{"schema": "convoy.plan/1", "ports": 3, "chains": "x", "stages": {}, "workers": null}',
        '{"schema": "convoy.plan/1", "schema": "convoy.plan/1"}',
        '["convoy.plan/1"]',
        '{"x": ["convoy.plan/1"]}',
    ],
)
def test_a_plan_file_changed_by_hand(text, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text)
    for options in ([], ["--read", "x.pcap"]):
        done = CliRunner().invoke(app, ["run", str(path), *options])
        assert isinstance(done.exception, InputError)
        assert str(path) in str(done.exception)
        assert "\n" not in str(done.exception)


def test_two_nodes_on_one_socket(tmp_path):
    text = TEXT.replace("b: {null: }", f"b: {{vhost-user: {tmp_path}/b.sock}}")
    with Node(plan(text).data), pytest.raises(ConvoyError) as caught, Node(plan(text).data):
        pass
    assert str(caught.value).startswith(f'convoyd: port "b": path: {tmp_path}/b.sock: ')
