# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page over HTTP: its files are for anybody on this machine, what they show needs a token."""

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from convoy.errors import ConvoyError
from convoy.host.http import Request, Response
from convoy.top.why import WhyWatch

_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_FRESH_S = 0.4  # a snapshot is shared by those who ask within that time
_FILTER_MAX = 1000
_FIELDS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _json(document: Any, status: str = "200 OK") -> Response:
    body = json.dumps(document).encode()
    return Response(body, status, "application/json", _FIELDS)


def _refused(status: str, why: str) -> Response:
    return _json({"error": why}, status)


class WatchPage:
    """Answers a page's requests: about one node."""

    def __init__(
        self, snapshot: Callable[[], dict[str, Any]], why: WhyWatch | None, address: str = ""
    ) -> None:
        """Prepare.

        address: that is served, beside the usual ones of this machine.
        snapshot: asks the node; called by another thread, once at a time. Raises ConvoyError.
        why: None: the page may not ask about packets.
        """
        self.token = secrets.token_urlsafe(16)
        self._hosts = (*_HOSTS, address) if address else _HOSTS
        self._snapshot = snapshot
        self._why = why
        self._asking: asyncio.Future[Response] | None = None
        self._read_s = -_FRESH_S

    async def respond(self, request: Request) -> Response:
        """Answer a request."""
        host = request.fields.get("host", "")
        if host.rpartition(":")[0] not in self._hosts and host not in self._hosts:
            return _refused("403 Forbidden", "this page is of this machine only")
        if request.path in _FILES:
            return self._file(request)
        given = request.fields.get("x-convoy-token", "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return _refused("403 Forbidden", "open the page by the address that convoy printed")
        if request.path == "/snapshot" and request.method == "GET":
            return await self._fresh()
        if request.path == "/why":
            return await self._about_packets(request)
        return _refused("404 Not Found", "no such page")

    def _file(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _refused("405 Method Not Allowed", "GET or HEAD only")
        name, kind = _FILES[request.path]
        return Response((files("convoy.top") / name).read_bytes(), kind=kind, fields=_FIELDS)

    async def _fresh(self) -> Response:
        """Ask the node, or return what it said a moment ago."""
        now = time.monotonic()
        if self._asking is None or (self._asking.done() and now - self._read_s >= _FRESH_S):
            self._read_s = now
            loop = asyncio.get_running_loop()
            self._asking = loop.run_in_executor(None, self._ask)
        return await asyncio.shield(self._asking)

    def _ask(self) -> Response:
        try:
            return _json({**self._snapshot(), "why": self._why is not None})
        except ConvoyError as error:
            return _refused("503 Service Unavailable", str(error))

    async def _about_packets(self, request: Request) -> Response:
        if self._why is None:
            return _refused("403 Forbidden", "start convoy top --web with --why")
        if request.method == "GET":
            after = parse_qs(request.target.partition("?")[2]).get("after", ["0"])[0]
            if not (after.isascii() and after.isdigit() and len(after) < 16):
                return _refused("400 Bad Request", "after: a number")
            return _json(self._why.since(int(after)))
        if request.method == "DELETE":
            await asyncio.get_running_loop().run_in_executor(None, self._why.stop)
            return _json({})
        if request.method != "POST":
            return _refused("405 Method Not Allowed", "GET, POST or DELETE")
        return await asyncio.get_running_loop().run_in_executor(None, self._start, request.body)

    def _start(self, body: bytes) -> Response:
        assert self._why is not None
        try:
            wanted = json.loads(body)
            expression, drops = wanted["filter"], wanted["drops"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return _refused("400 Bad Request", 'give {"filter": "...", "drops": false}')
        if not (isinstance(expression, str) and len(expression) <= _FILTER_MAX):
            return _refused("400 Bad Request", f"filter: a text of {_FILTER_MAX} characters")
        if not isinstance(drops, bool):
            return _refused("400 Bad Request", "drops: true or false")
        try:
            self._why.start(expression, drops)
        except ConvoyError as error:
            return _refused("400 Bad Request", str(error))
        return _json({})
