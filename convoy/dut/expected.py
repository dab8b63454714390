# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What must come out of a chain when a frame goes in: the functions' meanings, packet by packet.

Written for being right and read, for Ethernet frames with whole IPv4 packets in them. It shares no
code with any device.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from convoy.chain.meaning import Firewall, Layer2, Meaning, Router
from convoy.dut.addresses import RIGHT_MAC
from convoy.frame.checksum import checksum

IPV4, TCP, UDP, ICMP = 0x0800, 6, 17, 1
ETHER_BYTES, IP_BYTES = 14, 20


def mac(text: str) -> bytes:
    """Return an address's six bytes."""
    return bytes.fromhex(text.replace(":", ""))


@dataclass(frozen=True)
class Fields:
    """What rules and routes look at."""

    src: IPv4Address
    dst: IPv4Address
    proto: int
    sport: int | None  # None: a protocol without ports
    dport: int | None


def fields(frame: bytes) -> Fields | None:
    """Return them, or None: not IPv4."""
    if struct.unpack_from(">H", frame, 12)[0] != IPV4:
        return None
    proto = frame[ETHER_BYTES + 9]
    src, dst = (IPv4Address(frame[at : at + 4]) for at in (ETHER_BYTES + 12, ETHER_BYTES + 16))
    at = ETHER_BYTES + (frame[ETHER_BYTES] & 15) * 4
    if proto not in (TCP, UDP):
        return Fields(src, dst, proto, None, None)
    return Fields(src, dst, proto, *struct.unpack_from(">HH", frame, at))


def allowed(firewall: Firewall, packet: Fields) -> bool:
    """Return whether the first rule that matches allows a packet, or else the default does."""
    for rule in firewall.rules:
        if rule.src is not None and packet.src not in rule.src:
            continue
        if rule.dst is not None and packet.dst not in rule.dst:
            continue
        if rule.proto is not None and packet.proto != rule.proto:
            continue
        ports = ((rule.sport, packet.sport), (rule.dport, packet.dport))
        if all(r is None or (p is not None and r[0] <= p <= r[1]) for r, p in ports):
            return rule.allow
    return firewall.default_allow


def routed(router: Router, frame: bytes) -> bytes | None:
    """Return a frame as a router sends it on, or None: no route, or its TTL has ended."""
    packet = fields(frame)
    if packet is None:
        return None
    matching = [route for route in router.routes if packet.dst in route.prefix]
    ttl = frame[ETHER_BYTES + 8]
    if not matching or ttl <= 1:
        return None
    route = max(matching, key=lambda each: each.prefix.prefixlen)
    header = bytearray(frame[ETHER_BYTES : ETHER_BYTES + IP_BYTES])
    header[8] = ttl - 1
    header[10:12] = b"\0\0"
    header[10:12] = struct.pack(">H", checksum(bytes(header)))
    rest = frame[ETHER_BYTES + IP_BYTES :]
    return mac(route.mac) + mac(RIGHT_MAC) + frame[12:14] + bytes(header) + rest


def forwarded(layer2: Layer2, frame: bytes) -> bytes:
    """Return a frame as a layer 2 function sends it on."""
    if layer2.swap:
        return frame[6:12] + frame[:6] + frame[12:]
    dst = mac(layer2.dst) if layer2.dst else frame[:6]
    src = mac(layer2.src) if layer2.src else frame[6:12]
    return dst + src + frame[12:]


def expected(chain: Sequence[Meaning], frame: bytes) -> bytes | None:
    """Return what comes out of a chain, or None: nothing. For functions without state."""
    now: bytes | None = frame
    for meaning in chain:
        if now is None:
            return None
        if isinstance(meaning, Firewall):
            packet = fields(now)
            now = now if packet is None or allowed(meaning, packet) else None
        elif isinstance(meaning, Router):
            now = routed(meaning, now)
        elif isinstance(meaning, Layer2):
            now = forwarded(meaning, now)
        else:
            raise TypeError(f"{meaning}: a function with state")
    return now
