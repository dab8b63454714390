# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page over HTTP: to browsers of this machine only, and to no page of another site.

It can be read, and nothing else: no request changes anything.
"""

import ipaddress
import socket
from importlib.resources import files

from convoy.metrics.exposition import Page
from convoy.metrics.server import Server, response
from convoy.watch.feed import Feed

CLIENTS_MAX = 32
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS = (
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n"
)


class PageServer(Server):
    """Serves the page and the newest snapshot."""

    def __init__(self, listens: socket.socket, feed: Feed, clients_max: int = CLIENTS_MAX) -> None:
        """Prepare; feed: is running."""
        super().__init__(listens, Page, clients_max)
        self._feed = feed
        self._port = listens.getsockname()[1]
        folder = files("convoy.watch")
        self._files = {
            path: (folder.joinpath(name).read_bytes(), kind)
            for path, (name, kind) in _FILES.items()
        }

    async def get(self, path: str, fields: list[str]) -> bytes:
        """See Server."""
        if not self._is_ours(fields):
            return response("421 Misdirected Request", b"Host: not an address of this page\n")
        if path == "/state.json":
            return self._ok(self._feed.latest, "application/json")
        if path in self._files:
            return self._ok(*self._files[path])
        return response("404 Not Found", b"there is no such page\n", _HEADERS)

    def _ok(self, body: bytes, kind: str) -> bytes:
        return response("200 OK", body, _HEADERS, kind)

    def _is_ours(self, fields: list[str]) -> bool:
        """Return whether the request is for a loopback address, by one Host, of our own page."""
        values: dict[str, list[str]] = {}
        for field in fields:
            name, _, value = field.partition(":")
            values.setdefault(name.strip().lower(), []).append(value.strip().lower())
        hosts = values.get("host", [])
        if len(hosts) != 1 or not is_loopback(hosts[0], self._port):
            return False
        if any(origin != f"http://{hosts[0]}" for origin in values.get("origin", [])):
            return False
        return all(site in ("same-origin", "none") for site in values.get("sec-fetch-site", []))


def is_loopback(host: str, port: int) -> bool:
    """Return whether a Host header names this machine's loopback, and the port."""
    name, colon, number = host.rpartition(":")
    if not colon or number != str(port):
        return False
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
