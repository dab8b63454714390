# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The function nat64 of a descriptor."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from convoy.base.model import Model
from convoy.chain.model import Address, Prefix
from convoy.chain.parameters import MORE, Nat64Parameters

LENGTHS = (32, 40, 48, 56, 64, 96)


def _ipv4(text: str) -> str:
    if ":" in text:
        raise ValueError("must be IPv4")
    return text


def _ipv6(text: str) -> str:
    if ":" not in text:
        raise ValueError("must be IPv6")
    return text


def _translation_prefix(text: str) -> str:
    network = ipaddress.ip_network(_ipv6(text))
    if network.prefixlen not in LENGTHS or network.network_address.packed[8] != 0:
        raise ValueError(
            "must have 32, 40, 48, 56, 64 or 96 bits, and zeros from bit 64 to 71 (RFC 6052)"
        )
    return text


def _node(text: str) -> str:
    address = ipaddress.ip_address(text)
    if (
        address.is_multicast
        or address.is_loopback
        or address.is_unspecified
        or (address.version == 6 and address.is_link_local)
        or (address.version == 4 and address.packed[0] in (0, *range(224, 256)))
    ):
        raise ValueError("must be an address of the node")
    return text


Ipv4Prefix = Annotated[Prefix, AfterValidator(_ipv4), Field(examples=["192.0.2.0/24"])]
Ipv6Prefix = Annotated[Prefix, AfterValidator(_ipv6), Field(examples=["2001:db8:a::/120"])]
TranslationPrefix = Annotated[
    Prefix, AfterValidator(_translation_prefix), Field(examples=["64:ff9b::/96"])
]
NodeIpv4 = Annotated[Address, AfterValidator(_ipv4), AfterValidator(_node)]
NodeIpv6 = Annotated[Address, AfterValidator(_ipv6), AfterValidator(_node)]


def _clients(text: str) -> str:
    if not 12 <= ipaddress.ip_network(text).prefixlen <= 30:
        raise ValueError("must have from 12 to 30 bits")
    return text


Clients = Annotated[
    Prefix, AfterValidator(_ipv4), AfterValidator(_clients), Field(examples=["100.64.0.0/16"])
]


class Mapping(Model):
    """IPv4 addresses, and the IPv6 addresses that stand for them."""

    ipv4: Ipv4Prefix = Field(description="of the IPv6 hosts, as IPv4 hosts see them")
    ipv6: Ipv6Prefix = Field(description="theirs; as long as ipv4 and 96 bits at most")

    @model_validator(mode="after")
    def _fits(self) -> "Mapping":
        ipv4, ipv6 = (ipaddress.ip_network(text) for text in (self.ipv4, self.ipv6))
        if 32 - ipv4.prefixlen > 128 - ipv6.prefixlen:
            raise ValueError(
                f"{self.ipv6} has fewer addresses than {self.ipv4}; its length may be "
                f"{96 + ipv4.prefixlen} at most"
            )
        return self


class Nat64(Nat64Parameters):
    """With its prefix, its mappings and its own addresses."""

    prefix: TranslationPrefix | None = Field(None, description=MORE["nat64"]["prefix"])
    hosts: list[Ipv4Prefix] = Field([], max_length=65536, description=MORE["nat64"]["hosts"])
    eam: list[Mapping] = Field([], max_length=65536, description=MORE["nat64"]["eam"])
    clients: Clients | None = Field(None, description=MORE["nat64"]["clients"])
    source: NodeIpv4 = Field(description=MORE["nat64"]["source"])
    source_ipv6: NodeIpv6 = Field(description=MORE["nat64"]["source_ipv6"])

    @model_validator(mode="after")
    def _agree(self) -> "Nat64":
        if self.prefix is None and self.hosts:
            raise ValueError("hosts: there is no prefix; add prefix, or remove hosts")
        if self.prefix is None and self.clients is not None:
            raise ValueError("clients: there is no prefix that they could send to; add prefix")
        if self.prefix is None and not self.eam:
            raise ValueError("translates nothing; add prefix or eam")
        ipv4 = [*self.hosts, *(row.ipv4 for row in self.eam)]
        for texts in (ipv4, [row.ipv6 for row in self.eam]):
            known: set[str] = set()
            for text in texts:
                if text in known:
                    raise ValueError(f"{text} is there twice; remove one")
                known.add(text)
        return self
