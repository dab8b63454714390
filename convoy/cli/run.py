# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy run: start the node, show what it counts, stop it and print the final counts."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from convoy.base.problem import printable
from convoy.chain.captures import with_captures
from convoy.chain.open import open_file
from convoy.chain.plan import Plan
from convoy.chain.split import Split
from convoy.cli.console import messages
from convoy.cli.counts_view import Sample, accounting_text, tables
from convoy.cli.options import Duration
from convoy.cli.refused import is_about_plan, with_line
from convoy.cli.result import Json, Result
from convoy.client import ClientError
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import HandedOverError, Node
from convoy.host.node_check import check_plan
from convoy.host.programs import need
from convoy.host.signals import StopSignals
from convoy.host.stall import Stall
from convoy.hybrid.published import folder_of
from convoy.hybrid.supervisor import Supervisor

REFRESH_S = 0.5


@dataclass(frozen=True)
class Forwarded(Result):
    """How a run ended."""

    file: str
    plan: Plan
    counts: dict[str, Any]
    hugepages: bool
    ended_by: str  # "captures", "duration" or "signal"

    @property
    def exit_code(self) -> int:
        """1 where packets were lost uncounted."""
        return 0 if self.counts["accounting"]["conserved"] else ConvoyError.exit_code

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.run/1",
            "file": self.file,
            "ok": self.counts["accounting"]["conserved"],
            "ended_by": self.ended_by,
            "hugepages": self.hugepages,
            "notes": list(self.plan.notes),
            "counts": self.counts,
        }

    def show(self, out: Console) -> None:
        """Print the final counts."""
        _show_final(out, self.counts)


@dataclass(frozen=True)
class HandedOver(Result):
    """How a run ended that another process goes on with."""

    file: str
    plan: Plan
    pid: int  # of that process
    conserved: bool

    @property
    def exit_code(self) -> int:
        """1 where packets were lost uncounted."""
        return 0 if self.conserved else ConvoyError.exit_code

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.run/1",
            "file": self.file,
            "ok": self.conserved,
            "ended_by": "handover",
            "pid": self.pid,
            "notes": list(self.plan.notes),
            "counts": None,
        }

    def show(self, out: Console) -> None:
        """Print who goes on."""
        out.print(f"handed over: convoyd {self.pid} goes on, and counts on", markup=False)


def _show_final(out: Console, counts: dict[str, Any]) -> None:
    accounting = counts["accounting"]
    out.print(tables(Sample(0.0, counts)))
    out.print(accounting_text(accounting), style="green" if accounting["conserved"] else "bold red")


def run(
    file: Path,
    plan: Plan,
    duration_s: float | None = None,
    started: Callable[[Node], None] = lambda node: None,
    watch: Callable[[Sample], None] | None = None,
    on_line: Callable[[str], None] | None = None,
    name: str = "the plan",
    options: Sequence[str] = (),
) -> Forwarded:
    """Run a plan until its captures end, duration_s is over, or a signal asks to stop.

    watch is given the counts every REFRESH_S, on_line what the node says (a peer went away).
    name: of the plan, where the node refuses it.
    options: of convoyd's own.
    Raises InputError (nothing was started), HandedOverError or ConvoyError.
    """
    node_of = Node(plan.data, on_line=on_line, name=name, options=options)
    with node_of as node, StopSignals() as signals:
        started(node)
        watch = _noticing_a_stall(plan, watch, on_line)
        end = None if duration_s is None else time.monotonic() + duration_s
        while node.process.running() and not signals.stop_requested:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            if watch is not None:
                _show(node, watch)
                left = REFRESH_S if left is None else min(REFRESH_S, left)
            signals.wait(node.process.pid, left)
        ended_by = "signal" if signals.stop_requested else "captures"
        if node.process.running():
            ended_by = "signal" if signals.stop_requested else "duration"
            counts = node.stop()
        else:
            counts = node.finish()
        return Forwarded(str(file), plan, counts, bool(node.ready.get("hugepages")), ended_by)


def _noticing_a_stall(
    plan: Plan, watch: Callable[[Sample], None] | None, on_line: Callable[[str], None] | None
) -> Callable[[Sample], None] | None:
    """Return what counts are shown to; with a capture to read, it tells of a run that stalls."""
    if on_line is None or not any(port.get("read") for port in plan.data["ports"]):
        return watch
    stall = Stall()

    def both(sample: Sample) -> None:
        line = stall.update(sample.at_s, sample.counts)
        if line:
            on_line(line)
        if watch is not None:
            watch(sample)

    return both


def _show(node: Node, watch: Callable[[Sample], None]) -> None:
    try:
        watch(Sample(time.monotonic(), node.counts()))
    except ClientError:
        if node.process.running():
            node.forget_client()  # a late answer must not be taken for the next one


