# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node whose worker is stuck ends all the same: after a deadline, or on a second signal."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convoy.host.node import Node
from convoy.host.process import wait_for

from .test_node import plan

DEADLINE_S = 30.0
# Holds one thread, as a debugger does, until that is gone.
HOLD = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
tid = int(sys.argv[1])
for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
    if libc.ptrace(request, tid, None, None) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(tid, WALL)
print("held", flush=True)
while os.WIFSTOPPED(os.waitpid(tid, WALL)[1]):
    pass
"""


def worker_of(node: Node) -> int:
    """Return the thread of its only worker."""
    (tid,) = (
        int(task.name)
        for task in Path(f"/proc/{node.process.pid}/task").iterdir()
        if re.fullmatch(r"(rte-worker-|dpdk-worker)1\n", (task / "comm").read_text())
    )
    return tid


@contextmanager
def held(node: Node) -> Iterator[None]:
    """Keep a running node's worker from moving."""
    command = [sys.executable, "-c", HOLD, str(worker_of(node))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holds:
        assert holds.stdout is not None
        if holds.stdout.readline() != "held\n":
            pytest.skip("this user may not hold a thread of the node: sudo make check")
        try:
            yield
        finally:
            holds.kill()


@contextmanager
def stuck(*options: str) -> Iterator[Node]:
    """Run a node whose worker does not move."""
    with Node(plan().data, options=options) as node, held(node):
        yield node


def ended(node: Node) -> str:
    assert node.process.wait(DEADLINE_S) == 1
    assert json.loads(node.process.stdout.text())["event"] == "ready"
    assert not Path(node.ready["telemetry"]).parent.exists()
    (line,) = node.process.stderr.text().splitlines()
    return line


def test_a_deadline_ends_it():
    with stuck("--stop-deadline", "1") as node:
        node.process.signal(signal.SIGTERM)
        assert re.fullmatch(
            r"convoyd: not ended 1 s after a signal: stuck: worker 0 \(core \d+\); "
            r"ended at once, without counts",
            ended(node),
        )


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it(second):
    with stuck("--stop-deadline", "3600") as node:
        node.process.signal(signal.SIGTERM)
        status = Path(f"/proc/{node.process.pid}/status")
        # Two signals of one kind that wait are one: let the first be taken.
        wait_for(lambda: "ShdPnd:\t0000000000000000" in status.read_text(), DEADLINE_S, "taken")
        node.process.signal(second)
        assert ended(node).startswith("convoyd: a second signal")


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "3601", ""])
def test_a_bad_deadline_is_refused(value, convoyd):
    done = subprocess.run(
        [convoyd, "--stop-deadline", value, "-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--stop-deadline" in done.stderr
