# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Metrics over HTTP: one thread serves all clients, and none of them holds up another.

A client has a deadline for its request and one for reading the answer. One client more than there
may be takes the place of the oldest whose request is not there yet.
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from convoy.metrics.exposition import Format, Page
from convoy.metrics.listen import BACKLOG

CLIENTS_MAX = 64
REQUEST_MAX = 8192  # bytes
REQUEST_S = 5.0
ANSWER_S = 10.0
_ACCEPTED_AT_ONCE = 8  # so that a request is read before a flood takes its client's place


@dataclass(eq=False)
class _Client:
    writer: asyncio.StreamWriter
    has_asked: bool = False


class Server:
    """Serves what a scrape returns, until a signal or stop()."""

    def __init__(
        self, listens: socket.socket, scrape: Callable[[], Page], clients_max: int = CLIENTS_MAX
    ) -> None:
        """Prepare; scrape: may take long, is called by another thread, once at a time."""
        self._listens = listens
        self._scrape = scrape
        self._clients_max = clients_max
        self._clients: dict[_Client, None] = {}  # the oldest first
        self._scraping: asyncio.Future[Page] | None = None
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Serve."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stopped.set)
        server = await asyncio.start_server(
            self._serve, sock=self._listens, limit=REQUEST_MAX, backlog=_ACCEPTED_AT_ONCE
        )
        self._listens.listen(BACKLOG)  # asyncio made it as short as what it accepts at once
        async with server:
            await self._stopped.wait()
            for client in self._clients:
                client.writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= self._clients_max:
            waiting = [client for client in self._clients if not client.has_asked]
            oldest = next(iter(waiting or self._clients))
            del self._clients[oldest]
            oldest.writer.transport.abort()
        client = _Client(writer)
        self._clients[client] = None
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await _read_head(reader)
            client.has_asked = True
            answer = await self._answer(head)
            writer.transport.set_write_buffer_limits(0)  # drain() waits for all of it
            async with asyncio.timeout(ANSWER_S):
                writer.write(answer)
                await writer.drain()
            writer.close()
        except (OSError, EOFError, TimeoutError):
            writer.transport.abort()
        finally:
            self._clients.pop(client, None)

    async def _answer(self, head: bytes | None) -> bytes:
        if head is None:
            return response("431 Request Header Fields Too Large", b"the request is too long\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return response("400 Bad Request", b"no HTTP request\n")
        if words[0] not in ("GET", "HEAD"):
            return response("405 Method Not Allowed", b"GET or HEAD only\n", "Allow: GET, HEAD\r\n")
        whole = await self.get(words[1].partition("?")[0], fields)
        return whole if words[0] == "GET" else whole[: whole.index(b"\r\n\r\n") + 4]

    async def get(self, path: str, fields: list[str]) -> bytes:
        """Return the answer to GET; fields: the request's header fields."""
        if path != "/metrics":
            return response("404 Not Found", b"metrics are at /metrics\n")
        wanted = format_of(fields)
        return response("200 OK", (await self._page()).encoded(wanted), kind=wanted)

    async def _page(self) -> Page:
        """Scrape; those who ask meanwhile share the answer."""
        if self._scraping is None:
            loop = asyncio.get_running_loop()
            self._scraping = loop.run_in_executor(None, self._scrape)
            self._scraping.add_done_callback(self._scraped)
        return await asyncio.shield(self._scraping)

    def _scraped(self, future: asyncio.Future[Page]) -> None:
        self._scraping = None


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    """Return a request's lines; None: they are too long. Raises EOFError."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None


def format_of(fields: list[str]) -> Format:
    """Return how a client wants it: OpenMetrics, unless it names only the older format."""
    accept = ""
    for field in fields:
        name, _, value = field.partition(":")
        if name.strip().lower() == "accept":
            accept += value.lower()
    older = "text/plain" in accept and "application/openmetrics-text" not in accept
    return Format.TEXT if older else Format.OPENMETRICS


def response(
    status: str, body: bytes, more: str = "", kind: str = "text/plain; charset=utf-8"
) -> bytes:
    """Return an answer; more: header fields, each with its line's end."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{more}Connection: close\r\n\r\n"
    )
    return head.encode() + body
