# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a service manager hears of a node, and when its watchdog is not fed."""

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.programs import need

from .test_node import plan
from .test_stuck import held

SOON_S = 20.0
WATCHDOG_S = 0.2
ROUTER = """
ports: {in: {null: }, out: {null: }}
functions: {rtr: {router: {ROUTES, neighbours: {192.0.2.9: "02:00:00:00:00:09"}}}}
chains: {all: {from: in, to: out, path: [rtr]}}
workers: {idle: sleep}
memory: {hugepages: never, mb: 1024}
"""


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A service manager's socket, and what it is called in the environment."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listens:
        path = str(tmp_path / "notify")
        name = f"@convoy-test-{os.getpid()}"
        listens.bind(path if request.param == "path" else "\0" + name[1:])
        listens.settimeout(SOON_S)
        yield listens, path if request.param == "path" else name


def node(name: str, **environment: str) -> Node:
    return Node(plan().data, environment={"NOTIFY_SOCKET": name, **environment})


def heard(listens: socket.socket) -> str:
    return listens.recv(4096).decode()


def test_ready_and_stopping(manager):
    listens, name = manager
    with node(name) as running:
        assert heard(listens) == "READY=1"
        running.stop(signal.SIGTERM)
    assert heard(listens) == "STOPPING=1"


def test_the_watchdog_is_fed_while_workers_poll_and_only_then(manager):
    listens, name = manager
    with node(name, WATCHDOG_USEC=f"{WATCHDOG_S * 1e6:.0f}") as running:
        assert heard(listens) == "READY=1"
        assert [heard(listens) for _ in range(3)] == ["WATCHDOG=1"] * 3
        with held(running):
            listens.settimeout(5 * WATCHDOG_S)
            with pytest.raises(TimeoutError):
                while True:  # those from before it was held
                    assert heard(listens) == "WATCHDOG=1"
        listens.settimeout(SOON_S)
        assert heard(listens) == "WATCHDOG=1"
        running.stop()
    while (last := heard(listens)) == "WATCHDOG=1":
        pass
    assert last == "STOPPING=1"


@pytest.mark.parametrize("manager", ["path"], indirect=True)
def test_the_watchdog_is_fed_while_the_node_goes_back(manager, tmp_path):
    """A change that nobody confirms is taken back; what ran before takes long to make."""
    listens, name = manager
    with (tmp_path / "routes").open("w") as file:
        for i in range(200_000):
            file.write(f"{20 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24 via 192.0.2.9 dev out\n")
    machine = this_machine()

    def routes(text: str) -> dict[str, Any]:
        return make_plan(loads(ROUTER.replace("ROUTES", text), machine, tmp_path), machine).data

    first = routes("routes-file: routes")
    small = routes("routes: [{prefix: 0.0.0.0/0, via: 192.0.2.9, dev: out}]")
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "50000"}
    with Node(first, environment=environment) as running:
        with Client(running.running.control, 60) as client:

            def is_back() -> bool:
                return "routes_file" in client.plan()["functions"][0]["config"]

            client.apply(small, confirm_s=1)
            due = time.monotonic() + 1
            listens.setblocking(False)
            fed = 0  # while it went back
            while not is_back():
                with suppress(BlockingIOError):
                    while listens.recv(4096) != b"":
                        fed += time.monotonic() > due + 0.1
            assert fed > 0
        running.stop()


def test_another_process_feeds_no_watchdog_of_ours(manager):
    listens, name = manager
    with node(name, WATCHDOG_USEC="1000", WATCHDOG_PID="1") as running:
        running.stop()
    assert [heard(listens), heard(listens)] == ["READY=1", "STOPPING=1"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"NOTIFY_SOCKET": "relative"}, 'NOTIFY_SOCKET: "relative": must be a path, or @'),
        ({"NOTIFY_SOCKET": "/" + 110 * "x"}, "must be a path, or @"),
        ({"NOTIFY_SOCKET": "/nowhere/notify"}, "/nowhere/notify"),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "-1"}, 'WATCHDOG_USEC: "-1": must be micro'),
    ],
)
def test_bad_environment(environment, words, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan().data))
    done = subprocess.run(
        [need("convoyd"), path], env={**os.environ, **environment}, text=True, check=False,
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
