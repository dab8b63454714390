# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a running node can be asked, method by method."""

import shutil
import socket
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from convoy.client.connection import Connection
from convoy.client.why import Packet
from convoy.errors import InputError


@dataclass(frozen=True)
class Difference:
    """Something that a plan has otherwise than the node runs it."""

    what: str  # "port", "function", "chain", "next hop", or "setting": of the whole node
    name: str
    change: str  # "added", "removed" or "changed"
    key: str | None = None  # of it, that is changed


@dataclass(frozen=True)
class Entry:
    """A plan that the node ran."""

    number: int
    at: int  # seconds since 1970
    differences: list[Difference]  # from the one before
    back_to: int  # the number of the plan that it is again; 0: it is another
    confirm_s: int  # seconds until the node goes back; 0: it stays


class Client(Connection):
    """A connection to a node's control.sock, or to read.sock, where nothing can be changed."""

    def counts(self) -> dict[str, Any]:
        """Return all counters, shaped as a run's final ones."""
        return dict(self.call("counts"))

    def sandbox(self) -> dict[str, Any]:
        """Return what the node gave up after its start."""
        return dict(self.call("sandbox"))

    def state(self) -> dict[str, Any]:
        """Return whether what runs is kept for the next start, and what this start began with."""
        return dict(self.call("state"))

    def methods(self) -> list[dict[str, Any]]:
        """Return the node's methods, with their parameters."""
        return list(self.call("methods"))

    def plan(self) -> dict[str, Any]:
        """Return the plan that runs, with next hops as they are now."""
        return dict(self.call("plan"))

    def next_hops(self) -> dict[str, Any]:
        """Return the next hops by name, with what was sent to each."""
        return dict(self.counts()["next_hops"])

    def put_next_hop(self, next_hop: Mapping[str, Any]) -> None:
        """Add a next hop, or replace that of its name; hop: as in a plan's next_hops."""
        self.call("next_hops.put", {"next_hop": dict(next_hop)})

    def remove_next_hop(self, name: str) -> None:
        """Remove a next hop: its packets go where everything else goes."""
        self.call("next_hops.remove", {"name": name})

    def apply(
        self,
        plan: Mapping[str, Any],
        files: Iterable[str] = (),
        dry_run: bool = False,
        forget_flows: bool = False,
        confirm_s: int = 0,
        starts_with: bool = False,
    ) -> list[Difference]:
        """Make the node run another plan; return what differs.

        files: that parameters name: what is in them now goes with the plan.
        dry_run: the node builds what it would run, and throws it away.
        forget_flows: also where functions would share their flows otherwise than now.
        confirm_s: in which it must be confirmed, or the node goes back; 0: it stays.
        starts_with: the node will be started with this plan from now on.
        """
        with tempfile.TemporaryFile() as packed:
            params = {
                "plan": dict(plan),
                "files": _pack(files, packed),
                "dry_run": dry_run,
                "forget_flows": forget_flows,
                "confirm_s": confirm_s,
                "starts_with": starts_with,
            }
            file = packed.fileno() if params["files"] else None
            result = self.call("apply", params, file)
        return _differences(result)

    def move_queue(self, port: str, queue: int, worker: int) -> None:
        """Have another worker poll a queue, of those that move (`scale: auto`)."""
        self.call("queues.move", {"port": port, "queue": queue, "worker": worker})

    def process(self) -> dict[str, Any]:
        """Return how the node was started: its arguments, folder and environment."""
        return dict(self.call("process"))

    def hand_over(self, to: int, forget_flows: bool = False, starts_with: bool = False) -> int:
        """Have the node give all to the new one at a socket; it ends. Return packets that it kept.

        forget_flows: also where functions keep what does not go along.
        starts_with: what the new node runs is also what it will be started with.
        """
        how = {"forget_flows": forget_flows, "starts_with": starts_with}
        return int(self.call("handover", how, to)["held_pkts"])

    def standby(self) -> dict[str, Any]:
        """Return whether the node is a standby, or has one, and how far flows are copied."""
        return dict(self.call("standby"))

    def activate(self) -> None:
        """Have a standby forward from now on."""
        self.call("activate")

    def confirm(self) -> None:
        """Have the change stay that waits to be confirmed."""
        self.call("confirm")

    def rollback(self, to: int = 0, forget_flows: bool = False) -> list[Difference]:
        """Make the node run what it ran before; to: a number of its history, 0: the one before."""
        return _differences(self.call("rollback", {"to": to, "forget_flows": forget_flows}))

    def history(self) -> list[Entry]:
        """Return what the node ran, the newest last."""
        return [
            Entry(one["number"], one["at"], _differences(one), one["back_to"], one["confirm_s"])
            for one in self.call("history")
        ]

    def arm_why(
        self, expression: str = "", drops: bool = False, sample: int = 1, snap: int = 128
    ) -> None:
        """Have the node trace packets for this client, until it goes.

        expression: which ones, in the words of docs/why.md.
        drops: only what is dropped.
        sample: one of so many packets is looked at.
        snap: bytes of each packet.
        """
        which = {"filter": expression} if expression else {}
        self.call("why.arm", {**which, "drops": drops, "sample": sample, "snap": snap})

    def read_why(self, packets: int = 512, wait_ms: int = 200) -> tuple[list[Packet], int]:
        """Return packets that were traced since, and how many no one was told of.

        wait_ms: in which the node waits for the first one.
        """
        result = self.call("why.read", {"packets": packets, "wait_ms": wait_ms})
        return [Packet.read(packet) for packet in result["packets"]], result["lost"]

    def disarm_why(self) -> None:
        """Have the node trace no more packets for this client."""
        self.call("why.disarm")

    def mirror(
        self, to: socket.socket, begins: bool, as_they_left: bool = False, wait_ms: int = 200
    ) -> tuple[int, int]:
        """Have the node send traced packets as pcapng to a stream socket; return how many.

        The second number is of those that came faster than they were read, since arm_why(). begins:
        with the capture's header. as_they_left: those that were sent; else as they came. wait_ms:
        in which the node waits for the first one. Raises RefusedError if nobody reads.
        """
        params = {"begins": begins, "as_they_left": as_they_left, "wait_ms": wait_ms}
        result = self.call("why.mirror", params, to.fileno())
        return result["packets"], result["lost"]


def _differences(result: Mapping[str, Any]) -> list[Difference]:
    return [Difference(**difference) for difference in result["differences"]]


def _pack(files: Iterable[str], to: IO[bytes]) -> dict[str, list[int]]:
    """Write files one behind the other; return where each is."""
    places = {}
    for path in files:
        begin = to.tell()
        try:
            with Path(path).open("rb") as file:
                shutil.copyfileobj(file, to)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        places[path] = [begin, to.tell() - begin]
    to.flush()
    return places
