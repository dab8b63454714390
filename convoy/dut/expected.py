# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What must come out of a chain when a frame goes in: the functions' meanings, packet by packet.

Written for being right and read, for Ethernet frames with whole IPv4 packets in them. It shares no
code with any device.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from convoy.chain.meaning import (
    Balancer,
    Firewall,
    Layer2,
    Meaning,
    Policer,
    Router,
    Translator,
    Tunnel,
)
from convoy.dut.addresses import RIGHT_MAC
from convoy.frame.checksum import checksum

IPV4, IPV6, TCP, UDP, ICMP, ICMPV6 = 0x0800, 0x86DD, 6, 17, 1, 58
ETHER_BYTES, IP_BYTES, IPV6_BYTES = 14, 20, 40
CHECKSUM_AT = {TCP: 16, UDP: 6, ICMP: 2, ICMPV6: 2}
ECHO = {8: 128, 0: 129}  # types of ICMP and ICMPv6
# That a translator takes: one itself, or also the routers that a kernel has before and behind it.
HOPS = (1, 2, 3)


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


def _with_ttl(frame: bytes, ttl: int) -> bytes:
    """Return an IPv4 frame with another TTL, and its checksum right."""
    header = bytearray(frame[ETHER_BYTES : ETHER_BYTES + IP_BYTES])
    header[8] = ttl
    header[10:12] = b"\0\0"
    header[10:12] = struct.pack(">H", checksum(bytes(header)))
    return frame[:ETHER_BYTES] + bytes(header) + frame[ETHER_BYTES + IP_BYTES :]


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
    return mac(route.mac) + mac(RIGHT_MAC) + _with_ttl(frame, ttl - 1)[12:]


def forwarded(layer2: Layer2, frame: bytes) -> bytes:
    """Return a frame as a layer 2 function sends it on."""
    if layer2.swap:
        return frame[6:12] + frame[:6] + frame[12:]
    dst = mac(layer2.dst) if layer2.dst else frame[:6]
    src = mac(layer2.src) if layer2.src else frame[6:12]
    return dst + src + frame[12:]


def balanced(balancer: Balancer, frame: bytes) -> tuple[bytes, ...]:
    """Return a frame as it may leave a balancer: to any backend, or as it came."""
    packet = fields(frame)
    if packet is None or packet.dst not in balancer.services:
        return (frame,)
    return tuple(mac(backend) + frame[6:] for backend in balancer.macs)


def _six(translator: Translator, address: IPv4Address) -> IPv6Address | None:
    for four, six in translator.rows:
        if address in four:
            return six[int(address) - int(four[0])]
    return None


def _four(translator: Translator, address: IPv6Address) -> IPv4Address | None:
    for four, six in translator.rows:
        if address in six:
            return four[int(address) - int(six[0])]
    return None


def _upper(proto: int, src: bytes, dst: bytes, data: bytes) -> bytes:
    """Return what is behind an IP header, with its checksum right."""
    at = CHECKSUM_AT[proto]
    data = data[:at] + b"\0\0" + data[at + 2 :]
    pseudo = b"" if proto == ICMP else src + dst + struct.pack(">II", len(data), proto)
    value = checksum(pseudo + data + b"\0" * (len(data) % 2))
    return data[:at] + struct.pack(">H", value or 0xFFFF) + data[at + 2 :]


def translated(translator: Translator, frame: bytes) -> tuple[bytes, ...]:
    """Return a frame in the other IP version, by how many hops were taken from it; none: they
    ended. What the identification of IPv4 is nobody says: 0 here.
    """
    (kind,) = struct.unpack_from(">H", frame, 12)
    ip = frame[ETHER_BYTES:]
    result = []
    if kind == IPV4:
        src, dst = (_six(translator, IPv4Address(ip[at : at + 4])) for at in (12, 16))
        if src is None or dst is None:
            return (frame,)
        proto, data = ip[9], ip[IP_BYTES : struct.unpack_from(">H", ip, 2)[0]]
        if proto == ICMP:
            proto, data = ICMPV6, bytes([ECHO[data[0]]]) + data[1:]
        data = _upper(proto, src.packed, dst.packed, data)
        for hops in HOPS:
            if ip[8] > hops:
                first = 6 << 28 | ip[1] << 20
                head = struct.pack(">HIHBB", IPV6, first, len(data), proto, ip[8] - hops)
                result.append(frame[:12] + head + src.packed + dst.packed + data)
        return tuple(result)
    source, destination = (_four(translator, IPv6Address(ip[at : at + 16])) for at in (8, 24))
    if kind != IPV6 or source is None or destination is None:
        return (frame,)
    proto, data = ip[6], ip[IPV6_BYTES:]
    if proto == ICMPV6:
        proto, data = ICMP, bytes([{six: four for four, six in ECHO.items()}[data[0]]]) + data[1:]
    data = _upper(proto, source.packed, destination.packed, data)
    traffic_class = struct.unpack_from(">I", ip)[0] >> 20 & 255
    length = IP_BYTES + len(data)
    head = struct.pack(">BBHIBBH", 0x45, traffic_class, length, 0, 0, proto, 0)
    made = frame[:12] + struct.pack(">H", IPV4) + head + source.packed + destination.packed + data
    return tuple(_with_ttl(made, ip[7] - hops) for hops in HOPS if ip[7] > hops)


def tunnelled(tunnel: Tunnel, frame: bytes) -> tuple[bytes, ...]:
    """Return the packet that is inside, by how many hops were taken from it: one where it was
    sealed, and one more where a router opened it.
    """
    packet = fields(frame)
    ttl = frame[ETHER_BYTES + 8]
    if packet is None:
        return (frame,)
    if tunnel.opens:
        return tuple(_with_ttl(frame, ttl - hops) for hops in (0, 1) if ttl > hops)
    return (_with_ttl(frame, ttl - 1),) if packet.dst in tunnel.match and ttl > 1 else ()


def _through(meaning: Meaning, frame: bytes) -> tuple[bytes, ...]:
    if isinstance(meaning, Firewall):
        packet = fields(frame)
        return (frame,) if packet is None or allowed(meaning, packet) else ()
    if isinstance(meaning, Router):
        out = routed(meaning, frame)
        return () if out is None else (out,)
    if isinstance(meaning, Layer2):
        return (forwarded(meaning, frame),)
    if isinstance(meaning, Balancer):
        return balanced(meaning, frame)
    if isinstance(meaning, Policer):
        return (frame,)  # there are fewer than its rate
    if isinstance(meaning, Translator):
        return translated(meaning, frame)
    if isinstance(meaning, Tunnel):
        return tunnelled(meaning, frame)
    raise TypeError(f"{meaning}: a function with state")


def expected(chain: Sequence[Meaning], frame: bytes) -> tuple[bytes, ...]:
    """Return what may come out of a chain: one of these frames, or none: nothing may.

    For functions that remember nothing. Of a tunnel it is what is inside.
    """
    now: tuple[bytes, ...] = (frame,)
    for meaning in chain:
        now = tuple(dict.fromkeys(out for each in now for out in _through(meaning, each)))
    return now
