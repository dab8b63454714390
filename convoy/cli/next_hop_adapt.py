# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy next-hop adapt: a next hop's wait follows what it saves behind the node."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from convoy.base.problem import known, printable, shown
from convoy.chain.next_hops import wait_in_words, wait_of
from convoy.cli.console import messages
from convoy.cli.running import Pid, chosen
from convoy.cli.top import choose
from convoy.client import Client
from convoy.errors import InputError
from convoy.host.adaptive_wait import (
    AdaptiveWait,
    FrameLimit,
    GoneError,
    Load,
    NextNode,
    OtherEnd,
)
from convoy.host.counts import running_nodes
from convoy.host.signals import StopSignals


class Adapting:
    """A next hop whose wait is changed, and put back in the end."""

    def __init__(self, client: Client, name: str, as_json: bool) -> None:
        self._client, self._name, self._as_json = client, name, as_json
        self._began = time.monotonic()
        next_hops = self._hops()
        if name not in next_hops:
            raise InputError(f"NAME: {shown(name)}; {known('next hops', name, next_hops)}")
        self._wait_ns = self._first_ns = int(next_hops[name].get("wait_ns", 0))

    def _hops(self) -> dict[str, dict[str, Any]]:
        return {next_hop["name"]: next_hop for next_hop in self._client.plan().get("next_hops", [])}

    def sent(self) -> dict[str, Any]:
        """Return what was sent to the next hop in all. Raises InputError if it is there no more."""
        next_hops = self._client.next_hops()
        if self._name not in next_hops:
            raise InputError(f"the next hop {shown(self._name)} was removed")
        return dict(next_hops[self._name])

    def set(self, wait_us: float, load: Load | None) -> None:
        """Have frames wait so long, and say so if it is new."""
        wait_ns = int(wait_us * 1000)
        if wait_ns == self._wait_ns:
            return
        self._put(wait_ns)
        self._say(load)

    def put_back(self) -> None:
        """Have frames wait as they did before."""
        self._put(self._first_ns)

    def _put(self, wait_ns: int) -> None:
        next_hop = self._hops().get(self._name)
        if next_hop is not None and wait_ns != self._wait_ns:
            self._client.put_next_hop({**next_hop, "wait_ns": wait_ns})
            self._wait_ns = wait_ns

    def _say(self, load: Load | None) -> None:
        at_s = time.monotonic() - self._began
        busy = None if load is None else load.busy
        if self._as_json:
            line = {"at_s": round(at_s, 3), "wait_ns": self._wait_ns, "busy": busy}
            print(json.dumps({"schema": "convoy.adapted/1", **line}), flush=True)
        else:
            why = "nothing is known of what is behind" if busy is None else f"{busy:.0%} busy"
            print(f"{at_s:8.1f} s  wait {wait_in_words(self._wait_ns)}  ({why})", flush=True)


def _next_node(text: str) -> Path:
    if not text.isdecimal():
        return Path(text)
    return choose(running_nodes(), int(text), "--next-node PID").read


def _adapt(next_hop: Adapting, law: AdaptiveWait, behind: OtherEnd, pid: int) -> None:
    """Look and change in each period, until a signal comes or the node ends."""
    there = True
    with StopSignals() as signals:
        while not signals.stop_requested:
            load = None
            try:
                load = behind.load()
                wait_us = law.after(load)
                there = True
            except GoneError as error:
                if there:
                    messages().print(printable(f"{error}: nothing waits until it is back"))
                there = False
                wait_us = law.forget()
            next_hop.sent()  # a node that is gone, or has no such next hop any more, ends it
            next_hop.set(wait_us, load)
            signals.wait(pid, law.period_s)
        next_hop.put_back()


def command(
    name: Annotated[str, typer.Argument(help="Of the next hop.")],
    at_most: Annotated[
        str, typer.Option(metavar="TIME", help="That a packet waits at most, such as 20us.")
    ],
    next_node: Annotated[
        str | None,
        typer.Option(metavar="PID|SOCKET", help="The node there, by process id or read.sock."),
    ] = None,
    frames_per_s: Annotated[
        float | None,
        typer.Option(min=1, help="What is behind takes so many frames a second; no --next-node."),
    ] = None,
    busy_from: Annotated[
        int, typer.Option(min=0, max=100, help="Percent busy there, from which frames wait.")
    ] = 70,
    period: Annotated[
        int, typer.Option(metavar="MS", min=20, max=60_000, help="Milliseconds between two looks.")
    ] = 500,
    pid: Pid = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document for each change.")
    ] = False,
) -> None:
    """Adapt a next hop's wait to the load behind it: none while that is low.

    Frames wait for more packets while the node there is busy, a step longer as long as that makes
    its packets cheaper, and never longer than --at-most. It runs until Ctrl-C, and leaves the wait
    as it found it. For example:

    \b
    convoy next-hop adapt b --at-most 20us --next-node /run/b/dpdk/convoyd-42/read.sock
    """
    try:
        most_ns = wait_of(at_most)
    except ValueError as error:
        raise InputError(f"--at-most: {shown(at_most)}: {error}") from None
    if most_ns == 0:
        raise InputError("--at-most: 0: nothing would ever wait; give a time such as 20us")
    if (next_node is None) == (frames_per_s is None):
        raise InputError("say what is behind: either --next-node or --frames-per-s")
    period_s = period / 1000
    law = AdaptiveWait(most_ns / 1000, period_s, busy_from / 100)
    node = chosen(pid)
    with ExitStack() as stack:
        client = stack.enter_context(Client(node.control))
        next_hop = Adapting(client, name, as_json)
        behind: OtherEnd
        if next_node is not None:
            behind = stack.enter_context(NextNode(_next_node(next_node)))
        else:
            behind = FrameLimit(frames_per_s or 0, period_s, next_hop.sent)
        behind.load()  # a wrong socket is said now
        _adapt(next_hop, law, behind, node.pid)
