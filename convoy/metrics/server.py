# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Metrics over HTTP."""

import asyncio
import socket
from collections.abc import Callable

from convoy.host.http import CLIENTS_MAX, REQUEST_S, HttpServer, Request, Response
from convoy.metrics.exposition import Format, Page

__all__ = ["CLIENTS_MAX", "REQUEST_S", "Server", "format_of"]


class Server:
    """Serves what a scrape returns, until a signal."""

    def __init__(
        self, listens: socket.socket, scrape: Callable[[], Page], clients_max: int = CLIENTS_MAX
    ) -> None:
        """Prepare; scrape: may take long, is called by another thread, once at a time."""
        self._server = HttpServer(listens, self._respond, clients_max)
        self._scrape = scrape
        self._scraping: asyncio.Future[Page] | None = None

    async def run(self) -> None:
        """Serve."""
        await self._server.run()

    async def _respond(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(
                b"GET or HEAD only\n", "405 Method Not Allowed", fields={"Allow": "GET, HEAD"}
            )
        if request.path != "/metrics":
            return Response(b"metrics are at /metrics\n", "404 Not Found")
        wanted = format_of(request.fields.get("accept", ""))
        return Response((await self._page()).encoded(wanted), kind=wanted)

    async def _page(self) -> Page:
        """Scrape; those who ask meanwhile share the answer."""
        if self._scraping is None:
            loop = asyncio.get_running_loop()
            self._scraping = loop.run_in_executor(None, self._scrape)
            self._scraping.add_done_callback(self._scraped)
        return await asyncio.shield(self._scraping)

    def _scraped(self, future: asyncio.Future[Page]) -> None:
        self._scraping = None


def format_of(accept: str) -> Format:
    """Return how a client wants it: OpenMetrics, unless it names only the older format."""
    accept = accept.lower()
    older = "text/plain" in accept and "application/openmetrics-text" not in accept
    return Format.TEXT if older else Format.OPENMETRICS
