# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""HTTP for pages of this machine: one thread serves all clients, and none holds up another.

A client has a deadline for its request and one for reading the answer. One client more than there
may be takes the place of the oldest whose request is not there yet.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from convoy.host.listen import BACKLOG

CLIENTS_MAX = 64
REQUEST_MAX = 8192  # bytes: of the head, and of the body
REQUEST_S = 5.0
ANSWER_S = 10.0
_ACCEPTED_AT_ONCE = 8  # so that a request is read before a flood takes its client's place
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    method: str
    target: str
    fields: Mapping[str, str]  # by name in lower case; several of a name are joined by commas
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@dataclass(frozen=True)
class Response:
    """What it is told."""

    body: bytes
    status: str = "200 OK"
    kind: str = PLAIN
    fields: Mapping[str, str] = field(default_factory=dict)

    def encoded(self, head_only: bool = False) -> bytes:
        """Return the bytes that are sent."""
        fields = {
            "Content-Type": self.kind,
            "Content-Length": str(len(self.body)),
            **self.fields,
            "Connection": "close",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {self.status}\r\n{lines}\r\n".encode() + (b"" if head_only else self.body)


class RefusedRequestError(Exception):
    """A request that is none, or is too long."""

    def __init__(self, status: str, why: str) -> None:
        """Say what is wrong; status: of the response."""
        super().__init__(why)
        self.response = Response(f"{why}\n".encode(), status)


@dataclass(eq=False)
class _Client:
    writer: asyncio.StreamWriter
    has_asked: bool = False


class HttpServer:
    """Serves at a socket, until a signal or stop()."""

    def __init__(
        self,
        listens: socket.socket,
        respond: Callable[[Request], Awaitable[Response]],
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        """Prepare."""
        self._listens = listens
        self._respond = respond
        self._clients_max = clients_max
        self._clients: dict[_Client, None] = {}  # the oldest first
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
            answer = await self._answer(client, reader)
            writer.transport.set_write_buffer_limits(0)  # drain() waits for all of it
            async with asyncio.timeout(ANSWER_S):
                writer.write(answer)
                await writer.drain()
            writer.close()
        except (OSError, EOFError, TimeoutError):
            writer.transport.abort()
        finally:
            self._clients.pop(client, None)

    async def _answer(self, client: _Client, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await _read(reader)
        except RefusedRequestError as error:
            return error.response.encoded()
        client.has_asked = True
        response = await self._respond(request)
        return response.encoded(head_only=request.method == "HEAD")


async def _read(reader: asyncio.StreamReader) -> Request:
    """Return a request. Raises EOFError, RefusedRequestError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RefusedRequestError(
            "431 Request Header Fields Too Large", "the request is too long"
        ) from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusedRequestError("400 Bad Request", "no HTTP request")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        fields[key] = f"{fields[key]}, {value.strip()}" if key in fields else value.strip()
    return Request(words[0], words[1], fields, await _read_body(reader, fields))


async def _read_body(reader: asyncio.StreamReader, fields: Mapping[str, str]) -> bytes:
    if "transfer-encoding" in fields:
        raise RefusedRequestError("411 Length Required", "a body needs Content-Length")
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise RefusedRequestError("400 Bad Request", "Content-Length is no number")
    if len(length) > 9 or int(length) > REQUEST_MAX:
        raise RefusedRequestError("413 Content Too Large", "the request is too long")
    return await reader.readexactly(int(length))
