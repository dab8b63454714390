# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The functions nsh and nsh-encap of a descriptor."""

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, model_validator

from convoy.base.model import Model, Name
from convoy.chain.model import Address, Mac
from convoy.chain.parameters import MORE, NshEncapParameters, NshParameters
from convoy.chain.rule_match import Match

Path = Annotated[int, Field(ge=0, le=0xFFFFFF)]
Hexadecimal = Annotated[str, Field(pattern=r"^(?:[0-9A-Fa-f]{2})+$", examples=["c0ffee00"])]
HEADER_MAX_BYTES = 252


class VxlanGpe(Model):
    """A tunnel to the next hop."""

    src: Address = Field(description="source address")
    dst: Address = Field(description="destination address")
    vni: int = Field(ge=0, le=0xFFFFFF, description="network id")

    @model_validator(mode="after")
    def _family(self) -> "VxlanGpe":
        if ipaddress.ip_address(self.src).version != ipaddress.ip_address(self.dst).version:
            raise ValueError("src and dst must both be IPv4 or both be IPv6")
        return self


class ServicePath(Model):
    """What becomes of packets of a service path that have this index."""

    path: Path = Field(description="service path identifier")
    index: int = Field(ge=0, le=255, description="service index")
    action: Literal["forward", "proxy", "decapsulate"] = Field(
        "forward", description="to a next hop; to functions that see what is inside; its end"
    )
    output: Name | None = Field(None, description="where they go; default: the next function")
    mac: Mac | None = Field(None, description="forward: MAC address of the next hop")
    dev: Name | None = Field(None, description="forward: port to it; default: the chain's")
    vxlan_gpe: VxlanGpe | None = Field(
        None, description="forward: tunnel to it; default: NSH behind Ethernet"
    )

    @model_validator(mode="after")
    def _has_next_hop(self) -> "ServicePath":
        if self.action == "forward" and self.mac is None:
            raise ValueError("has no next hop; add its mac")
        if self.action != "forward" and (self.mac or self.dev or self.vxlan_gpe):
            raise ValueError(f"action {self.action} has no next hop; remove mac, dev, vxlan-gpe")
        return self


class Nsh(NshParameters):
    """With its service paths."""

    paths: list[ServicePath] = Field(
        min_length=1, max_length=65536, description=MORE["nsh"]["paths"]
    )

    @model_validator(mode="after")
    def _agree(self) -> "Nsh":
        known: set[tuple[int, int]] = set()
        for row in self.paths:
            if (row.path, row.index) in known:
                raise ValueError(
                    f"path {row.path} with index {row.index} is there twice; remove one"
                )
            if row.output is not None and row.output not in self.outputs:
                raise ValueError(
                    f"path {row.path}: '{row.output}' is not among the outputs; add it there"
                )
            known.add((row.path, row.index))
        return self


class Tlv(Model):
    """A piece of metadata (RFC 8300 section 2.5.1)."""

    metadata_class: int = Field(ge=0, le=65535, description="who defines the types")
    type: int = Field(ge=0, le=255, description="of that class")
    value: Hexadecimal | None = Field(None, max_length=254, description="default: empty")


class NshRule(Model):
    """The header that packets get."""

    match: Match | None = Field(None, description="default, of the last rule: every packet")
    path: Path = Field(description="service path identifier")
    index: int = Field(255, ge=1, le=255, description="service index")
    ttl: int = Field(63, ge=1, le=63, description="service function forwarders it may pass")
    context: Hexadecimal | None = Field(
        None, min_length=32, max_length=32, description="metadata of type 1; default: zero"
    )
    tlvs: list[Tlv] | None = Field(None, description="metadata of type 2, in place of type 1")
    mac: Mac = Field(description="MAC address of the next hop")
    dev: Name | None = Field(None, description="port to it; default: the chain's")
    vxlan_gpe: VxlanGpe | None = Field(
        None, description="tunnel to it; default: NSH behind Ethernet"
    )

    @model_validator(mode="after")
    def _metadata(self) -> "NshRule":
        if self.context is not None and self.tlvs is not None:
            raise ValueError("context and tlvs exclude each other; remove one")
        sizes = [len(tlv.value or "") // 2 for tlv in self.tlvs or ()]
        if 8 + sum(4 + (size + 3) // 4 * 4 for size in sizes) > HEADER_MAX_BYTES:
            raise ValueError(f"the header has more than {HEADER_MAX_BYTES} bytes; remove tlvs")
        return self


class NshEncap(NshEncapParameters):
    """With its rules."""

    rules: list[NshRule] = Field(
        min_length=1, max_length=65536, description=MORE["nsh_encap"]["rules"]
    )

    @model_validator(mode="after")
    def _last(self) -> "NshEncap":
        for i, rule in enumerate(self.rules[:-1]):
            if rule.match is None:
                raise ValueError(f"rule {i + 1} has no match; only the last may be without")
        return self
