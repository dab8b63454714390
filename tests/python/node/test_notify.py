# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a service manager hears of a node, and when its watchdog is not fed."""

import json
import os
import signal
import socket
import subprocess

import pytest

from convoy.host.node import Node
from convoy.host.programs import need

from .test_node import plan
from .test_stuck import held

SOON_S = 20.0
WATCHDOG_S = 0.2


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
