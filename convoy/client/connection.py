# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A connection to a control socket: JSON-RPC 2.0, one object on each line."""

import array
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from convoy.errors import ConvoyError, InputError

PROTOCOL = 1
DEADLINE_S = 5.0
BAD_INPUT = -32602  # the node's number for what cannot be done as it is asked
_PIECE_BYTES = 65536
_ANSWER_MAX = 1 << 28  # bytes: far beyond a plan of a million routes


class ClientError(ConvoyError):
    """The node is gone, does not answer, or speaks another protocol; or it failed."""


class RefusedError(InputError):
    """What was asked cannot be done as it is: the node's words. Nothing has changed."""


@dataclass(frozen=True)
class Hello:
    """What a node says of itself when somebody connects."""

    protocol: int
    version: str
    pid: int
    may_change: bool  # not on the socket that is for reading
    request_max: int  # bytes


class Connection:
    """Requests and their results, one after the other. Use it with `with`."""

    def __init__(self, path: Path, deadline_s: float = DEADLINE_S) -> None:
        """Connect and read what the node says of itself. Raises ClientError.

        deadline_s: for which each answer is waited for.
        """
        self._path = path
        self._deadline_s = deadline_s
        self._received = bytearray()
        self._last_id = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._until = time.monotonic() + deadline_s
            self._connect()
            self.hello = self._read_hello()
        except OSError as error:
            self._socket.close()
            raise ClientError(f"{path}: {self._words(error)}") from None
        except BaseException:
            self._socket.close()
            raise

    def _connect(self) -> None:
        self._socket.settimeout(self._deadline_s)
        while True:
            try:
                return self._socket.connect(str(self._path))
            except BlockingIOError:  # many connect at a time
                if time.monotonic() > self._until:
                    raise
                time.sleep(0.01)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, file: int | None = None
    ) -> Any:
        """Return the result of a method. Raises RefusedError or ClientError.

        file: a descriptor that goes with the request.
        """
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        line = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        if len(line) > self.hello.request_max:
            raise InputError(
                f"{method}: a request of {len(line)} bytes; {self.hello.request_max} are possible"
            )
        self._until = time.monotonic() + self._deadline_s
        try:
            self._send(line, file)
            answer = self._read_line()
        except OSError as error:
            raise ClientError(f"{self._path}: {method}: {self._words(error)}") from None
        return self._result(method, answer)

    def _words(self, error: OSError) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer for {self._deadline_s:g} s"
        return error.strerror or str(error)

    def _send(self, line: bytes, file: int | None) -> None:
        files = [] if file is None else [array.array("i", [file])]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, data) for data in files]
        try:
            self._socket.settimeout(self._deadline_s)
            sent = self._socket.sendmsg([line], rights)
            self._socket.sendall(line[sent:])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the node may have said why

    def _read_line(self) -> dict[str, Any]:
        scanned = 0
        while (end := self._received.find(b"\n", scanned)) < 0:
            scanned = len(self._received)
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(_PIECE_BYTES)
            if not piece:
                raise ConnectionResetError(0, "the node closed the connection: it is ending")
            self._received += piece
            if len(self._received) > _ANSWER_MAX:
                raise ClientError(f"{self._path}: an answer of more than {_ANSWER_MAX} bytes")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ClientError(f"{self._path}: who answers there is no node of Convoy's")
        return value

    def _read_hello(self) -> Hello:
        greeting = self._read_line()
        params = greeting.get("params")
        if "error" in greeting:
            raise self._error("hello", greeting["error"])
        if greeting.get("method") != "hello" or not isinstance(params, dict):
            raise ClientError(f"{self._path}: who answers there is no node of Convoy's")
        protocol, version = params.get("protocol"), params.get("version")
        if protocol != PROTOCOL:
            raise ClientError(
                f"{self._path}: the node is Convoy {version}, whose control protocol is "
                f"{protocol}; this one speaks {PROTOCOL}: use the convoy of the node's version"
            )
        try:
            return Hello(**{name: params[name] for name in Hello.__dataclass_fields__})
        except KeyError as error:
            raise ClientError(f"{self._path}: its hello has no {error}") from None

    def _result(self, method: str, answer: dict[str, Any]) -> Any:
        if "error" in answer:
            raise self._error(method, answer["error"])
        if answer.get("id") != self._last_id or "result" not in answer:
            raise ClientError(f"{self._path}: {method}: an answer to something else")
        return answer["result"]

    def _error(self, method: str, error: Any) -> ConvoyError:
        error = error if isinstance(error, dict) else {}
        words = str(error.get("message"))
        if error.get("code") == BAD_INPUT:
            return RefusedError(words)
        return ClientError(f"{self._path}: {method}: {words}")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
