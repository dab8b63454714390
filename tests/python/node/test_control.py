# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The control sockets: what a slow or hostile client can do, and what clients are told."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client, ClientError, RefusedError
from convoy.errors import ConvoyError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import need
from memory import own_bytes

CHAIN = """
ports:
  in: {null: 60}
  out: {null:, convoys: {ip: 192.0.2.1}}
functions: {mac: {l2fwd: {dst: "02:00:00:00:00:01"}}}
chains: {all: {from: in, to: out, path: [mac]}}
workers: {idle: sleep}
memory: {hugepages: never}
"""
HOP = {"name": "b", "port": "out", "mac": "02:00:00:00:00:0b", "ip": "192.0.2.2"}
CLIENTS = 32  # of a socket
GROUP = 4242 if os.getuid() == 0 else os.getgid()


def plan_of(text: str = CHAIN) -> dict[str, Any]:
    machine = this_machine()
    return make_plan(loads(text, machine, Path("/nowhere")), machine).data


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all attacks: it must survive each."""
    with Node(plan_of()) as node:
        yield node
        assert node.stop()["accounting"]["conserved"]


@contextmanager
def raw(node: Node, which: str = "control") -> Iterator[socket.socket]:
    """A client that says what it likes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(node.ready[which])  # waits for its turn
        sock.settimeout(30)
        yield sock


def lines(sock: socket.socket) -> Iterator[dict[str, Any]]:
    """What the node says, until it closes the connection."""
    with sock.makefile("rb") as file, suppress(ConnectionResetError):
        for line in file:
            yield json.loads(line)


def say(node: Node, text: bytes, which: str = "control") -> dict[str, Any]:
    """The answer to one line."""
    with raw(node, which) as sock:
        answers = lines(sock)
        assert next(answers)["method"] == "hello"
        sock.sendall(text + b"\n")
        return next(answers)


def request(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()


def assert_serves(node: Node) -> None:
    """Others are answered at once, and packets flow."""
    begin = time.monotonic()
    with Client(node.running.control) as client:
        before = client.counts()["accounting"]["sent"]
    assert time.monotonic() - begin < 5
    wait_for(lambda: node.counts()["accounting"]["sent"] > before, 20, "packets")
    node.forget_client()


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (b"", -32700, "byte"),
        (b"nonsense", -32700, "'[' or '{' expected"),
        (b'{"a": 1, "a": 2}', -32700, "duplicate"),
        (b'"\xff\xfe"', -32700, "unable to decode byte"),
        (b"[]", -32600, "must be an object"),
        (b'[{"jsonrpc": "2.0", "method": "counts", "id": 1}]', -32600, "must be an object"),
        (b"[" * 100, -32600, "nested too deep"),
        (b'{"a":' * 100_000, -32600, "nested too deep"),
        (b"[" + b"0," * 5_000_000, -32600, "too many values"),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "counts"}', -32600, 'must be "2.0"'),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "counts"}', -32600, "must be an integer"),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600, "method: is missing"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600, "method: 5"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "counts", "x": 5}', -32600, "x"),
        (b'{"jsonrpc": "2.0", "id": "%s", "method": "x"}' % (b"i" * 129), -32600, "128"),
        (request("nothing"), -32601, "nothing: no such method"),
        (request("m" * 100_000), -32601, "no such method"),
        (request("counts", x=1), -32602, "x"),
        (request("next_hops.remove"), -32602, "name: is missing"),
        (request("next_hops.remove", name="b"), -32602, "there is none of that name"),
        (request("next_hops.put", next_hop=[]), -32602, "next_hop"),
        (request("next_hops.put", next_hop={"name": "ä" * 600}), -32602, "name"),
        (request("apply", plan={}), -32602, "not as the node runs it"),
        (request("apply", plan={}, files={"/a": [0, 1]}), -32602, "no descriptor came"),
    ],
    ids=range(24),
)
def test_what_is_wrong_is_said(node: Node, text: bytes, code: int, words: str) -> None:
    answer = say(node, text)
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] == code, answer
    assert words in answer["error"]["message"]


def test_a_notification_is_not_answered(node: Node) -> None:
    with raw(node) as sock:
        answers = lines(sock)
        next(answers)
        sock.sendall(b'{"jsonrpc": "2.0", "method": "counts"}\n' + request("sandbox") + b"\n")
        assert next(answers)["result"]["on"] is True


def test_many_requests_in_one_piece_and_one_in_many(node: Node) -> None:
    with raw(node) as sock:
        answers = lines(sock)
        next(answers)
        sock.sendall((request("sandbox") + b"\n") * 100)
        assert [next(answers)["id"] for _ in range(100)] == [7] * 100
        for byte in request("sandbox") + b"\n":
            sock.send(bytes([byte]))
        assert next(answers)["id"] == 7


