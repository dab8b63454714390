# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node's standby in a descriptor: where its flows go, or that it waits for another node's."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from convoy.base.model import Model


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        if ":" in host and not host.startswith("["):
            raise ValueError(text)
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(text)
    except ValueError:
        raise ValueError("write ADDRESS:PORT, an IPv6 address in brackets") from None
    return text


Address = Annotated[str, AfterValidator(_address)]


class Standby(Model):
    """Another node that goes on with this one's flows, or that this one goes on for."""

    to: Address | None = Field(
        None,
        description="ADDRESS:PORT of the standby: flows are copied there while the node forwards",
        examples=["192.0.2.12:7413"],
    )
    listen: Address | None = Field(
        None,
        description="ADDRESS:PORT where this node waits as a standby, and forwards nothing until "
        "it takes over",
        examples=["192.0.2.12:7413"],
    )
    key_file: str = Field(
        min_length=1,
        description="file with 64 hexadecimal digits, the same at both nodes, that only its owner "
        "may read",
        examples=["standby.key"],
    )
    take_over_ms: int = Field(
        0,
        ge=0,
        le=3600000,
        description="ms of the active node's silence after which a standby takes over by itself; "
        "0: only when `convoy activate` says so",
    )

    @model_validator(mode="after")
    def _somewhere(self) -> "Standby":
        if self.to is None and self.listen is None:
            raise ValueError("say where the standby is (to), or where this node waits (listen)")
        if self.take_over_ms and self.listen is None:
            raise ValueError("take-over-ms is of a node that waits; add listen, or remove it")
        return self
