# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Asks a node once a second, whoever watches; a node that is gone is looked for again."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from convoy.client import Client, ClientError
from convoy.errors import ConvoyError
from convoy.host.counts import SCHEMA
from convoy.watch.graph import graph_of
from convoy.watch.snapshot import Moment, snapshot

PERIOD_S = 1.0
DEADLINE_S = 5.0  # in which a node answers


class Feed:
    """The newest snapshot, encoded once for all who ask. Use it with `with`."""

    def __init__(self, where: Callable[[], Path]) -> None:
        """Prepare; where: returns the node's read.sock, which may change. Raises ClientError."""
        self._where = where
        self._client: Client | None = None
        self._before: Moment | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.latest = _encoded({"up": False, "problem": "the node was not asked yet"})

    def read(self) -> dict[str, Any]:
        """Return a snapshot; of a node that does not answer, why."""
        try:
            return self._read()
        except ConvoyError as error:
            problem = str(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            problem = f"the node says what cannot be read: {error!r}"
        self._forget()
        return {"up": False, "problem": problem}

    def _read(self) -> dict[str, Any]:
        if self._client is None:
            self._client = Client(self._where(), DEADLINE_S)
        counts = self._client.counts()
        if counts.get("schema") != SCHEMA:
            raise ClientError(f"the node's counts are {counts.get('schema')}, not {SCHEMA}")
        now = Moment(time.monotonic(), counts)
        shown = snapshot(graph_of(self._client.plan()), now, self._before)
        self._before = now
        hello = self._client.hello
        return {"up": True, "pid": hello.pid, "version": hello.version, **shown}

    def _forget(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._before = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.latest = _encoded(self.read())
            self._stopped.wait(PERIOD_S)

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with suppress(RuntimeError):
            self._thread.join(2 * DEADLINE_S)
        self._forget()


def _encoded(shown: dict[str, Any]) -> bytes:
    return json.dumps({"schema": "convoy.watch/1", **shown}).encode()
