# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames through convoyd's router, from one capture file to one for each port."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from convoy.host.node import Node
from node.conftest import read_capture, write_capture

from .model import Setup


@dataclass(frozen=True)
class Routed:
    """What came out, by port and in order, and how many were dropped, by reason."""

    frames: dict[str, list[bytes]]
    drops: Counter[str]


def through(setup: Setup, folder: Path, frames: Iterable[bytes] | Path) -> Routed:
    """Send frames, or a capture file, in by the first port."""
    given = frames if isinstance(frames, Path) else write_capture(folder / "in.pcap", frames)
    (folder / "routes.txt").write_text("".join(f"{route.line()}\n" for route in setup.routes))
    out = {name: folder / f"{name}.pcap" for name in setup.ports}
    ports = [
        {"name": name, "kind": "pcap", "mac": mac, "mtu": 9000, "write": str(out[name])}
        for name, mac in setup.ports.items()
    ]
    ports[0]["read"] = str(given)
    first = next(iter(setup.ports))
    config = {
        "routes_file": str(folder / "routes.txt"),
        "neighbours": [{"address": ip, "mac": mac} for ip, mac in setup.neighbours.items()],
    }
    source = {"port": first, "queue": 0}
    stage = {"worker": 0, "chain": "all", "source": source, "path": ["rtr"]}
    plan = {
        "schema": "convoy.plan/1",
        "ports": ports,
        "functions": [{"name": "rtr", "type": "router", "config": config}],
        "chains": [{"name": "all", "match": {}, "in": first, "out": first}],
        "stages": [{**stage, "sink": {"port": first}}],
        "workers": [{"core": 0, "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }
    with Node(plan) as node:
        counts = node.finish()
    assert counts["accounting"]["conserved"]
    drops = Counter({k: n for k, n in counts["functions"]["rtr"]["drops"].items() if n})
    return Routed({name: read_capture(path) for name, path in out.items()}, drops)
