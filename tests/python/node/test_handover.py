# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy handover: a new process takes over while packets flow; what fails leaves the old one."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.client import Client, ClientError, RefusedError
from convoy.errors import ConvoyError, InputError
from convoy.host.counts import RunningNode, running_nodes
from convoy.host.handover import HandedOver, hand_over
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import need
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

SOON_S = 30.0
HANDOVERS = int(os.environ.get("CONVOY_HANDOVERS", "8"))
TRAFFIC = {"rate_pps": 5000, "duration_s": 0.5, "drain_s": 10, "tolerance": 1}
HELLO, PORT, PREPARED, READY, FROZEN, COMMIT, STARTED, CARRIED, REFUSED = range(1, 10)
KEPT = 11

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service's folder: nodes of other tests are not seen there."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return tmp_path / "dpdk"


def plan_of(folder: Path, *functions: dict[str, Any]) -> dict[str, Any]:
    """Return a plan of functions between two vhost-user servers."""
    functions = functions or ({"name": "f", "type": "l2fwd", "config": {"mode": "rewrite"}},)
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": name, "kind": "vhost-user", "path": str(folder / f"{name}.sock")}
            for name in ("left", "right")
        ],
        "functions": list(functions),
        "chains": [{"name": "all", "match": {}, "in": "left", "out": "right"}],
        "stages": [
            {
                "worker": 0,
                "chain": "all",
                "source": {"port": "left"},
                "path": [function["name"] for function in functions],
                "sink": {"port": "right"},
            }
        ],
        "workers": [{"core": CORES[0], "idle": "sleep"}],
    }


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    return plan_of(tmp_path)


@pytest.fixture
def tester(plan: dict[str, Any]) -> Iterator[ConvoyGen]:
    """A tester whose two guests connect when a node is there."""
    ports = [f"vhost-user:{port['path']},ring=1024" for port in plan["ports"]]
    with ConvoyGen(ports, core=CORES[-1]) as running:
        yield running


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; a child of ours may not have been waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextlib.contextmanager
def ended(folder: Path) -> Iterator[None]:
    """Whatever nodes took over are ended; nothing of them is left."""
    try:
        yield
    finally:
        for node in running_nodes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(node.pid, signal.SIGTERM)
        wait_for(lambda: not list(folder.glob("convoyd-*")), SOON_S, "all nodes' ends")


def until_it_forwards(tester: ConvoyGen) -> None:
    def forwards() -> bool:
        total = tester.trial({"rate_pps": 5000, "duration_s": 0.05, "tolerance": 1}).total
        return total is not None and total.received_pkts == total.sent_pkts > 0

    wait_for(forwards, SOON_S, "the node to forward")


def send_until_joined(changing: threading.Thread, tester: ConvoyGen) -> tuple[int, int]:
    """Send packets as long as a thread runs; return how many were sent and received."""
    sent = received = 0
    while changing.is_alive() or sent == 0:
        total = tester.trial(TRAFFIC).total
        assert total is not None
        sent += total.sent_pkts
        received += total.received_pkts
    changing.join()
    return sent, received


def counts_of(node: RunningNode) -> dict[str, Any]:
    with Client(node.read) as client:
        return client.counts()


def all_of(counts: dict[str, Any], port: str) -> tuple[int, int]:
    """Return what a port's worker and its device counted, both ways."""
    one = counts["ports"][port]
    device = one["device"]
    assert (device["rx_pkts"], device["tx_pkts"]) == (one["rx_packets"], one["tx_packets"])
    return one["rx_packets"], one["tx_packets"]