@pytest.mark.parametrize("which", ["control", "read"])
def test_a_line_without_end_ends(node: Node, which: str) -> None:
    most = 64 << (20 if which == "control" else 10)
    with raw(node, which) as sock, suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(0, 2 * most, 65536):
            sock.sendall(b" " * 65536)
    with raw(node, which) as sock:
        answers = lines(sock)
        next(answers)
        with suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(b"x" * (most + 1))
        assert f"at most {most} bytes" in next(answers)["error"]["message"]
        assert list(answers) == []
    assert_serves(node)


def test_long_requests_share_what_there_is(node: Node) -> None:
    """Several clients that begin long requests and do not end them: memory is bounded."""

    before = own_bytes(node.process.pid)
    with ExitStack() as stack:
        clients = [stack.enter_context(raw(node)) for _ in range(6)]

        def send(sock: socket.socket) -> None:
            with suppress(OSError):
                sock.sendall(b" " * (33 << 20))

        senders = [threading.Thread(target=send, args=[sock]) for sock in clients]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert own_bytes(node.process.pid) - before < 256 << 20
        assert_serves(node)
    assert say(node, b" " * (33 << 20))["error"]["code"] == -32700


def test_half_lines_and_silence_hold_up_nobody(node: Node) -> None:
    with ExitStack() as stack:
        for i in range(3 * CLIENTS):
            sock = stack.enter_context(raw(node))
            if i % 2:
                sock.sendall(b'{"jsonrpc": "2.0", "id"')
        assert_serves(node)


def test_thousands_of_connections(node: Node) -> None:
    stop = threading.Event()
    count = 0

    def flood() -> None:
        nonlocal count
        with ExitStack() as stack:
            while not stop.is_set():
                with suppress(OSError):
                    stack.enter_context(raw(node))
                    count += 1
                if count % 500 == 0:
                    stack.pop_all().close()

    floods = [threading.Thread(target=flood) for _ in range(2)]
    for one in floods:
        one.start()
    try:
        wait_for(lambda: count > 2000, 60, "connections")
        with Client(node.running.read) as client:  # a socket of its own: not even slower
            assert client.counts()["accounting"]["sent"] > 0
    finally:
        stop.set()
        for one in floods:
            one.join()
    assert_serves(node)
    threads = len(list(Path(f"/proc/{node.process.pid}/task").iterdir()))
    assert threads < 2 * CLIENTS + 20


def test_one_who_asks_and_never_reads(node: Node) -> None:
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            sock = stack.enter_context(raw(node))
            sock.settimeout(0.2)
            with suppress(TimeoutError):
                while True:
                    sock.sendall((request("methods") + b"\n") * 100)
        assert_serves(node)


def test_descriptors_that_nobody_wants_are_closed(node: Node) -> None:
    def opened() -> int:
        return len(list(Path(f"/proc/{node.process.pid}/fd").iterdir()))

    before = opened()
    for which in ("control", "read"):
        with raw(node, which) as sock, Path("/dev/null").open() as file:
            for _ in range(50):
                socket.send_fds(sock, [b" "], [file.fileno()] * 8)
            assert_serves(node)
    wait_for(lambda: opened() <= before, 20, "descriptors to be closed")


def test_a_descriptor_goes_to_the_request_that_it_came_with() -> None:
    """Requests that are read with it, before that one, do not take it."""
    rules = b"@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x11/0xFF\t0x0000/0x0000\n"
    plan = plan_of()
    plan["functions"].append(
        {
            "name": "fw",
            "type": "firewall",
            "config": {"default": "allow", "rules_file": "/nowhere/rules"},
        }
    )
    for stage in plan["stages"]:
        stage["path"] = ["fw"]
    with Node(plan_of()) as node, raw(node) as sock, tempfile.TemporaryFile() as file:
        file.write(rules)
        file.flush()
        answers = lines(sock)
        next(answers)
        wants = request("apply", plan=plan, files={"/nowhere/rules": [0, len(rules)]})
        socket.send_fds(sock, [request("sandbox") + b"\n", wants + b"\n"], [file.fileno()])
        assert "result" in next(answers)
        answer = next(answers)
        assert "result" in answer, answer
        node.stop()


def test_where_one_reads_one_changes_nothing(node: Node) -> None:
    with Client(node.running.read) as client:
        assert not client.hello.may_change
        for method in ("apply", "next_hops.put", "next_hops.remove"):
            with pytest.raises(ClientError, match="this socket is for reading"):
                client.call(method)


def test_a_next_hop_of_many_ids(node: Node) -> None:
    """No limit on its bytes: 4,000 SC-IDs are 50,000."""
    with Client(node.running.control) as client:
        client.put_next_hop({**HOP, "match": [{"vlan": i} for i in range(1, 4001)]})
        assert client.next_hops()["b"]["scids"] == 4000
        with pytest.raises(RefusedError, match="no port is called"):
            client.put_next_hop({**HOP, "port": "x", "match": [{}]})
        client.remove_next_hop("b")
        assert client.next_hops() == {}


