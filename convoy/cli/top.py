# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy top: the counters of a running node."""

import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import printable
from convoy.cli.console import console, messages
from convoy.cli.counts_view import Sample, accounting_text, tables
from convoy.cli.result import Json, Result
from convoy.cli.run import REFRESH_S, LiveView
from convoy.client import Client, ClientError
from convoy.errors import InputError
from convoy.host.counts import SERVICES, RunningNode, running_nodes
from convoy.host.signals import StopSignals
from convoy.metrics.listen import tcp_socket, url_of
from convoy.metrics.source import Source
from convoy.watch.feed import Feed
from convoy.watch.server import PageServer

DEFAULT = "127.0.0.1:9104"


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


def serve(node: RunningNode, listen: str) -> None:
    """Serve the page of a node until a signal comes; one of a service is found again."""
    folder = node.read.parents[2]
    source = Source(folder if folder.parent == SERVICES else node.read)
    with tcp_socket(listen) as listens, Feed(source.socket) as feed:
        messages().print(f"page: {printable(url_of(listens, '/'))}", markup=False)
        asyncio.run(_serve(PageServer(listens, feed)))


async def _serve(server: PageServer) -> None:
    await server.run()


def command(
    pid: Annotated[
        int | None, typer.Argument(help="Process id of convoyd, if several run.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Serve a page for a browser.")] = False,
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help=f"Loopback address of it; default: {DEFAULT}."),
    ] = None,
    as_json: Json = False,
) -> Result | None:
    """Show the counters of a running node; once only with --json or without a terminal.

    With --web, a page for a browser on this machine shows them as a graph, second by second.
    """
    if listen is not None and not web:
        raise InputError("--listen: is for the page; add --web")
    if web and as_json:
        raise InputError("--web: leave it or --json away")
    node = choose(running_nodes(), pid)
    if web:
        serve(node, listen or DEFAULT)
        return None
    if console().is_terminal and not as_json:
        return watch(node)
    with Client(node.read) as client:
        return NodeCounts(node, client.counts())
