# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The functions srv6 and srv6-encap of a descriptor."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from convoy.base.model import Model, Name
from convoy.chain.model import Address, Mac
from convoy.chain.parameters import MORE, Srv6EncapParameters, Srv6Parameters
from convoy.chain.rule_match import Match

NEIGHBOUR = ("end-x", "end-dx4", "end-dx6")


def _ipv6(text: str) -> str:
    if ":" not in text:
        raise ValueError("must be an IPv6 address")
    return text


Sid = Annotated[Address, AfterValidator(_ipv6), Field(examples=["2001:db8:a::1"])]


class LocalSid(Model):
    """A segment of the node, and what becomes of packets to it."""

    sid: Sid = Field(description="its address")
    behaviour: Literal[
        "end", "end-x", "end-dx2", "end-dx4", "end-dx6", "end-dt4", "end-dt6", "end-dt46"
    ] = Field("end", description="as RFC 8986 calls it")
    output: Name | None = Field(None, description="where they go; default: the next function")
    mac: Mac | None = Field(None, description="of the neighbour: end-x, end-dx4, end-dx6")
    dev: Name | None = Field(None, description="port that they leave by; default: the chain's")

    @model_validator(mode="after")
    def _neighbour(self) -> "LocalSid":
        if self.behaviour in NEIGHBOUR and self.mac is None:
            raise ValueError(f"{self.behaviour} has no neighbour; add its mac")
        if self.behaviour not in NEIGHBOUR and self.mac is not None:
            raise ValueError(f"{self.behaviour} has no neighbour; remove mac")
        return self


class Srv6(Srv6Parameters):
    """With its segments."""

    sids: list[LocalSid] = Field(min_length=1, max_length=65536, description=MORE["srv6"]["sids"])

    @model_validator(mode="after")
    def _agree(self) -> "Srv6":
        known: set[str] = set()
        for row in self.sids:
            if row.sid in known:
                raise ValueError(f"{row.sid} is there twice; remove one")
            if row.output is not None and row.output not in self.outputs:
                raise ValueError(
                    f"{row.sid}: '{row.output}' is not among the outputs; add it there"
                )
            known.add(row.sid)
        return self


class Srv6Rule(Model):
    """The segments that packets get."""

    match: Match | None = Field(None, description="default, of the last rule: every packet")
    segments: list[Sid] = Field(min_length=1, max_length=16, description="in the order of the path")
    behaviour: Literal["encaps", "encaps-red", "encaps-l2", "encaps-l2-red"] = Field(
        "encaps", description="IP packets or whole frames; with the first segment listed or not"
    )
    hop_limit: int = Field(64, ge=1, le=255, description="of the outer header")
    mac: Mac | None = Field(
        None, description="MAC address of the next hop; default: MAC addresses stay"
    )
    dev: Name | None = Field(None, description="port to it; default: the chain's")


class Srv6Encap(Srv6EncapParameters):
    """With its source and rules."""

    source: Sid = Field(description=MORE["srv6_encap"]["source"])
    rules: list[Srv6Rule] = Field(
        min_length=1, max_length=65536, description=MORE["srv6_encap"]["rules"]
    )

    @model_validator(mode="after")
    def _last(self) -> "Srv6Encap":
        for i, rule in enumerate(self.rules[:-1]):
            if rule.match is None:
                raise ValueError(f"rule {i + 1} has no match; only the last may be without")
        return self
