# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Random routes and packets, and captures, compared byte by byte with a plain model."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

from node.conftest import captures, read_capture

from .model import Route, Sent, Setup, route
from .node import through
from .traffic import PORTS, frame, setups

PACKETS = 400


def expect(setup: Setup, frames: list[bytes], folder: Path, source: Path | None = None) -> None:
    sent: dict[str, list[bytes]] = {name: [] for name in setup.ports}
    drops: Counter[str] = Counter()
    for each in frames:
        fate = route(setup, each)
        if isinstance(fate, Sent):
            sent[fate.port].append(fate.frame)
        else:
            drops[fate] += 1
    got = through(setup, folder, source or frames)
    assert got.drops == drops
    for name in setup.ports:
        assert len(got.frames[name]) == len(sent[name])
        for ours, wanted in zip(got.frames[name], sent[name], strict=True):
            assert ours.hex() == wanted.hex()


@settings(max_examples=15, deadline=None)
@given(setups())
def test_random_routers(made):
    setup, rng = made
    arrive = PORTS["left"]
    odd = rng.choice([0.0, 0.1, 0.4])
    frames = [frame(rng, setup, i, arrive, odd=odd, tags=True) for i in range(PACKETS)]
    with tempfile.TemporaryDirectory() as folder:
        expect(setup, frames, Path(folder))


CAPTURES = captures()


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_capture(path, tmp_path):
    """Both halves of each address space lead elsewhere, and some of it nowhere."""
    setup = Setup(
        dict(PORTS),
        [
            Route("0.0.0.0/1", "right", "192.0.2.1"),
            Route("128.0.0.0/1", "third", "192.0.2.2"),
            Route("192.168.0.0/16", "left", "192.0.2.1"),
            Route("192.168.1.0/24", "third"),
            Route("10.0.0.0/9"),
            Route("::/0", "right", "2001:db8::1"),
            Route("2000::/4", "third", "2001:db8::1"),
        ],
        {
            "192.0.2.1": "02:00:00:00:bb:01",
            "192.0.2.2": "02:00:00:00:bb:02",
            "192.168.1.1": "02:00:00:00:bb:03",
            "2001:db8::1": "02:00:00:00:bb:06",
        },
    )
    # As the node sees it: read by a chain without functions and written again.
    plain = tmp_path / "plain"
    plain.mkdir()
    expect(setup, list(as_node_reads(path, plain)), tmp_path, path)


def as_node_reads(path: Path, folder: Path) -> list[bytes]:
    from convoy.host.node import Node

    plan = {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": "in", "kind": "pcap", "read": str(path), "mtu": 9000},
            {"name": "out", "kind": "pcap", "write": str(folder / "out.pcap"), "mtu": 9000},
        ],
        "functions": [],
        "chains": [{"name": "all", "match": {}, "in": "in", "out": "out"}],
        "stages": [
            {
                "worker": 0,
                "chain": "all",
                "source": {"port": "in", "queue": 0},
                "path": [],
                "sink": {"port": "out"},
            }
        ],
        "workers": [{"core": 0, "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 256},
    }
    with Node(plan) as node:
        node.finish()
    return read_capture(folder / "out.pcap")
