# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""From packets to frames."""

import struct
import zlib
from collections.abc import Iterable, Sequence

from convoy.errors import InputError
from convoy.frame.checksum import checksum
from convoy.frame.model import (
    ETHERNET,
    MAX_PACKETS,
    MIN_PACKET,
    PREFIX,
    SOURCE_PORTS,
    VERSION,
    Outer,
)
from convoy.frame.read import may_be_convoy


def encode(packets: Sequence[bytes], outer: Outer, nfi: int) -> bytes:
    """Return one frame with all packets: Ethernet frames without FCS, 1 to 255 of them.

    nfi is the NFI-ID, 0 to 65535. Raises InputError where no frame can hold them; a
    single packet is allowed, though a sender leaves most of those unaggregated.
    """
    if not 1 <= len(packets) <= MAX_PACKETS:
        raise InputError(f"{len(packets)} packets: a frame holds 1 to {MAX_PACKETS}")
    if not 0 <= nfi <= 0xFFFF:
        raise InputError(f"NFI-ID {nfi}: must be from 0 to 65535")
    for number, packet in enumerate(packets, 1):
        if len(packet) < MIN_PACKET:
            raise InputError(f"packet {number}: {len(packet)} bytes: must be at least {MIN_PACKET}")
    size = sum(PREFIX + len(packet) for packet in packets)
    if size > outer.payload_max:
        raise InputError(
            f"{len(packets)} packets take {size} bytes: an MTU of {outer.mtu} leaves "
            f"{outer.payload_max}"
        )
    embedded = b"".join(struct.pack("!H", len(packet)) + packet for packet in packets)
    header = struct.pack("!BBH", VERSION << 4 | ETHERNET, len(packets), nfi)
    return _outer(outer, packets[0], header + embedded)


def pack(packets: Iterable[bytes], outer: Outer, nfi: int) -> list[bytes]:
    """Return what a sender makes of packets that wait together, in their order.

    Each frame takes as many as fit. A single packet that is left, or one that fits into no frame,
    is sent unaggregated. One that the next hop would take for a convoy is not: if it is single it
    is sent in a frame, and where it fits into none it is dropped.
    """
    sent: list[bytes] = []
    group: list[bytes] = []
    size = 0

    def flush() -> None:
        nonlocal size
        if group:
            alone = len(group) == 1 and not may_be_convoy(group[0], outer.port)
            sent.append(group[0] if alone else encode(group, outer, nfi))
        group.clear()
        size = 0

    for packet in packets:
        if not outer.fits(packet):
            flush()
            if not may_be_convoy(packet, outer.port):
                sent.append(packet)
            continue
        if size + PREFIX + len(packet) > outer.payload_max or len(group) == MAX_PACKETS:
            flush()
        group.append(packet)
        size += PREFIX + len(packet)
    flush()
    return sent


def _outer(outer: Outer, first: bytes, payload: bytes) -> bytes:
    tags = b"".join(struct.pack("!HH", tag.type, tag.tci) for tag in outer.vlans)
    macs = bytes.fromhex((outer.dst_mac + outer.src_mac).replace(":", ""))
    source_port = _flow_port(first) if outer.source_port is None else outer.source_port
    # Without UDP checksum: RFC 768 for IPv4, RFC 6935 for a tunnel over IPv6.
    udp = struct.pack("!HHHH", source_port, outer.port, 8 + len(payload), 0) + payload
    ends = outer.src.packed + outer.dst.packed
    if outer.src.version == 6:
        version = 6 << 28 | outer.tos << 20
        ip = struct.pack("!IHBB", version, len(udp), 17, outer.ttl) + ends
        return macs + tags + b"\x86\xdd" + ip + udp
    fields = (0x45, outer.tos, 20 + len(udp), 0, 0x4000, outer.ttl, 17)
    total = checksum(struct.pack("!BBHHHBBH", *fields, 0) + ends)
    ip = struct.pack("!BBHHHBBH", *fields, total) + ends
    return macs + tags + b"\x08\x00" + ip + udp


def _flow_port(packet: bytes) -> int:
    """A port by the flow, which for this purpose is what its addresses and ports usually are.

    An IPv4 or IPv6 packet without options or tags: addresses and ports; any other: its MAC
    addresses. Which port it is says nothing to the receiver.
    """
    ethertype = packet[12:14]
    if ethertype == b"\x08\x00" and packet[14:15] == b"\x45":
        fragment = int.from_bytes(packet[20:22], "big") & 0x3FFF
        flow = packet[23:24] + packet[26 : 34 if fragment else 38]
    elif ethertype == b"\x86\xdd":
        flow = packet[20:21] + packet[22:58]
    else:
        flow = packet[:12]
    return SOURCE_PORTS[zlib.crc32(flow) % len(SOURCE_PORTS)]
