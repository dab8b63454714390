# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What VPP's CLI prints of its counters: show runtime, show interface, show errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of a node: name and state, calls, vectors, suspends, clocks per packet, vectors per call.
_NODE = re.compile(r"^(\S.*?)\s+(\d+)\s+(\d+)\s+\d+\s+(\d\S*)\s+[\d.]+$")
_NAME_BYTES = 30  # a longer name runs into the state
_INTERFACE = re.compile(r"^(\S+)\s+\d+\s+(?:up|down)\s+[\d/]+\s*(.*)$")
_COUNT = re.compile(r"^(\S.*?)\s{2,}(\d+)$")
_ERROR = re.compile(r"^\s*(\d+)\s+(\S+)\s{2,}(\S.*?)\s{2,}(\w+)$")
_DROPS = frozenset({"drops", "rx-no-buf", "rx-miss", "rx-error", "tx-error"})
_POLLED = ("vhost-user-input", "memif-input")
_BUSY = "ethernet-input"  # is called once for each poll that received packets


@dataclass(frozen=True)
class Node:
    """What a node of its graph did since the counters were cleared."""

    calls: int
    vectors: int  # packets
    clocks: float  # TSC ticks per packet; of a node without packets, per call


def nodes(text: str) -> dict[str, Node]:
    """Return what show runtime prints of each node."""
    return {
        match[1][:_NAME_BYTES].split()[0]: Node(int(match[2]), int(match[3]), float(match[4]))
        for match in map(_NODE.match, text.splitlines())
        if match
    }


def idle_clocks(nodes: Mapping[str, Node]) -> float | None:
    """Return what a poll that finds nothing costs, or None: there were packets."""
    return next((node.clocks for name, node in nodes.items()
                 if name in _POLLED and node.calls and not node.vectors), None)  # fmt: skip


def spent(nodes: Mapping[str, Node], idle: float) -> tuple[int, int]:
    """Return TSC ticks and packets; empty polls are taken off at so many ticks each.

    What is printed are means of three digits.
    """
    ticks = sum(node.vectors * node.clocks for node in nodes.values())
    packets = 0
    for name in _POLLED:
        if name in nodes and nodes[name].vectors:
            packets += nodes[name].vectors
            busy_calls = nodes[_BUSY].calls if _BUSY in nodes else 0
            off = max(0, nodes[name].calls - busy_calls) * idle
            ticks -= min(off, nodes[name].vectors * nodes[name].clocks)
    return round(ticks), packets


def interfaces(text: str) -> dict[str, dict[str, Any]]:
    """Return what show interface prints of each one; what was dropped stands under drops."""
    result: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] = {}
    for line in text.splitlines():
        if head := _INTERFACE.match(line):
            current = result[head[1]] = {}
            line = head[2]
        if count := _COUNT.match(line.strip()):
            name, value = count[1], int(count[2])
            (current.setdefault("drops", {}) if name in _DROPS else current)[name] = value
    return {name: counts for name, counts in result.items() if counts}


def errors(text: str) -> dict[str, dict[str, int]]:
    """Return what show errors prints: of each node its counts by reason (not all are drops)."""
    result: dict[str, dict[str, int]] = {}
    for match in filter(None, map(_ERROR.match, text.splitlines())):
        result.setdefault(match[2], {})[match[3]] = int(match[1])
    return result
