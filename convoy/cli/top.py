# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy top: the counters of a running node."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import printable
from convoy.cli.console import console, messages
from convoy.cli.counts_view import Sample, accounting_text, tables
from convoy.cli.latency_view import latency_table
from convoy.cli.parts_view import states_table
from convoy.cli.result import Json, Result
from convoy.cli.run import REFRESH_S, LiveView
from convoy.cli.why_view import lines_of
from convoy.client import Client, ClientError
from convoy.errors import ConvoyError, InputError
from convoy.host.counts import RunningNode, running_nodes
from convoy.host.http import HttpServer
from convoy.host.listen import tcp_socket, url_of
from convoy.host.signals import StopSignals
from convoy.hybrid.published import RunningChain, running_chains
from convoy.top import snapshot
from convoy.top.page import WatchPage
from convoy.top.why import WhyWatch

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
        latency = latency_table(self.counts)
        if latency is not None:
            out.print("", latency, sep="\n")
        out.print(accounting_text(self.counts["accounting"], passing=True))


@dataclass(frozen=True)
class ChainCounts(Result):
    """The counts of a chain in parts at one moment."""

    published: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.top-parts/1",
            **{key: self.published[key] for key in ("pid", "file", "parts", "counts")},
        }

    def show(self, out: Console) -> None:
        """Print the parts and the counts."""
        counts = self.published["counts"]
        out.print(states_table(self.published["parts"]))
        out.print()
        out.print(tables(Sample(0.0, counts)))
        out.print(accounting_text(counts["accounting"], passing=True))


def chosen_chain(nodes: list[RunningNode], pid: int | None) -> RunningChain | None:
    """Return the chain in parts that a process id is of, or the only thing that runs; or None."""
    chains = {}
    for chain in running_chains():
        with contextlib.suppress(ConvoyError):  # it has just ended
            chains[chain] = chain.pids()
    for chain, pids in chains.items():
        if pid in pids:
            return chain
    others = [node for node in nodes if not any(node.pid in pids for pids in chains.values())]
    return next(iter(chains)) if pid is None and len(chains) == 1 and not others else None


def watch_chain(chain: RunningChain) -> ChainCounts:
    """Show a chain's counters until it ends or a signal comes; return the last ones."""
    published = chain.read()
    view = LiveView(console(), f"{printable(published['file'])}, process {chain.pid}")
    with StopSignals() as signals, view.live:
        while not signals.stop_requested:
            view.show(Sample(time.monotonic(), published["counts"]))
            signals.wait(chain.pid, REFRESH_S)
            try:
                published = chain.read()
            except ConvoyError:
                break  # it ended
    return ChainCounts(published)


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


class Followed:
    """The node that was chosen; where none was named, the one that runs in its place."""

    def __init__(self, pid: int | None) -> None:
        """Choose one. Raises InputError."""
        self._named = pid is not None
        self.node = choose(running_nodes(), pid)

    def snapshot(self) -> dict[str, Any]:
        """Ask it. Raises ConvoyError."""
        try:
            return self._ask()
        except ClientError:
            others = running_nodes()
            if self._named or len(others) != 1 or others[0] == self.node:
                raise
            self.node = others[0]
            return self._ask()

    def _ask(self) -> dict[str, Any]:
        with Client(self.node.read) as client:
            return snapshot.read(client)


def serve(pid: int | None, listen: str, why: bool) -> None:
    """Serve the page about a node until a signal comes. Raises InputError: it is a whole chain."""
    nodes = running_nodes()
    chain = chosen_chain(nodes, pid)
    if chain is not None and pid in (None, chain.pid):
        inside = chain.pids()
        pids = ", ".join(str(node.pid) for node in nodes if node.pid in inside)
        raise InputError(
            f"--web: process {chain.pid} runs a chain in parts, and the page shows one node: give "
            f"a node's PID ({pids or 'there is none'}), or leave --web away"
        )
    followed = Followed(pid)
    followed.snapshot()  # or say at once why not
    watch = WhyWatch(lambda: followed.node.control, lambda packet: list(lines_of(packet)))
    with tcp_socket(listen) as listens:
        address = listens.getsockname()[0]
        page = WatchPage(followed.snapshot, watch if why else None, address)
        url = f"{url_of(listens, '/')}#{page.token}"
        messages().print(f"open {printable(url)}", markup=False, soft_wrap=True)
        asyncio.run(_run(HttpServer(listens, page.respond)))


async def _run(server: HttpServer) -> None:
    await server.run()


def command(
    pid: Annotated[
        int | None,
        typer.Argument(
            help="Process id of convoyd, or of the convoy run of parts, if several run."
        ),
    ] = None,
    as_json: Json = False,
    web: Annotated[
        bool, typer.Option("--web", help="Serve a live page on this machine, and print its URL.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT", help=f"Of --web: loopback; port 0: any. Default: {DEFAULT}."
        ),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Of --web: the page may ask for the way of packets.")
    ] = False,
) -> Result | None:
    """Show the counters of a running node, on the terminal or as a page.

    Without a terminal, and with --json, they are printed once.
    """
    for option, given in (("--listen", listen is not None), ("--why", why), ("--json", as_json)):
        if given and web is (option == "--json"):
            problem = "prints; leave --web away" if web else "is of --web; add it"
            raise InputError(f"{option}: {problem}")
    if web:
        serve(pid, listen or DEFAULT, why)
        return None
    nodes = running_nodes()
    chain = chosen_chain(nodes, pid)
    if chain is not None:
        watched = console().is_terminal and not as_json
        return watch_chain(chain) if watched else ChainCounts(chain.read())
    node = choose(nodes, pid)
    if console().is_terminal and not as_json:
        return watch(node)
    with Client(node.read) as client:
        return NodeCounts(node, client.counts())
