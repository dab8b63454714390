# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A new node process takes over from a running one, while packets flow."""

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from convoy.client import Client, ClientError
from convoy.errors import ConvoyError, InputError
from convoy.host.counts import RunningNode
from convoy.host.node_check import about_plan, last_words
from convoy.host.process import Lines, ProcessError, wait_for
from convoy.host.programs import need

PREPARED_DEADLINE_S = 120.0  # tables of a million routes
STARTED_DEADLINE_S = 15.0
STOP_DEADLINE_S = 10.0
OF_ONE_START = ("--state", "--handover", "--instead-of")  # each with a value
ALONE = ("XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@dataclass(frozen=True)
class HandedOver:
    """The two processes, and what it cost."""

    before: RunningNode  # it ends
    after: RunningNode
    gap_us: float  # no packet moved
    held_pkts: int  # that functions kept, and that are lost
    version_before: str
    version_after: str


def hand_over(
    node: RunningNode,
    convoyd: Path | None = None,
    forget_flows: bool = False,
    plan: Mapping[str, Any] | None = None,
    starts_with: bool = False,
) -> HandedOver:
    """Start a node beside a running one and have it take over; return when that one has ended.

    convoyd: the program; else the one that is installed.
    forget_flows: also where functions keep what does not go along.
    plan: what the new node runs; else what the running one runs. Ports that are in both go along.
    starts_with: that plan is also what the node will be started with.
    Raises InputError or ConvoyError: then the running node goes on as if nothing was.
    """
    with Client(node.control, STARTED_DEADLINE_S) as client:
        running, process = client.plan(), client.process()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, its, _started(its, running, plan, process, convoyd) as new:
            its.close()
            new.until("prepared", PREPARED_DEADLINE_S)
            held = client.hand_over(ours.fileno(), forget_flows, starts_with)
            ours.close()
            ready = new.until("ready", STARTED_DEADLINE_S)
            new.is_kept = True
        taken = ready["handover"]
        after = RunningNode(new.popen.pid, Path(ready["control"]))
        with suppress(ClientError), Client(after.read) as reader:
            version = reader.hello.version
        with suppress(ProcessError):  # packets flow; whoever looks next is to find one node
            wait_for(lambda: not node.control.exists(), STOP_DEADLINE_S, "the old node's end")
        return HandedOver(node, after, taken["gap_us"], held, client.hello.version, version)


class _New:
    """The new process, until it is the node."""

    def __init__(self, popen: subprocess.Popen[str], words: IO[str]) -> None:
        assert popen.stdout is not None
        self.popen = popen
        self.is_kept = False
        self._words = words
        self._lines = Lines(popen.stdout)

    def until(self, event: str, deadline_s: float) -> dict[str, Any]:
        """Return an event that it prints. Raises InputError or ConvoyError with its words."""
        line = self._lines.wait(lambda text: _event(text) == event, deadline_s)
        if line is not None:
            return dict(json.loads(line))
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(1.0)
        self._words.seek(0)
        words = about_plan(last_words(self._words.read())) or "it says nothing"
        raise (InputError if self.popen.poll() == 2 else ConvoyError)(f"the new node: {words}")

    def end(self) -> None:
        """End it, unless it is the node."""
        if self.is_kept:
            return
        self.popen.terminate()
        try:
            self.popen.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


@contextmanager
def _started(
    its: socket.socket,
    running: Mapping[str, Any],
    plan: Mapping[str, Any] | None,
    process: Mapping[str, Any],
    convoyd: Path | None,
) -> Iterator[_New]:
    program = need("convoyd") if convoyd is None else convoyd
    environment = {name: value for name, value in os.environ.items() if name not in ALONE}
    environment |= process["environment"]
    command = [str(program), *_options(process["arguments"]), "--handover", str(its.fileno())]
    with (
        tempfile.TemporaryFile("w+") as text,
        tempfile.NamedTemporaryFile("w") as before,
        tempfile.TemporaryFile("w+") as words,
    ):
        json.dump(running if plan is None else plan, text)
        text.seek(0)
        if plan is not None:
            json.dump(running, before)
            before.flush()
            command += ["--instead-of", before.name]
        try:
            popen = subprocess.Popen(
                [*command, "-"],
                stdin=text,
                stdout=subprocess.PIPE,
                stderr=words,
                encoding="utf-8",
                errors="replace",
                env=environment,
                cwd=process["folder"] or None,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            raise ConvoyError(f"{error.filename}: {error.strerror}") from None
        new = _New(popen, words)
        try:
            yield new
        finally:
            new.end()


def _options(arguments: list[str]) -> list[str]:
    """Return a node's options without its plan, and without what comes along."""
    options, rest = [], iter(arguments[:-1])
    for argument in rest:
        if argument in OF_ONE_START:
            next(rest, None)
        elif argument.partition("=")[0] not in OF_ONE_START:
            options.append(argument)
    return options


def _event(line: str) -> Any:
    with suppress(ValueError):
        value = json.loads(line)
        return value.get("event") if isinstance(value, dict) else None
    return None
