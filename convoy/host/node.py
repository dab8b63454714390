# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running convoyd: started from a plan, asked while it runs, stopped with its final counts."""

import json
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from convoy.client import Client
from convoy.errors import ConvoyError, InputError
from convoy.host.counts import SCHEMA, RunningNode
from convoy.host.folders import make_for_sockets
from convoy.host.node_check import about_plan
from convoy.host.process import Process, ProcessError
from convoy.host.programs import need
from convoy.host.scope import Scope

READY_DEADLINE_S = 120.0  # tables of a million routes
STOP_DEADLINE_S = 30.0


class HandedOverError(ConvoyError):
    """A node gave no counts: another process took over from it, and counts on."""

    def __init__(self, pid: int, to: int, conserved: bool) -> None:
        super().__init__(f"convoyd {pid} handed over to {to}, which goes on")
        self.to = to
        self.conserved = conserved  # as far as it counted


class Node(Scope):
    """convoyd with a plan. Use it with `with`: at the end it is gone, whatever happened."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        convoyd: Path | None = None,
        wrapper: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
        name: str = "the plan",
        options: Sequence[str] = (),
    ) -> None:
        """Prepare; wrapper is put before the command (taskset, ip netns exec).

        name: what to call the plan where convoyd refuses it.
        options: of convoyd's own.
        on_line: called, maybe by another thread, with each line that it says, once it is ready.
        """
        self._name = name
        self._on_line = on_line or (lambda line: None)
        self._early: list[str] | None = []  # what it said before it was ready; None: it is
        self._telling = threading.Lock()
        self._plan = plan
        self._convoyd = need("convoyd") if convoyd is None else convoyd
        self._wrapper = tuple(wrapper)
        self._environment = environment
        self._options = tuple(options)
        self._process: Process | None = None
        self._client: Client | None = None
        self.ready: dict[str, Any] = {}  # the event that it printed

    def __enter__(self) -> Self:
        """Start it and wait until it forwards. Raises InputError or ConvoyError with its words."""
        make_for_sockets(self._plan)
        try:
            self._process = Process(
                [*self._wrapper, self._convoyd, *self._options, "-"],
                environment=self._environment,
                stop_deadline_s=STOP_DEADLINE_S,
                takes_input=True,
                on_line=self._tell,
            )
            self._process.name = "convoyd"
            self._await_ready()
        except BaseException:
            self._close()
            raise
        return self

    def _tell(self, line: str) -> None:
        with self._telling:
            if self._early is not None:
                self._early.append(line)
            else:
                self._on_line(line)

    def _await_ready(self) -> None:
        try:
            self.process.say(json.dumps(self._plan))
            self.process.end_input()
            line = self.process.wait_line(
                lambda text: _event(text) == "ready", READY_DEADLINE_S, "it was ready"
            )
        except ProcessError:
            code = self.process.exit_code
            if code is None or code < 0:
                raise
            words = about_plan(self.process.last_words(), self._name)
            raise (InputError if code == 2 else ConvoyError)(words) from None
        self.ready = json.loads(line)
        with self._telling:
            for line in self._early or ():
                self._on_line(line)
            self._early = None

    @property
    def process(self) -> Process:
        """The process. Only inside `with`."""
        assert self._process is not None, "used outside its with statement"
        return self._process

    @property
    def running(self) -> RunningNode:
        """Where it is reached."""
        return RunningNode(self.process.pid, Path(self.ready["control"]))

    def counts(self) -> dict[str, Any]:
        """Return the counts as they are now, shaped as the final ones. Raises ClientError."""
        if self._client is None:
            self._client = Client(Path(self.ready["read"]))
        return self._client.counts()

    def forget_client(self) -> None:
        """Close the connection that counts come over; the next counts() makes a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def stop(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """Let it drain and stop; return its final counts. As finish()."""
        self.process.signal(number)
        return self.finish()

    def finish(self) -> dict[str, Any]:
        """Wait until it has ended and return its final counts.

        Raises ConvoyError if it gave none, HandedOverError if another process goes on.
        """
        code = self.process.wait(STOP_DEADLINE_S)
        text = self.process.stdout.text()
        counts = final_counts(text)
        if counts is None:
            if (to := _handed_over_to(text)) is not None:
                raise HandedOverError(self.process.pid, to, conserved=code == 0)
            raise ConvoyError(
                f"convoyd ended without its counts (exit code {code}): {self.process.last_words()}"
            )
        return counts

    def _close(self) -> None:
        self.forget_client()
        if self._process is not None:
            self._process.close()

    def _leave(self) -> None:
        self._close()


def final_counts(text: str) -> dict[str, Any] | None:
    """Return the counts that a node's output ends with, or None."""
    for line in reversed(text.splitlines()):
        if _json(line).get("schema") == SCHEMA:
            return _json(line)
    return None


def _handed_over_to(text: str) -> int | None:
    for line in reversed(text.splitlines()):
        if _event(line) == "handed over":
            return int(_json(line)["pid"])
    return None


def _json(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _event(line: str) -> Any:
    return _json(line).get("event")
