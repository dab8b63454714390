# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy why: the way of packets through a running node."""

import json
import math
import shlex
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated

import typer

from convoy.base.problem import printable
from convoy.base.problem import shown as shown_text
from convoy.cli.console import messages
from convoy.cli.options import Duration
from convoy.cli.running import Pid, chosen
from convoy.cli.why_view import comment_of, lines_of
from convoy.client import Client, Packet
from convoy.client.pcapng import PcapngWriter
from convoy.errors import InputError
from convoy.host.process import Process, ProcessError
from convoy.host.signals import StopSignals

WAIT_S = 0.2
READ_MAX = 512


@dataclass
class Shown:
    """Packets as they come: on the terminal, as JSON, into a capture."""

    as_json: bool
    capture: PcapngWriter | None
    count: int | None
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """How many more are wanted."""
        return READ_MAX if self.count is None else self.count - self.ends.total()

    def add(self, packet: Packet) -> None:
        """Show one."""
        self.ends[packet.end if packet.reason is None else f"dropped: {packet.reason}"] += 1
        if self.capture is not None:
            self.capture.add(packet, comment_of(packet))
        if self.as_json:
            print(json.dumps(packet.document), flush=True)
        elif self.capture is None:
            print("\n".join(lines_of(packet)), flush=True)

    def sum_up(self, lost: int) -> None:
        """Say what there was."""
        if self.as_json:
            document = {"schema": "convoy.why/1", "packets": self.ends.total(), "lost": lost}
            print(json.dumps({**document, "ends": dict(self.ends)}))
            return
        ends = ", ".join(f"{count} {end}" for end, count in self.ends.most_common())
        total = self.ends.total()
        print(f"{total} packet{'' if total == 1 else 's'}{': ' if ends else ''}{ends}")
        if lost:
            messages().print(f"{lost} more came faster than they were read", style="yellow")


def watch(
    client: Client, shown: Shown, duration_s: float | None, running: Process | None = None
) -> int:
    """Show packets until there are enough, the time is over or a signal comes; return the lost.

    running: until this has ended, too.
    """
    until = math.inf if duration_s is None else time.monotonic() + duration_s
    lost = 0
    with StopSignals() as signals:
        while shown.left > 0 and not signals.stop_requested:
            if running is not None and not running.running():
                until = min(until, time.monotonic() + WAIT_S)  # its last packets are on their way
                running = None
            left_s = min(until - time.monotonic(), WAIT_S)
            if left_s <= 0:
                break
            packets, lost = client.read_why(min(shown.left, READ_MAX), math.ceil(1000 * left_s))
            for packet in packets:
                shown.add(packet)
    return lost


def _run(command: str) -> Process:
    try:
        words = shlex.split(command)
        if not words:
            raise ValueError("is empty")
        return Process(words)
    except (ValueError, ProcessError) as error:
        raise InputError(f"--run: {shown_text(command)}: {error}") from None


def _create(path: Path) -> IO[bytes]:
    try:
        return path.open("wb")
    except OSError as error:
        raise InputError(f"--pcapng: {path}: {error.strerror}") from None


def command(
    expression: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER]...", help="Which packets (docs/why.md); without it all."),
    ] = None,
    pid: Pid = None,
    drops: Annotated[bool, typer.Option("--drops", help="Only what is dropped.")] = False,
    count: Annotated[
        int | None, typer.Option("-c", "--count", min=1, help="End after so many packets.")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Look at one of so many packets.")
    ] = 1,
    duration: Duration = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Start this once packets are traced; end with it."),
    ] = None,
    snap: Annotated[
        int, typer.Option(min=14, max=2048, help="Bytes of each packet that are kept.")
    ] = 128,
    pcapng: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a capture, with each one's way as its comment."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document on each line.")
    ] = False,
) -> None:
    """Show the way of packets through a running node: each function, its verdict, their end.

    It ends with Ctrl-C, or as --count, --duration and --run say. The node keeps forwarding: packets
    that come faster than they are read are counted, and told at the end. For example:

    \b
    convoy why icmp --run "ping -c 1 192.0.2.1"
    """
    node = chosen(pid)
    with ExitStack() as stack:
        client = stack.enter_context(Client(node.control))
        client.arm_why(" ".join(expression or ()), drops, sample, snap)
        file = None if pcapng is None else stack.enter_context(_create(pcapng))
        shown = Shown(as_json, None if file is None else PcapngWriter(file), count)
        running = None if run is None else stack.enter_context(_run(run))
        shown.sum_up(watch(client, shown, duration, running))
        if running is not None and running.exit_code:
            messages().print(printable(f"--run: {running.last_words()}"), style="yellow")
