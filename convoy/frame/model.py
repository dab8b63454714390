# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a convoy frame is made of, and the numbers of its format."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

PORT = 51966
"""UDP destination port of convoys unless configured: 0xcafe."""
VERSION = 1
ETHERNET = 0
"""Type: the packets are Ethernet frames without FCS."""
COMPRESSED = 1
"""Type: those, compressed as a whole."""
FRAGMENTS = 2
"""Type: those, the first or the one behind the last not whole."""
LZ4 = 1
"""Codec: an LZ4 block."""
MAX_PACKETS = 255
MIN_PACKET = 14
"""Bytes of the shortest embedded packet: an Ethernet header."""
PREFIX = 2
"""Bytes of the length before each packet."""
SOURCE_PORTS = range(49152, 65536)

Mac = Annotated[str, Field(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Uint8 = Annotated[int, Field(ge=0, le=255)]
Uint16 = Annotated[int, Field(ge=0, le=65535)]


class _Model(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")


class Vlan(_Model):
    """A VLAN tag: `tci` is priority (3 bits), drop eligible (1) and VLAN id (12)."""

    type: Literal[0x8100, 0x88A8] = 0x8100
    tci: Uint16 = 0


class Outer(_Model):
    """The outer header of convoys to one next hop."""

    dst_mac: Mac
    src_mac: Mac
    vlans: Annotated[tuple[Vlan, ...], Field(max_length=2)] = ()
    """The outermost tag first."""
    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    tos: Uint8 = 0
    """DSCP and ECN; IPv6's traffic class."""
    ttl: Annotated[int, Field(ge=1, le=255)] = 64
    port: Port = PORT
    source_port: Port | None = None
    """None: a hash of the first packet's flow."""
    mtu: Annotated[int, Field(ge=128, le=65500)] = 1500
    """Bytes of the largest IP packet."""

    @model_validator(mode="after")
    def _one_family(self) -> Self:
        if self.src.version != self.dst.version:
            raise ValueError(f"src {self.src} and dst {self.dst}: must be of one IP version")
        return self

    @property
    def payload_max(self) -> int:
        """Bytes that packets and their lengths may take in one frame."""
        return self.mtu - (20 if self.src.version == 4 else 40) - 8 - 4

    def fits(self, packet: bytes) -> bool:
        """Whether the packet fits into a frame to this next hop at all."""
        return MIN_PACKET <= len(packet) <= self.payload_max - PREFIX


@dataclass(frozen=True)
class Convoy:
    """A frame that was read. The outer MTU is not in a frame: it is the default's."""

    outer: Outer
    nfi: int
    """NFI-ID: the instance of a network function that the packets go to."""
    packets: tuple[bytes, ...]
    """Ethernet frames without FCS, at least one."""
