# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""DPDK's telemetry socket: one question, one JSON answer."""

import json
import socket
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.scope import Scope

DEADLINE_S = 2.0


class TelemetryError(ConvoyError):
    """The socket is gone, or what answers is not DPDK."""


class Telemetry(Scope):
    """A connection to a DPDK program's telemetry socket. Use it with `with`."""

    def __init__(self, path: Path, deadline_s: float = DEADLINE_S) -> None:
        """Connect. Raises TelemetryError."""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(deadline_s)
        try:
            self._socket.connect(str(path))
            hello = json.loads(self._socket.recv(1024))
            self._answer_bytes = int(hello["max_output_len"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._socket.close()
            raise TelemetryError(f"{path}: {error}") from None

    def ask(self, command: str) -> Any:
        """Return the answer to a command such as /convoy/ports. Raises TelemetryError."""
        try:
            self._socket.send(command.encode())
            answer = json.loads(self._socket.recv(self._answer_bytes))
            return answer[command.partition(",")[0]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TelemetryError(f"{self._path}: {command}: {error}") from None

    def read(self, command: str) -> Any:
        """Ask for something that there is while the program runs. Raises TelemetryError.

        Near its end a program still answers, with nothing.
        """
        answer = self.ask(command)
        if answer is None:
            raise TelemetryError(f"{self._path}: {command}: no answer: it is ending")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _leave(self) -> None:
        self.close()
