# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy metrics: a running node's counts for Prometheus."""

import asyncio
import re
from contextlib import AbstractContextManager
from pathlib import Path
from socket import socket
from typing import Annotated

import typer

from convoy.base.problem import printable, shown
from convoy.cli.console import messages
from convoy.cli.top import choose
from convoy.errors import InputError
from convoy.host.counts import running_nodes
from convoy.host.listen import tcp_socket, unix_socket, url_of
from convoy.metrics.exposition import Page
from convoy.metrics.server import Server
from convoy.metrics.source import Source

DEFAULT = "127.0.0.1:9103"


def place_of(node: str | None) -> Path:
    """Return where a node is asked: by its process id, its folder, or the only one's."""
    if node is None or node.isdecimal():
        pid = None if node is None else int(node)
        return choose(running_nodes(), pid, "convoy metrics PID").read
    path = Path(node)
    if "/" not in node or (path.exists() and not path.is_dir() and not path.is_socket()):
        raise InputError(
            f"NODE: {shown(node)}: give a process id, a node's folder such as /run/convoy/NAME, "
            "or its read.sock"
        )
    return path


def mode_of(text: str) -> int:
    """Return the mode that "0660" means. Raises InputError."""
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise InputError(f"--unix-mode: {shown(text)}: write it as 0660")
    return int(text, 8)


class _Reporting:
    """Scrapes, and says on stderr once that the node does not answer, and that it does again."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._problem = ""

    def __call__(self) -> Page:
        page, problem = self._source.scrape()
        if problem != self._problem:
            self._problem = problem
            messages().print(printable(problem or "the node answers again"), markup=False)
        return page


def command(
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            help="Process id of convoyd, if several run; or its folder, or its read.sock.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help=f"Loopback address; default: {DEFAULT}."),
    ] = None,
    unix: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Serve at a unix socket in place of it.")
    ] = None,
    unix_mode: Annotated[str, typer.Option(help="Rights of that socket.")] = "0600",
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and end.")] = False,
) -> None:
    """Serve the counters of a running node to Prometheus, over HTTP, as OpenMetrics.

    A scrape of a node that is gone says convoy_up 0; one that came back is found by its folder.
    """
    if listen is not None and unix is not None:
        raise InputError("--unix: leave it or --listen away")
    if once and (listen is not None or unix is not None):
        raise InputError("--once: prints; leave --listen and --unix away")
    mode = mode_of(unix_mode)
    source = Source(place_of(node))
    if once:
        page, problem = source.scrape()
        typer.echo(page.text(), nl=False)
        if problem:
            messages().print(f"convoy: {printable(problem)}", markup=False)
            raise typer.Exit(1)
        return
    where: AbstractContextManager[socket]
    where = tcp_socket(listen or DEFAULT) if unix is None else unix_socket(unix, mode)
    with where as listens:
        url = url_of(listens, "/metrics")
        messages().print(f"metrics: {printable(url)}", markup=False)
        asyncio.run(_serve(listens, source))


async def _serve(listens: socket, source: Source) -> None:
    await Server(listens, _Reporting(source)).run()
