# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""kill -9 one of two nodes while traffic flows, and start it again: the other goes on."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from convoy.host.node import Node
from convoy.host.process import wait_for
from cores import CORES

from .plans import joined

DEADLINE_S = 60.0
Keys = Mapping[str, Any]

PAIRS: list[tuple[str, Keys, Keys]] = [
    ("vhost-user server", {"kind": "vhost-user"}, {"kind": "virtio-user"}),
    (
        "vhost-user client",
        {"kind": "vhost-user", "mode": "client"},
        {"kind": "virtio-user", "mode": "server"},
    ),
    ("memif", {"kind": "memif"}, {"kind": "memif", "role": "client"}),
]


def _received(node: Node, port: str) -> int:
    counts: dict[str, Any] = node.counts()
    number = counts["ports"][port]["rx_packets"]
    assert isinstance(number, int)
    return number


def _heard(node: Node, line: str, times: int) -> Callable[[], bool]:
    return lambda: node.process.stderr.text().splitlines().count(line) >= times


def _more(node: Node, port: str) -> Callable[[], bool]:
    """Return whether the port has received since now."""
    before = _received(node, port)
    return lambda: _received(node, port) > before


def _kill(node: Node) -> None:
    node.process.signal(signal.SIGKILL)
    assert node.process.wait(DEADLINE_S) == -signal.SIGKILL


def _balanced(counts: Mapping[str, Any]) -> bool:
    accounting = counts["accounting"]
    return bool(
        accounting["conserved"]
        and accounting["received"]
        == accounting["sent"] + accounting["dropped"] + accounting["held"]
    )


@pytest.mark.parametrize(("near", "far"), [pair[1:] for pair in PAIRS], ids=[p[0] for p in PAIRS])
@pytest.mark.parametrize("victim", ["far", "near"])
def test_the_other_goes_on(victim: str, near: Keys, far: Keys, tmp_path: Path) -> None:
    path = {"path": str(tmp_path / "s")}
    # Each end makes frames without end, sends them, and swallows what the other sends.
    ways = [("make", "link"), ("link", "make")]
    plans = {
        "near": joined(
            {"make": {"kind": "null", "frame_bytes": 60}, "link": {**near, **path}}, ways, CORES[0]
        ),
        "far": joined(
            {"make": {"kind": "null", "frame_bytes": 60}, "link": {**far, **path}}, ways, CORES[-1]
        ),
    }
    survivor = "near" if victim == "far" else "far"
    with Node(plans[survivor]) as stays:
        for life in (1, 2, 3):
            with Node(plans[victim]) as goes:
                wait_for(_heard(stays, "port link: peer connected", life), DEADLINE_S, "connected")
                wait_for(_more(stays, "link"), DEADLINE_S, "traffic to the one that stays")
                wait_for(_more(goes, "link"), DEADLINE_S, "traffic to the one that goes")
                _kill(goes)
            wait_for(_heard(stays, "port link: peer gone", life), DEADLINE_S, "peer gone")
            # It goes on: its worker turns, its other port receives.
            wait_for(_more(stays, "make"), DEADLINE_S, "the rest goes on")
        assert _balanced(stays.stop())


def _take_back_memory(node: Node) -> int:
    """Make every file of memory that a stopped node has made empty. Return how many."""
    folder = Path(f"/proc/{node.process.pid}/fd")
    files = [fd for fd in folder.iterdir() if str(fd.readlink()).startswith("/memfd:")]
    for fd in files:
        os.truncate(fd, 0)
    return len(files)


def test_a_peer_that_takes_back_its_memory_harms_itself(tmp_path: Path) -> None:
    path = {"path": str(tmp_path / "s")}
    ways = [("make", "link"), ("link", "make")]
    make = {"kind": "null", "frame_bytes": 60}
    near = joined({"make": make, "link": {"kind": "vhost-user", **path}}, ways, CORES[0])
    far = joined({"make": make, "link": {"kind": "virtio-user", **path}}, ways, CORES[-1])
    with Node(near) as stays:
        for life in (1, 2):
            with Node(far) as goes:
                wait_for(_heard(stays, "port link: peer connected", life), DEADLINE_S, "connected")
                wait_for(_more(stays, "link"), DEADLINE_S, "traffic")
                goes.process.signal(signal.SIGSTOP)
                assert _take_back_memory(goes) > 0
                wait_for(
                    lambda: stays.counts()["ports"]["link"]["device"]["link"] == "down",
                    DEADLINE_S,
                    "the peer's queues taken away",
                )
                wait_for(_more(stays, "make"), DEADLINE_S, "the rest goes on")
                goes.process.signal(signal.SIGKILL)
                assert goes.process.wait(DEADLINE_S) < 0  # or by what it did to itself
            wait_for(_heard(stays, "port link: peer gone", life), DEADLINE_S, "peer gone")
        assert stays.process.stderr.text().count("took back memory") == 1
        assert _balanced(stays.stop())
