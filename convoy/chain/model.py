# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the models of a descriptor share: parameters, names, addresses."""

import ipaddress
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from convoy.base.model import Model, Name, named


class Parameters(Model):
    """Of a network function."""

    def as_plan(self) -> dict[str, Any]:
        """Return them as nf/ reads them: what is not given has its default there."""
        return self.model_dump(exclude_none=True, exclude={"outputs"})


def _mac(text: str) -> str:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", text):
        raise ValueError("must be a MAC address; write it as 02:00:00:00:00:01")
    if int(text[:2], 16) & 1 or not text.strip("0:"):
        raise ValueError("must be a unicast MAC address, not multicast and not zero")
    return text.lower()


def _address(text: str) -> str:
    try:
        if "%" in text:
            raise ValueError
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address") from None


def prefix(text: str) -> str:
    """Return a prefix in its canonical form; a bare address is a host. Raises ValueError."""
    try:
        if "%" in text:
            raise ValueError
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError("must be a prefix such as 10.0.0.0/8 or 2001:db8::/32") from None
    if interface.ip != interface.network.network_address:
        raise ValueError(f"has bits set beyond the prefix length; write {interface.network}")
    return str(interface.network)


ChainName = Annotated[str, *named(18)]  # the plan adds up to 13: web.back.q63.31
Outputs = Annotated[dict[Name, ChainName], Field(max_length=8)]
Text = Annotated[str, Field(min_length=1)]
File = Annotated[str, Field(min_length=1)]  # a path, from the descriptor's folder
Mac = Annotated[str, AfterValidator(_mac), Field(examples=["02:00:00:00:00:01"])]
Address = Annotated[str, AfterValidator(_address), Field(examples=["192.0.2.1"])]
Prefix = Annotated[str, AfterValidator(prefix), Field(examples=["10.0.0.0/8"])]
