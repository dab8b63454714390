# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy top: the counters of a running node."""

import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from convoy.cli.console import console, print_json
from convoy.cli.counts_view import Sample, accounting_text, tables
from convoy.cli.options import Json
from convoy.cli.run import REFRESH_S, LiveView
from convoy.errors import InputError
from convoy.host.counts import RunningNode, read_counts, running_nodes
from convoy.host.signals import StopSignals
from convoy.host.telemetry import Telemetry, TelemetryError


@dataclass(frozen=True)
class TopResult:
    """A node's counts at one moment."""

    node: RunningNode
    counts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the document that --json prints."""
        return {"schema": "convoy.top/1", "pid": self.node.pid, "counts": self.counts}


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


def render(result: TopResult) -> None:
    """Print the counts."""
    out = console()
    out.print(tables(Sample(0.0, result.counts)))
    out.print(accounting_text(result.counts["accounting"], passing=True))


def watch(node: RunningNode) -> TopResult:
    """Show a node's counters until it ends or a signal comes; return the last ones."""
    with Telemetry(node.telemetry) as telemetry, StopSignals() as signals:
        counts = read_counts(telemetry)
        view = LiveView(console(), f"convoyd {node.pid}")
        with view.live:
            while not signals.asked:
                view.show(Sample(time.monotonic(), counts))
                signals.wait(node.pid, REFRESH_S)
                try:
                    counts = read_counts(telemetry)
                except TelemetryError:
                    break  # it ended
        return TopResult(node, counts)


def command(
    pid: Annotated[
        int | None, typer.Argument(help="Process id of convoyd, if several run.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the counters of a running node; once only with --json or without a terminal."""
    node = choose(running_nodes(), pid)
    if console().is_terminal and not as_json:
        render(watch(node))
        return
    with Telemetry(node.telemetry) as telemetry:
        result = TopResult(node, read_counts(telemetry))
    print_json(result.as_json()) if as_json else render(result)