def descriptors(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except PermissionError:  # a node is nobody's to look into
        return 0


def places(pid: int) -> set[tuple[str, frozenset[int]]]:
    """Return on which cores a process's threads may run, by their names."""
    may: set[tuple[str, frozenset[int]]] = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            name = (thread / "comm").read_text().strip()
            may.add((name, frozenset(os.sched_getaffinity(int(thread.name)))))
    return may


def test_nothing_is_lost_in_many_handovers(plan, tester, runtime_folder, tmp_path):
    done: list[HandedOver] = []
    errors: list[BaseException] = []

    def change(node: RunningNode) -> None:
        try:
            for _ in range(HANDOVERS):
                done.append(hand_over(node))
                node = done[-1].after
        except BaseException as error:
            errors.append(error)

    with Node(plan) as node, ended(runtime_folder):
        until_it_forwards(tester)
        before = counts_of(node.running)["accounting"]["received"]
        opened = descriptors(node.process.pid)
        ran = places(node.process.pid)
        changing = threading.Thread(target=change, args=[node.running])
        changing.start()
        sent, received = send_until_joined(changing, tester)
        assert not errors, errors
        counts = counts_of(done[-1].after)
        # But what found the tester's ring full, when the tester had to wait for its core.
        full = counts["ports"]["right"]["drops"]["tx_full"]
        assert sent - received == full == counts["accounting"]["dropped"]
        assert counts["accounting"]["received"] == before + sent
        assert counts["functions"]["f"]["packets"] == before + sent
        assert all_of(counts, "left") == (before + sent, 0)
        assert all_of(counts, "right") == (0, before + sent - full)
        # To the front ends nothing happened: they are those of the beginning.
        assert [port["device"]["peers"] for port in counts["ports"].values()] == [1, 1]
        last = done[-1].after.pid
        wait_for(lambda: descriptors(last) <= opened, SOON_S, "no more descriptors than before")
        # No thread is where it was to hand over; those of connections come and go.
        wait_for(lambda: places(last) <= ran, SOON_S, "all threads where they were before")
        assert node.process.wait(SOON_S) == 0
        events = [json.loads(line) for line in node.process.stdout.text().splitlines()]
        assert {"event": "handed over", "pid": done[0].after.pid} in events
        for one in done[:-1]:
            wait_for(lambda one=one: is_gone(one.after.pid), SOON_S, "the end of those before")
        assert [path.name for path in runtime_folder.iterdir()] == [f"convoyd-{done[-1].after.pid}"]
    assert not list(tmp_path.glob("*.sock"))  # the last one has removed what the first one made


class Other:
    """One end of a handover, that a test plays."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        end.settimeout(SOON_S)

    def say(self, kind: int, body: bytes = b"", declared: int | None = None) -> None:
        length = len(body) if declared is None else declared
        self.end.send(struct.pack("II", kind, length) + body)

    def hello(self, digest: int, protocol: int = 3, ports: int = 0b11) -> None:
        self.say(HELLO, struct.pack("IiQQ32s", protocol, os.getpid(), digest, ports, b"0.0.0"))

    def hears(self, kind: int) -> bytes:
        """Return a message of a kind, behind those about ports."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.end, 1 << 16, 8)
            for descriptor in descriptors:
                os.close(descriptor)
            assert data, "the other one has closed"
            if struct.unpack_from("I", data)[0] != PORT:
                assert struct.unpack_from("I", data)[0] == kind, data
                return data[8:]


def digest(plan: Any) -> int:
    text = json.dumps(plan, separators=(",", ":"), sort_keys=True)
    result = 0xCBF29CE484222325
    for byte in text.encode():
        result = (result ^ byte) * 0x100000001B3 % 2**64
    return result


def leaves_after(step: str, other: Other, plan: dict[str, Any]) -> None:
    """Be a new node that ends at a step."""
    if step == "nothing":
        return
    if step == "rubbish":
        other.end.send(b"\xff" * 4096)
        return
    if step == "another protocol":
        return other.hello(digest(plan), protocol=4)
    if step == "another plan":
        return other.hello(digest(plan) ^ 1)
    if step == "ports that it has not":
        return other.hello(digest(plan), ports=0b111)
    other.hello(digest(plan))
    other.hears(HELLO)
    if step == "a lie about its length":
        return other.say(READY, declared=4)
    other.hears(PREPARED)
    if step == "prepared":
        return
    if step == "a refusal":
        return other.say(REFUSED, b"no memory\0")
    other.say(READY)
    other.hears(FROZEN)
    if step == "frozen":
        return
    other.say(READY)
    other.hears(COMMIT)


WORDS = {
    "nothing": "the other node has ended",
    "rubbish": "no message of a handover",
    "another protocol": "whose handover protocol is 4",
    "another plan": "another plan",
    "ports that it has not": "names ports that do not exist",
    "hello": "the other node has ended",
    "a lie about its length": "READY: has 4 bytes",
    "prepared": "the other node has ended",
    "a refusal": "no memory",
    "frozen": "the other node has ended",
    "committed": "the other node has ended",
}


def test_a_new_node_that_ends_at_any_step_leaves_the_old_one_as_it_was(plan, tester):
    with Node(plan) as node:
        until_it_forwards(tester)
        before = counts_of(node.running)
        ran = places(node.process.pid)
        for step, words in WORDS.items():
            with Client(node.running.control, SOON_S) as client:
                ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

                def play(step: str = step, end: socket.socket = its) -> None:
                    with end:
                        leaves_after(step, Other(end), node._plan)

                new = threading.Thread(target=play)
                new.start()
                with ours, pytest.raises((RefusedError, ClientError), match=words):
                    client.hand_over(ours.fileno())
                new.join()
            wait_for(lambda: places(node.process.pid) <= ran, SOON_S, f"all threads back, {step}")
        total = tester.trial(TRAFFIC).total
        assert total is not None
        assert total.received_pkts == total.sent_pkts > 0
        counts = counts_of(node.running)
        passed = before["accounting"]["received"] + total.sent_pkts
        assert counts["accounting"]["received"] == counts["accounting"]["sent"] == passed
        assert [port["device"]["peers"] for port in counts["ports"].values()] == [1, 1]
        assert hand_over(node.running).held_pkts == 0  # and it can be handed over after all
        for after in running_nodes():
            os.kill(after.pid, signal.SIGTERM)


@pytest.mark.parametrize("new", ["/bin/true", "/bin/false"])
def test_a_program_that_is_no_node_changes_nothing(plan, new):
    with Node(plan) as node:
        with pytest.raises(ConvoyError, match="the new node"):
            hand_over(node.running, Path(new))
        assert [one.pid for one in running_nodes()] == [node.process.pid]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            {"type": "bridge", "config": {"sides": ["left", "right"]}},
            'function "f": its learned stations do not go along; add --forget',
        ),
        (
            {"type": "cache", "config": {"outside": ["right"]}},
            'function "f": its stored answers do not go along; add --forget-flows',
        ),
    ],
)
def test_what_functions_keep_is_not_lost_unasked(tmp_path, runtime_folder, function, why):
    plan = plan_of(tmp_path, {"name": "f", "config": {}, **function})
    with Node(plan) as node, ended(runtime_folder):
        with pytest.raises(InputError, match=why):
            hand_over(node.running)
        assert hand_over(node.running, forget_flows=True).before == node.running


