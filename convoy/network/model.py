# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a network file says: nodes, the links between them, functions, and chains through all."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from convoy.base.model import Model, Name, named
from convoy.chain.descriptor import Memory, Workers
from convoy.chain.flows import Flows
from convoy.chain.functions import AnyFunction
from convoy.chain.match import Scid
from convoy.chain.model import Address, Mac, Text
from convoy.chain.openflow import PORT, Controller
from convoy.chain.ports import AnyPort
from convoy.sim.model import AnySource, Simulate

NODES_MAX = 1000
CHAINS_MAX = 64  # that one node may have
INSTANCES_MAX = 64  # that flows of one chain are spread over: buckets of a group
Short = Annotated[str, *named(15)]  # two of them make a name


class Attachment(Model):
    """How a node is joined to a link: the port, and who it is there."""

    ip: Address = Field(description="that convoys come from and go to")
    mac: Mac = Field(description="of its interface there")
    port: AnyPort | None = Field(
        None, description="as in a descriptor, without convoys; default: {af_packet: LINK}"
    )


class Link(Model):
    """What joins nodes at layer 2: a cable between two, or a switched network of many."""

    mtu: int = Field(
        1600,
        ge=128,
        le=65500,
        description="bytes of its largest IP packet; 52 more than that of packets, at least",
    )
    nodes: dict[Short, Attachment] = Field(
        min_length=2, max_length=NODES_MAX, description="by name"
    )


class Node(Model):
    """One convoyd."""

    ports: dict[Name, AnyPort] = Field({}, description="where chains begin and end, by name")
    functions: list[Name] = Field([], description="of which it runs an instance each")
    read: Text | None = Field(
        None, description="its read.sock, where the controller asks how busy it is; default: not"
    )
    flows: Flows = Field(Flows(), description="as in a descriptor")
    workers: Workers = Field(Workers(), description="as in a descriptor")
    memory: Memory = Field(Memory(), description="as in a descriptor")


def _at(text: str) -> str:
    node, slash, port = text.partition("/")
    if not (node and slash and port):
        raise ValueError("must be NODE/PORT, such as edge/clients")
    return text


Place = Annotated[str, AfterValidator(_at), Field(examples=["edge/clients"])]


class Chain(Model):
    """Packets with one SC-ID: in by a node's port, through an instance of each function, out."""

    match: Scid = Field(description="its SC-ID, which its packets already have")
    from_: Place = Field(alias="from", description="NODE/PORT that its packets come in by")
    to: Place = Field(description="NODE/PORT that they leave by")
    path: list[Name] = Field([], max_length=32, description="functions in order")
    spread: Literal["chains", "flows"] = Field(
        "chains",
        description="chains: all its packets go to one instance of each function; flows: each flow "
        "goes to one",
    )
    traffic: AnySource | None = Field(
        None, description="what comes, for `convoy sim run`: a source of a topology"
    )


class Simulation(Model):
    """What only `convoy sim run` looks at."""

    profile: Text = Field("node-epyc", description="of nodes, whose functions cost as measured")
    gbps: float = Field(40.0, gt=0, le=100000, description="of each link")
    delay_us: float = Field(1.0, ge=1e-6, le=1e9, description="of each link")
    simulate: Simulate = Field(Simulate(), description="how long, and from which seed")


class Network(Model):
    """Nodes, links, functions and chains, and the controller that leads chains through nodes."""

    controller: Controller | None = Field(
        None,
        description=f"where nodes find it: tcp:ADDRESS[:PORT] ({PORT}) or unix:PATH; "
        "default: the first instances take all",
    )
    nodes: dict[Short, Node] = Field(min_length=2, max_length=NODES_MAX, description="by name")
    links: dict[Short, Link] = Field(min_length=1, max_length=NODES_MAX, description="by name")
    functions: dict[Short, AnyFunction] = Field({}, description="as in a descriptor")
    chains: dict[Short, Chain] = Field(min_length=1, max_length=4096, description="by name")
    simulation: Simulation = Field(Simulation(), description="of `convoy sim run`")


Document = dict[str, Any]
