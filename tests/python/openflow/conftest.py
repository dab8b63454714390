# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node that controllers connect to, and controllers that others wrote."""

import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import Process
from convoy.host.programs import find
from convoy.network.controller import PROGRAM

DEBIANS_PYTHON = Path("/usr/bin/python3")  # which has os-ken
DEADLINE_S = 60.0
HEADER = struct.Struct("!BBHI")
HELLO, ERROR, ECHO, ECHO_REPLY = 0, 1, 2, 3
PORT_STATUS, FLOW_MOD, BARRIER, PASSED = 12, 14, 20, 21
ADD, MODIFY, DELETE = 0, 1, 3
ANY = 0xFFFFFFFF
NODE = """
ports:
  in: {{null: 60}}
  out: {{null:, convoys: {{ip: 192.0.2.1}}}}
next-hops:
  b: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 7}}
  c: {{port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.3, nfi: 8, for: []}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
openflow: {{{keys}}}
"""


@pytest.fixture(scope="session", autouse=True)
def convoyd() -> Path:
    path = find("convoyd")
    if path is None:
        pytest.skip("convoyd is not built: make build")
    return path


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sockets of a test lie in a folder of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "convoy"


def node_of(text: str, folder: Path) -> Node:
    """Return a node that is not started yet."""
    machine = this_machine()
    return Node(make_plan(loads(text, machine, folder), machine).data)


def free_port() -> int:
    """Return a TCP port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Ofctl:
    """Open vSwitch's ovs-ofctl at a node's socket."""

    def __init__(self, path: Path) -> None:
        """Remember where."""
        self._path = path

    def __call__(self, command: str, *words: str) -> str:
        """Run a command; what it prints, errors included."""
        done = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", command, f"unix:{self._path}", *words],
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        return done.stdout + done.stderr

    def flows(self) -> list[str]:
        """Return the entries, without what differs from run to run."""
        lines = self("dump-flows").splitlines()
        return sorted(line.split("n_bytes=?, ")[1] for line in lines if "cookie=" in line)


class Controller:
    """osken.py, as a process: what it says, in order."""

    def __init__(self, process: Process) -> None:
        """Begin with its first line."""
        self._process = process
        self._read = 0

    def do(self, what: str, **values: Any) -> None:
        """Have it do something."""
        self._process.say(json.dumps({"do": what, **values}))

    def await_event(self, name: str) -> dict[str, Any]:
        """Return the next event of that name; others before it are passed over."""
        while True:
            line = self._process.stdout.line(self._read, DEADLINE_S)
            assert line is not None, f"no {name}: {self._process.last_words()}"
            self._read += 1
            event = json.loads(line) if line.startswith("{") else {"event": ""}
            event.pop("node", None)  # there is one
            if event["event"] == name:
                return dict(event)


@contextmanager
def osken(port: int) -> Iterator[Controller]:
    """Run an os-ken controller on a port of this machine."""
    if subprocess.run([DEBIANS_PYTHON, "-c", "import os_ken"], check=False).returncode != 0:
        pytest.skip("no os-ken: apt-get install python3-os-ken")
    with Process(
        [DEBIANS_PYTHON, PROGRAM, str(port)],
        takes_input=True,
        environment={**os.environ, "PYTHONPATH": ""},
    ) as process:
        yield Controller(process)


class Bytes:
    """A controller of a hundred lines' worth of bytes, for what must be exact."""

    def __init__(self, path: Path) -> None:
        """Connect and greet."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(str(path))
        self._there = b""
        self.send(message(HELLO))
        assert self.receive()[0] == HELLO

    def send(self, data: bytes) -> None:
        """Send messages."""
        self._socket.sendall(data)

    def receive(self) -> tuple[int, int, bytes]:
        """Return the next message: type, xid and body."""
        while len(self._there) < 8 or len(self._there) < HEADER.unpack(self._there[:8])[2]:
            got = self._socket.recv(65536)
            if not got:
                raise EOFError
            self._there += got
        _, kind, length, xid = HEADER.unpack(self._there[:8])
        body, self._there = self._there[8:length], self._there[length:]
        return kind, xid, body

    def barrier(self, xid: int = 1) -> None:
        """Return when everything before has come into effect; errors raise."""
        self.send(message(BARRIER, xid))
        kind, got, body = self.receive()
        while kind in (PORT_STATUS, ECHO):
            if kind == ECHO:  # nothing came for a while: one of the two is slow
                self.send(message(ECHO_REPLY, got, body))
            kind, got, body = self.receive()
        assert (kind, got) == (PASSED, xid), (kind, got, body.hex())

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()


def message(kind: int, xid: int = 1, body: bytes = b"") -> bytes:
    """Return a message of OpenFlow 1.3."""
    return HEADER.pack(4, kind, 8 + len(body), xid) + body


def flow_mod(command: int, output: int = 0, vni: int | None = None, **values: int) -> bytes:
    """Return a FLOW_MOD for a tunnel id, or for everything."""
    field = b"" if vni is None else struct.pack("!IQ", 0x80000000 | 38 << 9 | 8, vni)
    match = struct.pack("!HH", 1, 4 + len(field)) + field
    match += bytes(-len(match) % 8)
    action = struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, output, 0xFFFF) if output else b""
    head = struct.pack("!QQBBHHHIIIHH", values.get("cookie", 0), 0, values.get("table", 0), command,
                       0, values.get("hard", 0), values.get("priority", 100), ANY, ANY, ANY,
                       values.get("flags", 0), 0)  # fmt: skip
    return message(FLOW_MOD, values.get("xid", 1), head + match + action)