TRANSLATOR = {
    "name": "translator",
    "type": "nat64",
    "config": {
        "prefix": "2001:db8:64::/96",
        "source": "203.0.113.1",
        "source_ipv6": "2001:db8:ffff::1",
    },
}
WITH_CLIENTS = TRANSLATOR | {"config": TRANSLATOR["config"] | {"clients": "100.64.0.0/16"}}
STATEFUL = {"name": "fw", "type": "firewall", "config": {"stateful": True, "default": "allow"}}


@pytest.mark.parametrize("translator", [TRANSLATOR, WITH_CLIENTS], ids=["alone", "clients"])
def test_flows_do_not_go_to_other_hosts(tmp_path, runtime_folder, translator):
    plan = plan_of(tmp_path, translator, STATEFUL) | {"flows": {"max": 64, "max_ipv6": 64}}
    ports = [f"vhost-user:{port['path']},ring=1024" for port in plan["ports"]]
    with ConvoyGen(ports, core=CORES[-1]) as tester, Node(plan) as node, ended(runtime_folder):
        until_it_forwards(tester)
        before = flows_of(node.running)
        assert before > 0
        if translator is WITH_CLIENTS:
            with pytest.raises(InputError, match='"translator": its clients do not go along; add'):
                hand_over(node.running)
        done = hand_over(node.running, forget_flows=True)
        assert flows_of(done.after) == (0 if translator is WITH_CLIENTS else before)


def flows_of(node: RunningNode) -> int:
    return int(counts_of(node)["flows"]["fw"]["flows_ipv4"])


def test_a_port_that_cannot_go_over_is_named(plan, tmp_path):
    plan["ports"][1] = {"name": "right", "kind": "pcap", "write": str(tmp_path / "out.pcap")}
    with Node(plan) as node:
        with pytest.raises(InputError, match='port "right": a port of kind pcap cannot be handed'):
            hand_over(node.running)
        assert not is_gone(node.process.pid)


