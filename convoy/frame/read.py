# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""From a frame's bytes to its packets, or to the reason why it is refused."""

import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from convoy.frame.checksum import checksum
from convoy.frame.expand import expand
from convoy.frame.model import (
    COMPRESSED,
    ETHERNET,
    MIN_PACKET,
    PORT,
    PREFIX,
    VERSION,
    Convoy,
    Outer,
    Vlan,
)
from convoy.frame.reason import FrameError, NotAConvoyError, Reason

_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17


class _Ip(NamedTuple):
    """An IP header before UDP: its length, that of the whole packet, and what Outer wants."""

    header: int
    length: int
    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    tos: int
    ttl: int


def decode(frame: bytes, port: int = PORT, dictionaries: Sequence[bytes] | None = None) -> Convoy:
    """Return what is in a frame; `port` is the UDP destination port of convoys.

    dictionaries: compressed frames are expanded, with one of these (b"": without). None: they are
    refused.

    Raises NotAConvoyError for an ordinary frame, FrameError for a convoy that is refused. The
    checks, and their order, are those of the specification. A packet in two frames needs both:
    convoy.frame.fragments.
    """
    outer, payload = payload_of(frame, port)
    nfi, packets = _convoy(payload, dictionaries)
    return Convoy(outer, nfi, packets)


def payload_of(frame: bytes, port: int = PORT) -> tuple[Outer, bytes]:
    """Return what is before the convoy header, and all from there on. Raises FrameError."""
    vlans, ethertype, l3 = _ethernet(frame)
    packet = frame[l3:]
    if ethertype == _IPV4:
        ip = _ipv4(packet, port)
    elif ethertype == _IPV6:
        ip = _ipv6(packet, port)
    else:
        raise NotAConvoyError(f"EtherType {ethertype:#06x} is not IP")
    source_port, payload = _udp(packet, ip)
    outer = Outer.model_construct(  # every field was read from as many bits as it may have
        dst_mac=frame[:6].hex(":"),
        src_mac=frame[6:12].hex(":"),
        vlans=vlans,
        src=ip.src,
        dst=ip.dst,
        tos=ip.tos,
        ttl=ip.ttl,
        port=port,
        source_port=source_port,
    )
    return outer, payload


def may_be_convoy(frame: bytes, port: int = PORT) -> bool:
    """Return whether a receiver takes the frame for a convoy, be it a good or a refused one."""
    try:
        decode(frame, port)
    except NotAConvoyError:
        return False
    except FrameError:
        return True
    return True


def _ethernet(frame: bytes) -> tuple[tuple[Vlan, ...], int, int]:
    """Return the tags, the EtherType behind them, and the offset of what follows."""
    if len(frame) < 14:
        raise NotAConvoyError(f"{len(frame)} bytes are no Ethernet header")
    vlans: list[Vlan] = []
    at = 14
    ethertype = int.from_bytes(frame[12:14], "big")
    while ethertype in (0x8100, 0x88A8) and len(vlans) < 2:
        if len(frame) < at + 4:
            raise NotAConvoyError("ends in a VLAN tag")
        tci, behind = struct.unpack_from("!HH", frame, at)
        vlans.append(Vlan(type=0x8100 if ethertype == 0x8100 else 0x88A8, tci=tci))
        ethertype = behind
        at += 4
    return tuple(vlans), ethertype, at


def _ipv4(packet: bytes, port: int) -> _Ip:
    if len(packet) < 28:
        raise NotAConvoyError("ends before the UDP header does")
    first, tos, length, _, fragment, ttl, proto, _, src, dst = struct.unpack_from(
        "!BBHHHBBHII", packet
    )
    if first != 0x45 or proto != _UDP or fragment & 0x1FFF:
        raise NotAConvoyError("not an IPv4 header without options before a UDP header")
    _to_port(packet, 20, port)
    if fragment & 0x2000:
        raise FrameError(Reason.FRAGMENTED, "the first fragment of a packet")
    if checksum(packet[:20]) != 0:
        raise FrameError(Reason.BAD_CHECKSUM, f"IPv4 header {packet[:20].hex()}")
    return _Ip(20, length, IPv4Address(src), IPv4Address(dst), tos, ttl)


def _ipv6(packet: bytes, port: int) -> _Ip:
    if len(packet) < 48:
        raise NotAConvoyError("ends before the UDP header does")
    first, length, proto, ttl = struct.unpack_from("!IHBB", packet)
    if first >> 28 != 6 or proto != _UDP:
        raise NotAConvoyError("not an IPv6 header before a UDP header")
    _to_port(packet, 40, port)
    src, dst = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    return _Ip(40, 40 + length, src, dst, first >> 20 & 0xFF, ttl)


def _to_port(packet: bytes, udp: int, port: int) -> None:
    actual = int.from_bytes(packet[udp + 2 : udp + 4], "big")
    if actual != port:
        raise NotAConvoyError(f"to UDP port {actual}, not {port}")


def _udp(packet: bytes, ip: _Ip) -> tuple[int, bytes]:
    """Return the source port and the payload."""
    if ip.length < ip.header + 12:
        raise FrameError(Reason.BAD_LENGTH, f"an IP packet of {ip.length} bytes has no room")
    if ip.length > len(packet):
        raise FrameError(
            Reason.TRUNCATED, f"{len(packet)} bytes of an IP packet of {ip.length} are there"
        )
    if ip.length < len(packet):
        raise FrameError(
            Reason.TRAILING_BYTES, f"{len(packet) - ip.length} bytes behind the IP packet"
        )
    source_port, _, length, _ = struct.unpack_from("!HHHH", packet, ip.header)
    if length != ip.length - ip.header:
        raise FrameError(Reason.BAD_LENGTH, f"UDP says {length} bytes, IP {ip.length - ip.header}")
    return source_port, packet[ip.header + 8 :]


def _convoy(payload: bytes, dictionaries: Sequence[bytes] | None) -> tuple[int, tuple[bytes, ...]]:
    """Return the NFI-ID and the packets of a payload of at least 4 bytes."""
    first, count, nfi = struct.unpack_from("!BBH", payload)
    if first >> 4 != VERSION:
        raise FrameError(Reason.BAD_VERSION, f"{first >> 4}, must be {VERSION}")
    compressed = dictionaries is not None and first & 15 == COMPRESSED
    if first & 15 != ETHERNET and not compressed:
        raise FrameError(Reason.BAD_TYPE, f"{first & 15}, must be {ETHERNET}")
    if count == 0:
        raise FrameError(Reason.BAD_COUNT, "0 packets")
    if dictionaries is not None and compressed:
        payload = payload[:4] + expand(payload[4:], dictionaries)
    packets: list[bytes] = []
    at = 4
    for number in range(1, count + 1):
        if len(payload) - at < PREFIX:
            raise FrameError(Reason.BAD_COUNT, f"{count} packets counted, {number - 1} there")
        length = int.from_bytes(payload[at : at + PREFIX], "big")
        at += PREFIX
        if length < MIN_PACKET:
            raise FrameError(Reason.RUNT_PACKET, f"packet {number} has {length} bytes")
        if length > len(payload) - at:
            raise FrameError(
                Reason.BAD_LENGTH,
                f"packet {number} has {length} bytes, {len(payload) - at} are there",
            )
        packets.append(payload[at : at + length])
        at += length
    if at != len(payload):
        raise FrameError(Reason.TRAILING_BYTES, f"{len(payload) - at} bytes behind packet {count}")
    return nfi, tuple(packets)
