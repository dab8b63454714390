# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets on their way through a node: `why.arm` and `why.read` of the control socket."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Step:
    """What one function did with a packet."""

    chain: str
    function: str
    verdict: str  # "next", "drop", "output", "absorbed" or "held"
    reason: str | None = None  # of a drop
    output: str | None = None
    because: str | None = None  # the rule, route or flow that decided
    cycles: int | None = None  # of its burst, by packet; None: the function behind has them
    bytes: int | None = None  # of the packet behind it


@dataclass(frozen=True)
class Bytes:
    """A packet: its length, and its first bytes."""

    length: int
    data: bytes


@dataclass(frozen=True)
class Packet:
    """A packet, and its way."""

    at: int  # nanoseconds since 1970
    port: str  # that it came in by
    chain: str | None  # None: it came into none
    origin: str  # "port", or "function": one of the node's made or released it
    by: str | None  # that function
    way: list[Step]
    end: str  # "sent", "handed on", "dropped", "absorbed" or "held"
    reason: str | None  # of a drop
    out: str | None  # port
    next_hop: str | None
    next_hop_of: int | None  # that its flow chose among
    convoy: int | None  # packets of the convoy that it left in
    cycles: int  # from its first function to its end
    before: Bytes | None  # as it came
    after: Bytes | None  # as it left, or was dropped
    document: Mapping[str, Any]  # as the node says it

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Return what a node said of a packet."""
        return cls(
            at=record["at"],
            port=record["in"],
            chain=record.get("chain"),
            origin=record["from"],
            by=record.get("by"),
            way=[Step(**step) for step in record["way"]],
            end=record["end"],
            reason=record.get("reason"),
            out=record.get("out"),
            next_hop=record.get("next_hop"),
            next_hop_of=record.get("next_hop_of"),
            convoy=record.get("convoy"),
            cycles=record["cycles"],
            before=_bytes(record.get("before")),
            after=_bytes(record.get("after")),
            document=record,
        )

    @property
    def function(self) -> str | None:
        """The function that dropped it; None: the node did, or nobody."""
        if self.end != "dropped" or not self.way or self.way[-1].verdict != "drop":
            return None
        return self.way[-1].function


def _bytes(value: Mapping[str, Any] | None) -> Bytes | None:
    return None if value is None else Bytes(value["bytes"], bytes.fromhex(value["hex"]))
