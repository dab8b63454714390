# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy top: the counters of a running node."""

import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.cli.console import console
from convoy.cli.counts_view import Sample, accounting_text, tables
from convoy.cli.result import Json, Result
from convoy.cli.run import REFRESH_S, LiveView
from convoy.client import Client, ClientError
from convoy.errors import InputError
from convoy.host.counts import RunningNode, running_nodes
from convoy.host.signals import StopSignals


@dataclass(frozen=True)
class NodeCounts(Result):
    """A node's counts at one moment."""

    node: RunningNode
    counts: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.top/1", "pid": self.node.pid, "counts": self.counts}

    def show(self, out: Console) -> None:
        """Print the counts."""
        out.print(tables(Sample(0.0, self.counts)))
        out.print(accounting_text(self.counts["accounting"], passing=True))


def choose(nodes: list[RunningNode], pid: int | None, how: str = "convoy top PID") -> RunningNode:
    """Return the node with this process id, or the only one. Raises InputError.

    how: which one is said.
    """
    pids = ", ".join(str(node.pid) for node in nodes)
    if not nodes:
        raise InputError("no convoyd of yours is running; start one: convoy run FILE")
    if pid is None and len(nodes) > 1:
        raise InputError(f"several nodes are running; say which: {how} ({pids})")
    for node in nodes:
        if pid in (None, node.pid):
            return node
    raise InputError(f"PID: {pid}: no convoyd of yours; there are: {pids}")


def watch(node: RunningNode) -> NodeCounts:
    """Show a node's counters until it ends or a signal comes; return the last ones."""
    with Client(node.read) as client, StopSignals() as signals:
        counts = client.counts()
        view = LiveView(console(), f"convoyd {node.pid}")
        with view.live:
            while not signals.stop_requested:
                view.show(Sample(time.monotonic(), counts))
                signals.wait(node.pid, REFRESH_S)
                try:
                    counts = client.counts()
                except ClientError:
                    break  # it ended
        return NodeCounts(node, counts)


def command(
    pid: Annotated[
        int | None, typer.Argument(help="Process id of convoyd, if several run.")
    ] = None,
    as_json: Json = False,
) -> Result:
    """Show the counters of a running node; once only with --json or without a terminal."""
    node = choose(running_nodes(), pid)
    if console().is_terminal and not as_json:
        return watch(node)
    with Client(node.read) as client:
        return NodeCounts(node, client.counts())
