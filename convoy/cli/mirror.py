# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy mirror: packets of a running node, copied to a socket or a file."""

import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console

from convoy.cli.console import messages
from convoy.cli.options import Duration
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client, RefusedError
from convoy.errors import InputError
from convoy.host.listen import unix_socket
from convoy.host.signals import StopSignals

SNAP_MAX = 2048
PIECE_BYTES = 1 << 18
ACCEPT_S = 0.2
WRITE_S = 5  # that a file, or who reads a pipe, may take for the last packets


@dataclass
class Mirrored(Result):
    """What was copied."""

    packets: int = 0
    lost: int = 0  # came faster than they were read

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.mirror/1", **asdict(self)}

    def show(self, out: Console) -> None:
        """Print it, beside a capture that standard output may be."""
        plural = "" if self.packets == 1 else "s"
        lost = f", {self.lost} more came faster than they were read" if self.lost else ""
        messages().print(f"{self.packets} packet{plural}{lost}")


@dataclass(frozen=True)
class Wanted:
    """Which packets, and until when."""

    expression: str
    drops: bool
    sample: int
    snap: int
    as_they_left: bool
    until: float | None  # time.monotonic()

    def arm(self, client: Client) -> None:
        """Have the node trace them."""
        client.arm_why(self.expression, self.drops, self.sample, self.snap)

    def is_over(self, signals: StopSignals) -> bool:
        """Return whether it is time to end."""
        return signals.stop_requested or (self.until is not None and time.monotonic() >= self.until)


def _is_gone(reader: socket.socket) -> bool:
    """Return whether nobody will read what is sent there."""
    state = select.poll()
    state.register(reader, 0)
    return bool(state.poll(0))


def _copy(client: Client, wanted: Wanted, to: socket.socket, signals: StopSignals) -> Mirrored:
    """Have packets sent to a socket until it is time to end, or its reader is gone."""
    done = Mirrored()
    wanted.arm(client)
    begins = True
    while not wanted.is_over(signals) and not _is_gone(to):
        try:
            packets, done.lost = client.mirror(to, begins, wanted.as_they_left)
        except RefusedError as error:
            messages().print(str(error), style="yellow")
            break
        begins = False
        done.packets += packets
    return done


def _write_all(file: BinaryIO, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) :]


@contextmanager
def _into(file: BinaryIO, path: Path) -> Iterator[socket.socket]:
    """Give a socket; what is sent there is in the file at the end. Raises InputError if not."""
    ours, theirs = socket.socketpair()
    failed: list[OSError] = []

    def pump() -> None:
        try:
            while piece := ours.recv(PIECE_BYTES):
                _write_all(file, piece)
        except OSError as error:
            failed.append(error)
            ours.shutdown(socket.SHUT_RDWR)  # the node sees it, too

    writer = threading.Thread(target=pump, daemon=True)  # who reads a pipe may never read again
    writer.start()
    with ours, theirs:
        yield theirs
        with suppress(OSError):  # it is shut down already
            theirs.shutdown(socket.SHUT_WR)
        writer.join(WRITE_S)
    # A pipe whose reader has seen enough is no error.
    if failed and not isinstance(failed[0], BrokenPipeError):
        raise InputError(f"--write: {path}: {failed[0].strerror}")


def _open(path: Path, stack: ExitStack) -> BinaryIO:
    """Open it without a buffer."""
    to = sys.stdout.fileno() if str(path) == "-" else path
    try:
        return stack.enter_context(open(to, "wb", buffering=0, closefd=to is path))
    except OSError as error:
        raise InputError(f"--write: {path}: {error.strerror}") from None


def _serve(client: Client, wanted: Wanted, path: Path, signals: StopSignals) -> Mirrored:
    """Send packets to whoever connects, one reader after the other."""
    total = Mirrored()
    wanted.arm(client)  # what is wrong is said before anybody waits
    client.disarm_why()
    with unix_socket(path, 0o600, "--listen") as listens:
        messages().print(f"at {path}: one reader at a time, Ctrl-C ends it")
        listens.settimeout(ACCEPT_S)
        while not wanted.is_over(signals):
            try:
                reader, _ = listens.accept()
            except TimeoutError:
                continue
            with reader:
                done = _copy(client, wanted, reader, signals)
            client.disarm_why()
            total.packets += done.packets
            total.lost += done.lost
    return total


def command(
    expression: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER]...", help="Which packets (docs/why.md); without it all."),
    ] = None,
    listen: Annotated[
        Path | None,
        typer.Option(metavar="SOCKET", help="Make a unix socket that a reader connects to."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a capture; -: to standard output."),
    ] = None,
    left: Annotated[
        bool, typer.Option("--left", help="Packets that were sent, as they left.")
    ] = False,
    drops: Annotated[bool, typer.Option("--drops", help="Only what is dropped.")] = False,
    sample: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Look at one of so many packets.")
    ] = 1,
    snap: Annotated[
        int, typer.Option(min=14, max=SNAP_MAX, help="Bytes of each packet that are copied.")
    ] = SNAP_MAX,
    duration: Duration = None,
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Copy packets of a running node, as pcapng, to a socket or a file.

    As they came, before any function; with --left as they were sent. The node waits for no reader:
    what comes faster than it is read is counted, and told at the end.
    """
    if (listen is None) == (write is None):
        raise InputError("where to? Give one of --listen SOCKET and --write FILE")
    if drops and left:
        raise InputError("--left: what is dropped does not leave; leave out --drops or --left")
    if as_json and str(write) == "-":
        raise InputError("--json: standard output has the capture; write it to a FILE")
    until = None if duration is None else time.monotonic() + duration
    wanted = Wanted(" ".join(expression or ()), drops, sample, snap, left, until)
    node = chosen(pid)
    with Client(node.control) as client, StopSignals() as signals, ExitStack() as stack:
        if listen is not None:
            return _serve(client, wanted, listen, signals)
        assert write is not None
        wanted.arm(client)  # before the file is made
        to = stack.enter_context(_into(_open(write, stack), write))
        return _copy(client, wanted, to, signals)
