# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What rules of functions match: addresses, protocol, ports and other fields of headers."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from convoy.base.model import Model
from convoy.chain.model import Prefix

WITH_PORTS = ("tcp", "udp", "sctp", "dccp", "udplite")
PROTOCOLS = (*WITH_PORTS, "icmp", "icmpv6")
NUMBERS_WITH_PORTS = (6, 17, 33, 132, 136)


def _protocol(value: Any) -> Any:
    if isinstance(value, str) and value not in PROTOCOLS:
        raise ValueError(f"must be {', '.join(PROTOCOLS)} or a number from 0 to 255")
    if isinstance(value, int) and not 0 <= value <= 255:
        raise ValueError("must be from 0 to 255")
    return value


def _range(value: Any, fix: str) -> Any:
    """80, "80", "1000-2000" -> 80, 80, "1000-2000"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(fix)
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?", value)
        if not match:
            raise ValueError(fix)
        low, high = int(match[1]), int(match[2] or match[1])
    else:
        low = high = value
    if not 0 <= low <= 65535 or not 0 <= high <= 65535:
        raise ValueError("must be from 0 to 65535")
    if low > high:
        raise ValueError(f"the range runs backwards; write {high}-{low}")
    return low if low == high else f"{low}-{high}"


def port_range(value: Any) -> Any:
    """Return a port or a range as plans have it. Raises ValueError."""
    return _range(value, 'must be a port or a range; write 80 or "1000-2000"')


def _length_range(value: Any) -> Any:
    return _range(value, 'must be a length or a range; write 64 or "40-1500"')


PortRange = Annotated[int | str, BeforeValidator(port_range), Field(examples=[53, "1000-2000"])]

FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")


def _flags(value: Any) -> Any:
    """Return "syn,!ack" or "0x02/0x12" as it is."""
    fix = 'write flags, "syn,!ack", or VALUE/MASK, "0x02/0x12"'
    if not isinstance(value, str):
        raise ValueError(fix)
    if match := re.fullmatch(r"0x([0-9A-Fa-f]{1,2})/0x([0-9A-Fa-f]{1,2})", value):
        wanted, mask = int(match[1], 16), int(match[2], 16)
        if mask == 0 or wanted & ~mask:
            raise ValueError(f"the value has bits outside of the mask, or none; {fix}")
        return value
    names = [word.removeprefix("!") for word in value.split(",")]
    if len({*names}) != len(names) or not {*names} <= {*FLAGS}:
        raise ValueError(f"{fix} (known are: {' '.join(FLAGS)})")
    return value


def _vlan(value: Any) -> Any:
    is_id = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4095
    if not is_id and value != "none":
        raise ValueError('must be an id from 0 to 4095, or "none" for packets without a tag')
    return value


class Match(Model):
    """The packets that a rule is about. What is not given matches everything."""

    src: Prefix | None = Field(None, description="source address or prefix")
    dst: Prefix | None = Field(None, description="destination address or prefix")
    proto: Annotated[int | str, BeforeValidator(_protocol)] | None = Field(
        None, description=f"{', '.join(PROTOCOLS)}, or a number"
    )
    sport: PortRange | None = Field(None, description="source port or range")
    dport: PortRange | None = Field(None, description="destination port or range")
    tcp_flags: Annotated[str, BeforeValidator(_flags)] | None = Field(
        None, description="of TCP: `syn,!ack` (set, not set), or value and mask: `0x02/0x12`"
    )
    icmp_type: int | None = Field(None, ge=0, le=255, description="of ICMP or ICMPv6")
    icmp_code: int | None = Field(None, ge=0, le=255, description="with `icmp-type`")
    dscp: int | None = Field(None, ge=0, le=63, description="of IPv4 and IPv6")
    length: Annotated[int | str, BeforeValidator(_length_range)] | None = Field(
        None, description="bytes of the IP packet with its header, or a range"
    )
    fragment: Literal["none", "first", "later", "any"] | None = Field(
        None, description="whole packets, first fragments, others, or any fragment"
    )
    vlan: Annotated[int | str, BeforeValidator(_vlan)] | None = Field(
        None, description="id of the outermost tag; `none`: untagged"
    )
    name: str | None = Field(
        None, min_length=1, max_length=63, description="shown with the rule's hit counter"
    )

    def asks_fields(self) -> bool:
        """Return whether it asks for more than the 5-tuple."""
        fields = (self.tcp_flags, self.icmp_type, self.dscp, self.length, self.fragment, self.vlan)
        return any(value is not None for value in fields)

    @model_validator(mode="after")
    def _agree_on_layer_4(self) -> "Match":
        if self.tcp_flags is not None and self.proto not in ("tcp", 6):
            raise ValueError("tcp-flags needs proto: tcp; write it")
        if self.icmp_code is not None and self.icmp_type is None:
            raise ValueError("icmp-code needs icmp-type; add it")
        if self.icmp_type is not None and self.proto not in ("icmp", "icmpv6", 1, 58):
            raise ValueError("icmp-type needs proto: icmp or icmpv6; write it")
        layer_4 = (self.sport, self.dport, self.tcp_flags, self.icmp_type)
        if self.fragment == "later" and any(value is not None for value in layer_4):
            raise ValueError("fragment: later has no ports, TCP flags or ICMP type; leave them out")
        return self

    @model_validator(mode="after")
    def _agree(self) -> "Match":
        if self.src and self.dst and (":" in self.src) != (":" in self.dst):
            raise ValueError("src and dst must both be IPv4 or both be IPv6")
        has_ports = self.proto is None or self.proto in (*WITH_PORTS, *NUMBERS_WITH_PORTS)
        if not has_ports and (self.sport is not None or self.dport is not None):
            raise ValueError(
                f"sport and dport need a protocol with ports; use one of {', '.join(WITH_PORTS)}"
            )
        return self