def test_every_method_says_what_it_is(node: Node) -> None:
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text()
    with Client(node.running.read) as client:
        for method in client.methods():
            assert method["doc"]
            assert f"| `{method['name']}` |" in page
            for param in method["params"]:
                assert param["doc"]
                assert f"`{param['key']}`" in page


def test_a_node_that_ends_answers_whom_it_was_asked_by() -> None:
    with Node(plan_of()) as node, ExitStack() as stack:
        clients = [stack.enter_context(raw(node)) for _ in range(10)]
        client = stack.enter_context(Client(node.running.read))
        clients[0].sendall(b'{"jsonrpc": "2.0"')
        assert node.stop()["accounting"]["conserved"]
        with pytest.raises(ClientError, match=r"it is ending|Broken pipe|reset"):
            client.counts()
        with pytest.raises(ClientError, match="No such file"):
            Client(node.running.read)


def test_rights_of_the_sockets() -> None:
    with Node(plan_of()) as node:
        for which in ("control", "read"):
            path = Path(node.ready[which])
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    wanted = plan_of() | {
        "control": {"socket_mode": "0660", "socket_group": str(GROUP)},
        "telemetry": {"socket_mode": "0666"},
    }
    with (
        tempfile.TemporaryDirectory(prefix="cv-") as folder,
        Node(wanted, environment={"RUNTIME_DIRECTORY": folder}) as node,
    ):
        control, read = Path(node.ready["control"]), Path(node.ready["read"])
        assert stat.S_IMODE(control.stat().st_mode) == 0o660
        assert control.stat().st_gid == GROUP
        assert stat.S_IMODE(read.stat().st_mode) == 0o666
        assert stat.S_IMODE(read.parent.stat().st_mode) == 0o711
    with pytest.raises(ConvoyError, match="set RUNTIME_DIRECTORY to a folder"), Node(wanted):
        pass


@contextmanager
def server(tmp: Path, *sent: bytes) -> Iterator[Path]:
    """Something at a socket that is no node, or another one."""
    path = tmp / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listens:
        listens.bind(str(path))
        listens.listen()

        def serve() -> None:
            with suppress(OSError), listens.accept()[0] as peer:
                for one in sent:
                    peer.sendall(one)
                    peer.recv(4096)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path


NEWER = b'{"method":"hello","params":{"protocol":9,"version":"7.1","pid":1}}\n'
HELLO = (
    b'{"method":"hello","params":{"protocol":1,"version":"0.1.0","pid":1,"may_change":true,'
    b'"request_max":100}}\n'
)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([NEWER], "the node is Convoy 7.1, whose control protocol is 9; this one speaks 1"),
        ([b"220 smtp ready\n"], "is no node of Convoy's"),
        ([b"[]\n"], "is no node of Convoy's"),
        ([b'{"method":"hello","params":{"protocol":1}}\n'], "its hello has no 'version'"),
        ([b"{"], "no answer for 0.5 s"),
        ([HELLO, b"[" * 100_000 + b"\n"], "is no node of Convoy's"),
        ([HELLO, b'{"id": 8, "result": {}}\n'], "an answer to something else"),
        ([HELLO, b""], "no answer for 0.5 s"),
    ],
)
def test_a_client_says_what_it_met(sent: list[bytes], words: str) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="cv-") as folder,
        server(Path(folder), *sent) as path,
        pytest.raises(ClientError, match=words),
        Client(path, 0.5) as client,
    ):
        client.sandbox()


# A process with sockets of a node that was killed and had its number, which then becomes a node.
IN_A_DEAD_NODES_PLACE = """
import os, socket, sys
folder = f"{os.environ['RUNTIME_DIRECTORY']}/dpdk/convoyd-{os.getpid()}"
os.makedirs(folder, 0o700)
for name in "control.sock", "read.sock":
    socket.socket(socket.AF_UNIX).bind(f"{folder}/{name}")
os.execv(sys.argv[1], [sys.argv[1], "-"])
"""


def test_sockets_of_a_killed_node_are_in_nobodys_way():
    with (
        tempfile.TemporaryDirectory(prefix="cv-") as folder,
        subprocess.Popen(
            [sys.executable, "-c", IN_A_DEAD_NODES_PLACE, need("convoyd")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"RUNTIME_DIRECTORY": folder},
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(plan_of()))
            process.stdin.close()
            ready = json.loads(process.stdout.readline() or '{"event": null}')
            assert ready["event"] == "ready"
            with Client(Path(ready["read"])) as client:
                assert client.counts()["accounting"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            assert process.wait(30) == 0