class LiveView:
    """Counters that change in place on a terminal. Use it with `with`."""

    def __init__(self, out: Console, title: str) -> None:
        self._title = title
        self._before: Sample | None = None
        self.live = Live(console=out, auto_refresh=False, transient=True)

    def show(self, sample: Sample) -> None:
        """Draw the counts, with rates since those before."""
        if self._before is not None:
            head = Text(f"{self._title}, Ctrl-C stops", style="bold")
            self.live.update(Group(head, tables(sample, self._before)), refresh=True)
        self._before = sample


@dataclass(frozen=True)
class ForwardedInParts(Result):
    """How a run of a chain in parts ended."""

    file: str
    split: Split
    counts: dict[str, Any]
    parts: list[dict[str, Any]]
    ended_by: str  # "duration" or "signal"

    @property
    def exit_code(self) -> int:
        """1 where packets were lost uncounted."""
        return 0 if self.counts["accounting"]["conserved"] else ConvoyError.exit_code

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.run-parts/1",
            "file": self.file,
            "ok": self.counts["accounting"]["conserved"],
            "ended_by": self.ended_by,
            "notes": list(self.split.notes),
            "parts": self.parts,
            "counts": self.counts,
        }

    def show(self, out: Console) -> None:
        """Print the final counts."""
        _show_final(out, self.counts)


def run_parts(
    file: Path, split: Split, duration_s: float | None = None, as_json: bool = False
) -> ForwardedInParts:
    """Run a chain in parts until duration_s is over, or a signal asks to stop.

    Raises InputError (nothing was started) or ConvoyError.
    """
    out = messages()

    def on_line(part: str, line: str) -> None:
        out.print(printable(f"{part}: {line}"), markup=False)

    for note in split.notes:
        out.print(f"note: {note}", markup=False)
    with StopSignals() as signals, Supervisor(split, str(file), on_line) as supervisor:
        pids = ", ".join(f"{one['name']} {one['pid']}" for one in supervisor.state())
        out.print(f"forwarding; process ids: {pids}; Ctrl-C drains and stops", markup=False)
        view = None if as_json or not out.is_terminal else LiveView(out, printable(str(file)))
        end = None if duration_s is None else time.monotonic() + duration_s
        with contextlib.nullcontext() if view is None else view.live:
            while not signals.stop_requested:
                left = REFRESH_S if end is None else min(REFRESH_S, end - time.monotonic())
                if left <= 0:
                    break
                signals.wait(os.getpid(), left)
                supervisor.step()
                if view is not None:
                    view.show(Sample(time.monotonic(), supervisor.counts()))
        parts = supervisor.state()
        counts = supervisor.stop()
    ended_by = "signal" if signals.stop_requested else "duration"
    return ForwardedInParts(str(file), split, counts, parts, ended_by)


def command(
    file: Annotated[Path, typer.Argument(help="Chain descriptor (YAML), or a plan (JSON).")],
    read: Annotated[
        Path | None, typer.Option(help="Capture whose packets come in instead of the port's.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Capture to write what leaves instead of the port.")
    ] = None,
    chain: Annotated[
        str | None, typer.Option(help="Which chain the captures belong to, if there are several.")
    ] = None,
    duration: Duration = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what runs in this folder, and start with what ran last.",
        ),
    ] = None,
    as_json: Json = False,
) -> Result:
    """Run a chain until Ctrl-C, the end of its captures, or --duration; print what it counted."""
    opened = open_file(file, this_machine(), folder=folder_of(os.getpid()))
    plan = opened.plan
    if opened.split is not None:
        for option, given in (("--read", read), ("--write", write), ("--state", state)):
            if given is not None:
                raise InputError(
                    f"{option}: {given}: not of a chain in parts; leave it out, or place all "
                    f"functions of {printable(str(file))} inline"
                )
        return run_parts(file, opened.split, duration, as_json)
    if read is not None or write is not None:
        if opened.loaded is None:  # a plan, perhaps changed by hand: are its ports ports?
            check_plan(need("convoyd"), plan.data, file)
        plan = with_captures(plan, read, write, chain)
    name = "the plan" if opened.loaded else str(file)
    out = messages()
    options = [] if state is None else ["--state", str(state.absolute())]

    def started(node: Node) -> None:
        for note in plan.notes:
            out.print(f"note: {note}", markup=False)
        out.print("forwarding; Ctrl-C drains and stops", markup=False)

    def on_line(line: str) -> None:
        out.print(printable(line), markup=False)

    result: Forwarded | HandedOver
    try:
        if as_json or not out.is_terminal:
            result = run(file, plan, duration, started, on_line=on_line, name=name, options=options)
        else:
            view = LiveView(out, printable(str(file)))
            with view.live:
                result = run(file, plan, duration, started, view.show, on_line, name, options)
    except HandedOverError as error:
        result = HandedOver(str(file), plan, error.to, error.conserved)
    except ConvoyError as error:
        if not is_about_plan(error):
            raise
        raise type(error)(with_line(printable(str(error)), file, opened)) from None
    if result.exit_code:
        out.print("convoy: packets are not conserved: some were lost uncounted")
    return result
