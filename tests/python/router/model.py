# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A router written straight from RFC 791, 1812, 4291 and 8200, as slow and plain as can be.

It shares nothing with the C code but the text of docs/functions.md.
"""

import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

IPV4, IPV6 = 0x0800, 0x86DD
TAGS = (0x8100, 0x88A8)
PREFIX_BITS = {4: 32, 6: 128}


@dataclass(frozen=True)
class Route:
    """A prefix, and where its packets go; neither via nor dev: they are dropped."""

    prefix: str
    dev: str | None = None
    via: str | None = None

    def line(self) -> str:
        """Return it as `ip route` prints it."""
        if self.dev is None:
            return f"blackhole {self.prefix}"
        via = f" via {self.via}" if self.via else ""
        return f"{self.prefix}{via} dev {self.dev}"


@dataclass
class Setup:
    """Routes, neighbours and ports of a router."""

    ports: dict[str, str]  # MAC addresses by name
    routes: list[Route] = field(default_factory=list)
    neighbours: dict[str, str] = field(default_factory=dict)  # MAC addresses by IP address

    def find(self, address: IPv4Address | IPv6Address) -> Route | None:
        """Return the route with the longest prefix that has the address."""
        if not hasattr(self, "_table"):
            self._table: dict[tuple[int, int], dict[int, Route]] = {}
            for route in self.routes:
                net = ip_network(route.prefix)
                key = (net.version, net.prefixlen)
                self._table.setdefault(key, {})[int(net.network_address)] = route
        bits = PREFIX_BITS[address.version]
        for length in range(bits, -1, -1):
            masked = int(address) >> (bits - length) << (bits - length)
            route = self._table.get((address.version, length), {}).get(masked)
            if route is not None:
                return route
        return None


@dataclass(frozen=True)
class Sent:
    """A packet that leaves."""

    port: str
    frame: bytes


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def layer3(frame: bytes) -> tuple[int, int]:
    """Return the EtherType behind up to two tags and where what it names begins; 0: cut."""
    at = 12
    for tags in range(3):
        if len(frame) < at + 2:
            return 0, len(frame)
        (kind,) = struct.unpack_from(">H", frame, at)
        if kind not in TAGS or tags == 2:
            return kind, at + 2
        if len(frame) < at + 6:
            return 0, len(frame)
        at += 4
    raise AssertionError


def _sum_ok(header: bytes) -> bool:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def _checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _is_martian4(address: IPv4Address) -> bool:
    first = int(address) >> 24
    return first in (0, 127) or first >= 224


def _is_martian6(address: IPv6Address) -> bool:
    return (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address in IPv6Network("fe80::/10")
    )


def route(setup: Setup, frame: bytes) -> Sent | str:
    """Return what becomes of a frame: where it goes and how, or why it is dropped."""
    kind, at = layer3(frame)
    packet = frame[at:]
    if kind == IPV4:
        validated = _validate4(packet)
    elif kind == IPV6:
        validated = _validate6(packet)
    else:
        return "not_ip"
    if validated == "bad_header":
        return validated
    if frame[0] & 1:
        return "multicast"
    if isinstance(validated, str):
        return validated
    result = setup.find(validated)
    if result is None or result.dev is None:
        return "no_route"
    mac = setup.neighbours.get(result.via or str(validated))
    if mac is None:
        return "no_neighbour"
    changed = bytearray(frame)
    changed[0:12] = _mac(mac) + _mac(setup.ports[result.dev])
    if kind == IPV6:
        changed[at + 7] -= 1
    else:
        changed[at + 8] -= 1
        changed[at + 10 : at + 12] = bytes(2)
        header = bytes(changed[at : at + (packet[0] & 15) * 4])
        struct.pack_into(">H", changed, at + 10, _checksum(header))
    return Sent(result.dev, bytes(changed))


def _validate4(packet: bytes) -> IPv4Address | str:
    if len(packet) < 20:
        return "bad_header"
    size = (packet[0] & 15) * 4
    (total,) = struct.unpack_from(">H", packet, 2)
    if packet[0] >> 4 != 4 or size < 20 or not size <= total <= len(packet):
        return "bad_header"
    if not _sum_ok(packet[:size]):
        return "bad_header"
    source, destination = IPv4Address(packet[12:16]), IPv4Address(packet[16:20])
    if destination.is_multicast:
        return "multicast"
    if _is_martian4(source) or _is_martian4(destination):
        return "martian"
    return destination if packet[8] > 1 else "ttl_expired"


def _validate6(packet: bytes) -> IPv6Address | str:
    if len(packet) < 40 or packet[0] >> 4 != 6:
        return "bad_header"
    (payload,) = struct.unpack_from(">H", packet, 4)
    if 40 + payload > len(packet):
        return "bad_header"
    source, destination = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    if destination.is_multicast:
        return "multicast"
    if _is_martian6(source) or _is_martian6(destination):
        return "martian"
    return destination if packet[7] > 1 else "ttl_expired"


def same_address(text: str) -> str:
    """Return an address as Setup.neighbours is asked for it."""
    return str(ip_address(text))
