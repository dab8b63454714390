# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Next hops of a descriptor: where convoys go, and which packets they carry."""

import base64
import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from convoy.base.model import Model, Name
from convoy.chain.match import Scid
from convoy.chain.model import Address, File, Mac
from convoy.frame.dictionary import read_dictionary

WAIT_MAX_NS = 1_000_000


def wait_of(value: Any) -> int:
    """Return the nanoseconds of a wait as a descriptor has it. Raises ValueError."""
    if value == 0:
        return 0
    text = re.fullmatch(r"(\d+(?:\.\d{1,3})?)us", value) if isinstance(value, str) else None
    if text is None or Decimal(text[1]) * 1000 > WAIT_MAX_NS:
        raise ValueError("write microseconds, from 0 to 1000us, such as 5us")
    return int(Decimal(text[1]) * 1000)


def wait_in_words(ns: int) -> str:
    """Return a wait of so many nanoseconds as a descriptor has it."""
    return f"{Decimal(ns) / 1000:f}us"


Wait = Annotated[
    int,
    BeforeValidator(wait_of, json_schema_input_type=str | Literal[0]),
    PlainSerializer(lambda ns: wait_in_words(ns) if ns else 0),
]


class NextHop(Model):
    """Another node that takes convoys, and the packets that go there."""

    port: Name = Field(description="port that its convoys leave by; it has `convoys` with an `ip`")
    mac: Mac = Field(description="its MAC address, or that of the router on the way")
    ip: Address = Field(description="its address")
    nfi: int = Field(
        0,
        ge=0,
        le=65535,
        description="NFI-ID: the network-function instance there, as it numbers it",
    )
    for_: list[Scid] = Field(
        [Scid()],
        alias="for",
        description="service-chain ids of its packets; default: those of no other next hop; "
        "empty: none but those that a controller gives it; several next hops may have the same: "
        "each of their flows goes to one of these",
    )
    weight: int = Field(
        1,
        ge=1,
        le=256,
        description="its share of the flows, among next hops for the same service-chain id",
    )
    spread: Literal["flow", "addresses"] = Field(
        "flow",
        description="what goes to one of them as a whole: a flow, by addresses, protocol and "
        "ports; or all packets between two addresses, so that fragments too go where their flow "
        "goes; the same for all of them",
    )
    leaving: list[Name] | None = Field(
        None,
        min_length=1,
        description="ports that the packets would leave by; default: `port`",
    )
    mtu: int = Field(
        1500, ge=128, le=65500, description="bytes of its largest IP packet, at most the port's mtu"
    )
    vlan: int | None = Field(None, ge=0, le=4095, description="VLAN id of the convoys themselves")
    ttl: int = Field(64, ge=1, le=255, description="TTL or hop limit of the convoys")
    udp_port: int | None = Field(
        None, ge=1, le=65535, description="UDP destination port; default: that of the port"
    )
    source_port: int | None = Field(
        None, ge=1, le=65535, description="UDP source port; default: by the first packet's flow"
    )
    encapsulate: bool = Field(
        False,
        description="a single packet too goes in a convoy: it arrives behind routers, and where "
        "several next hops share a link; one that does not fit is dropped",
    )
    wait: Wait = Field(
        0,
        description="that a frame which is not full waits for more packets at most, `5us`, "
        "up to `1000us`; 0: it leaves with the poll iteration",
    )
    compress: Literal["lz4"] | None = Field(
        None,
        description="its convoys are compressed where that makes them smaller; the receiving port "
        "has `expand` in its `convoys`",
    )
    dictionary: File | None = Field(
        None,
        description="file that both ends have, of `convoy dictionary`, for `compress`; "
        "default: none",
    )

    fragment: bool = Field(
        False,
        description="frames are filled: a packet that does not fit any more is cut in two, and its "
        "rest goes first in the next frame; the receiving port has `reassemble` in its `convoys`",
    )

    @model_validator(mode="after")
    def _whole_or_compressed(self) -> Self:
        if self.fragment and self.compress is not None:
            raise ValueError("has fragment and compress: no frame can have both; leave one out")
        return self

    @model_validator(mode="after")
    def _dictionary_of_compression(self) -> Self:
        if self.dictionary is not None and self.compress is None:
            raise ValueError("has a dictionary and does not compress; add compress: lz4")
        return self

    def as_plan(self, name: str, base: Path) -> dict[str, Any]:
        """Return it as the plan has it, and as a running node takes it.

        base is where its files' paths start. Raises InputError.
        """
        values = self.model_dump(
            exclude_none=True,
            exclude={"for_", "weight", "spread", "wait", "encapsulate", "fragment"},
        )
        if self.weight != 1:
            values["weight"] = self.weight
        if self.spread != "flow":
            values["spread"] = self.spread
        if self.encapsulate:
            values["encapsulate"] = True
        if self.fragment:
            values["fragment"] = True
        if self.wait:
            values["wait_ns"] = self.wait
        if self.dictionary is not None:
            values["dictionary"] = in_plan(base / self.dictionary)
        match = [item.model_dump(exclude_none=True) for item in self.for_]
        return {"name": name, **values, "match": match}


def in_plan(dictionary: Path) -> str:
    """Return a dictionary as the plan has it. Raises InputError."""
    return base64.b64encode(read_dictionary(dictionary)).decode()
