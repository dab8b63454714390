# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The command as people run it, and a stub for convoyd whose behaviour a test chooses."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_S = 60

STAND_IN = """\
#!{python}
import json, os, signal, socket, sys, threading
BEHAVIOUR = {behaviour!r}
if "--check" in sys.argv:
    if BEHAVIOUR == "bad plan":
        print("EAL: noise", file=sys.stderr)
        print("convoyd: stdin: functions[0].config: no", file=sys.stderr)
        sys.exit(2)
    if BEHAVIOUR == "crash":
        os.abort()
    print(json.dumps(dict(event="checked", flows={{}})))
    sys.exit(0)
plan = json.load(sys.stdin)
if BEHAVIOUR == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if BEHAVIOUR == "no port":
    print("convoyd: ports[0]: interface x: no such device", file=sys.stderr)
    sys.exit(2)
if BEHAVIOUR == "taken":
    print('convoyd: port "b": path: /s: another process listens there', file=sys.stderr)
    sys.exit(1)
packets = 0
def ports():
    return {{p["name"]: dict(kind=p["kind"], rx_packets=packets, rx_bytes=60 * packets,
        tx_packets=packets, tx_bytes=60 * packets, drops=dict(no_chain=0, no_room=0))
        for p in plan["ports"]}}
def functions():
    return {{f["name"]: dict(type=f["type"], packets=packets, bytes=60 * packets,
        busy_cycles=20 * packets, drops=dict(denied=3),
        originated=0, absorbed=0, held=0, copied_out=0) for f in plan["functions"]}}
def workers():
    return [dict(core=w["core"], poll_iterations=packets, busy_cycles=packets,
        total_cycles=2 * packets, longest_iteration_ns=1500)
        for w in plan["workers"]]
def accounting():
    return dict(received=packets, originated=0, sent=packets, dropped=0, absorbed=0, held=0,
        conserved=BEHAVIOUR != "lossy")
def counts():
    return dict(schema="convoy.counts/3", ports=ports(), functions=functions(),
        next_hops={{}}, flows={{}}, workers=workers(), accounting=accounting(), tsc_hz=2500000000)
path = os.environ["XDG_RUNTIME_DIR"] + "/read.sock"
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
if os.path.exists(path):
    os.unlink(path)
server.bind(path)
server.listen()
def answer():
    global packets
    while True:
        connection, _ = server.accept()
        hello = dict(protocol=1, version="x", pid=1, may_change=False, request_max=65536)
        connection.send(json.dumps(dict(method="hello", params=hello)).encode() + b"\\n")
        while request := connection.recv(1024):
            packets += 1000
            answer = dict(id=json.loads(request)["id"], result=counts())
            connection.send(json.dumps(answer).encode() + b"\\n")
threading.Thread(target=answer, daemon=True).start()
print(json.dumps(dict(event="ready", read=path, hugepages=False)), flush=True)
if BEHAVIOUR == "talks":
    sys.stdin.close()
    print("port a: peer gone", file=sys.stderr, flush=True)
if BEHAVIOUR == "dies":
    os.abort()
if BEHAVIOUR == "deaf":
    signal.pause()
if BEHAVIOUR == "hands over":
    print(json.dumps(dict(event="handed over", pid=4711)), flush=True)
    sys.exit(0)
if BEHAVIOUR != "ends":
    signal.sigwait([signal.SIGTERM])
print(json.dumps(counts()), flush=True)
sys.exit(1 if BEHAVIOUR == "lossy" else 0)
"""

CHAIN = """\
ports: {a: {null: }, b: {null: }}
functions: {fw: {firewall: {default: allow}}}
chains: {all: {from: a, to: b, path: [fw]}}
"""

Convoy = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the stub is convoyd, once a test made one."""
    (tmp_path / "run").mkdir()
    return {
        **os.environ,
        "CONVOY_BIN": str(tmp_path / "bin"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "COLUMNS": "200",
    }


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[[str], None]:
    def make(behaviour: str) -> None:
        path = tmp_path / "bin" / "convoyd"
        path.parent.mkdir(exist_ok=True)
        path.write_text(STAND_IN.format(python=sys.executable, behaviour=behaviour))
        path.chmod(0o755)

    return make


COMMAND = [sys.executable, "-c", "from convoy.cli.main import main; main()"]


@pytest.fixture
def convoy(environment: dict[str, str], tmp_path: Path) -> Convoy:
    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    return run