def test_who_asks_without_a_socket_is_told(plan):
    words = "no socket came with the request"
    with (
        Node(plan) as node,
        Client(node.running.control) as client,
        pytest.raises(RefusedError, match=words),
    ):
        client.call("handover")


def test_the_service_manager_hears_who_the_service_is_now(plan, runtime_folder, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SOON_S)
        where = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with Node(plan, environment=where) as node, ended(runtime_folder):
            assert manager.recv(4096) == b"READY=1"
            after = hand_over(node.running).after
            assert manager.recv(4096) == f"MAINPID={after.pid}".encode()
            assert manager.recv(4096) == b"READY=1"
            assert node.process.wait(SOON_S) == 0
        assert manager.recv(4096) == b"STOPPING=1"  # of the last one only


def test_what_runs_is_kept_in_the_same_folder(plan, runtime_folder, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    with Node(plan, options=["--state", str(state)]) as node, ended(runtime_folder):
        after = hand_over(node.running).after
        assert node.process.wait(SOON_S) == 0
        changed = json.loads(json.dumps(plan))
        changed["functions"][0]["config"] = {"mode": "swap"}
        with Client(after.control, SOON_S) as client:
            assert client.state()["folder"] == str(state)
            client.apply(changed)
            assert client.state()["written"] == 1
    again = Node(plan, options=["--state", str(state)])
    with again as node, Client(node.running.read) as client:
        assert client.plan()["functions"][0]["config"] == {"mode": "swap"}


def test_the_command(plan, runtime_folder):
    with Node(plan) as node, ended(runtime_folder):
        ran = CliRunner().invoke(app, ["handover", "--json"])
        assert ran.exit_code == 0, ran.output
        result = json.loads(ran.stdout)
        assert (result["schema"], result["pid_before"]) == ("convoy.handover/1", node.process.pid)
        assert result["gap_us"] > 0
        assert node.process.wait(SOON_S) == 0
        ran = CliRunner().invoke(app, ["handover"])
        assert f"convoyd {result['pid']} handed over to " in ran.output
    ran = CliRunner().invoke(app, ["handover"])
    assert ran.exit_code != 0


def test_a_flow_keeps_its_next_hop(tmp_path, runtime_folder):
    """Of sixteen: with another secret it would go to another one in some of four handovers."""
    plan = plan_of(tmp_path)
    plan["ports"] = [
        {"name": "left", "kind": "null", "frame_bytes": 60},
        {"name": "right", "kind": "null"},
    ]
    plan["convoys"] = [{"port": "right", "ip": "192.0.2.1"}]
    hop = {"port": "right", "mac": "02:00:00:00:00:0b", "ip": "192.0.2.2", "match": [{}]}
    plan["next_hops"] = [{"name": f"n{i}", "nfi": i, **hop} for i in range(16)]

    def packets(node: RunningNode) -> dict[str, int]:
        with Client(node.read) as client:
            return {name: one["packets"] for name, one in client.next_hops().items()}

    with Node(plan) as started, ended(runtime_folder):
        node = started.running
        wait_for(lambda: sum(packets(node).values()) > 0, SOON_S, "packets")
        (name,) = (name for name, count in packets(node).items() if count)
        for _ in range(4):
            node = hand_over(node).after
            then = packets(node)[name]
            wait_for(lambda: packets(node)[name] > then + 1000, SOON_S, "more packets")  # noqa: B023
        assert [one for one, count in packets(node).items() if count] == [name]


def test_a_new_node_refuses_what_its_functions_cannot_know(plan, runtime_folder):
    """A running node of another version may tell of flows where this one's function has none."""
    plan["functions"][0]["config"] = {"mode": "rewrite"}
    function = digest(["f", "l2fwd"])
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        other = Other(ours)
        new = subprocess.Popen(
            [need("convoyd"), "--handover", str(its.fileno()), "-"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            pass_fds=[its.fileno()], text=True,
        )  # fmt: skip
        with new:
            new.stdin.write(json.dumps(plan))
            new.stdin.close()
            its.close()
            other.hears(HELLO)
            other.hello(digest(plan), ports=0)
            with tempfile.TemporaryFile() as file:
                message = struct.pack("IIQQ", KEPT, 16, function, 0)
                socket.send_fds(ours, [message], [file.fileno()])
            assert b'function "f": ' in other.hears(REFUSED)
            assert "knows no flows here" in new.stderr.read()
        assert new.returncode == 1
