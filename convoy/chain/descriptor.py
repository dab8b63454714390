# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A chain descriptor: ports, functions, the chains that lead through them, and who works."""

from typing import Literal

from pydantic import Field

from convoy.base.model import Model, Name
from convoy.chain.flows import Flows
from convoy.chain.functions import AnyFunction
from convoy.chain.match import ChainMatch
from convoy.chain.model import ChainName
from convoy.chain.next_hops import NextHop
from convoy.chain.openflow import OpenFlow
from convoy.chain.ports import AnyPort, SocketAccess
from convoy.chain.standby import Standby


class Chain(Model):
    """Packets that come in by one port, pass functions in order, and leave by another."""

    match: ChainMatch = Field(ChainMatch(), description="default: everything")
    from_: Name | None = Field(
        None,
        alias="from",
        description="port that its packets come in by; absent: outputs of functions lead here",
    )
    to: Name = Field(description="port that they leave by, unless a function says otherwise")
    path: list[Name] = Field([], max_length=32, description="functions in order; empty: a wire")
    both_ways: bool = Field(False, description="also from `to` to `from`, the path reversed")
    deployment: Literal["inline", "pipeline"] = Field(
        "inline",
        description="all functions on one worker, or one worker per function joined by rings",
    )
    spread: Literal["rss", "round-robin"] = Field(
        "rss",
        description="which worker has a packet: whose queue or flow it is of, or each in turn, "
        "burst by burst, where no function remembers packets",
    )


class Workers(Model):
    """Who polls. Without it: cores are chosen, leaving core 0 to the system if there are more."""

    cores: list[int] | None = Field(None, min_length=1, max_length=64, description="CPU numbers")
    idle: Literal["poll", "yield", "sleep"] = Field(
        "poll", description="without work: poll on, give the core away, or also sleep for a moment"
    )
    scale: Literal["fixed", "auto"] = Field(
        "fixed", description="auto: queues go to other workers by load, and those without sleep"
    )


class Memory(Model):
    """Memory of the node."""

    hugepages: Literal["auto", "always", "never"] = Field(
        "auto", description="auto: as root, if enough are free"
    )
    mb: int | None = Field(
        None, ge=64, le=1 << 20, description="size in MiB; default: 1024, with hugepages 512"
    )


class Telemetry(SocketAccess):
    """The sockets that a node is only read by: DPDK's telemetry, and read.sock beside it."""


class Control(SocketAccess):
    """The socket that a node is changed by, control.sock: who connects controls the node."""


class Descriptor(Model):
    """Ports, functions, and chains that lead packets through them."""

    ports: dict[Name, AnyPort] = Field(min_length=1, max_length=64, description="by name")
    functions: dict[Name, AnyFunction] = Field({}, description="network functions, by name")
    next_hops: dict[Name, NextHop] = Field(
        {}, max_length=256, description="nodes that take convoys, by name"
    )
    chains: dict[ChainName, Chain] = Field(min_length=1, max_length=64, description="by name")
    flows: Flows = Field(Flows(), description="of stateful functions")
    workers: Workers = Field(Workers(), description="default: chosen")
    memory: Memory = Field(Memory(), description="default: hugepages if enough are free")
    telemetry: Telemetry = Field(Telemetry(), description="default: this user alone connects")
    control: Control = Field(Control(), description="default: this user alone connects")
    openflow: OpenFlow | None = Field(
        None, description="controllers that say which next hop packets have; default: none"
    )
    standby: Standby | None = Field(
        None, description="a second node for this one's flows; default: none"
    )
    run_as: str | None = Field(
        None,
        min_length=1,
        description="USER or USER:GROUP that convoyd becomes once its ports are open; needs root",
        examples=["convoy"],
    )
