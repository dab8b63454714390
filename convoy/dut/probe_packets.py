# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets that tell a right chain from one that does a little less: at the bounds of its rules and
routes, each beside others that differ from it in one field.

Who skips a rule, answers a packet with the answer to another one, or forgets a carry in a checksum
does something else with one of these.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any, TypeVar

from convoy.chain.meaning import Balancer, Firewall, Meaning, Ports, Router, Rule
from convoy.dut.addresses import DPORT, LEFT_MAC
from convoy.dut.expected import ICMP, IPV4, TCP, UDP, mac
from convoy.frame.checksum import checksum

PEER_MAC = "02:00:00:00:00:01"
LEAST_BYTES = 64  # without FCS
SIZES = (LEAST_BYTES, 129, 300)
SPREAD = 256  # flows of each protocol to a balancer's service
SAMPLED = 24  # rules and routes from each end of a list, and as many between
STAMP_BYTES = 14
HIGHEST = (1 << 32) - 1
SRC, DST = IPv4Address("198.18.0.1"), IPv4Address("198.19.0.1")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Packet:
    """An IPv4 packet, by the fields in which one differs from others."""

    why: str = "a packet of the benchmark"
    src: IPv4Address = SRC
    dst: IPv4Address = DST
    proto: int = UDP
    sport: int = 1024
    dport: int = DPORT
    ttl: int = 64
    ident: int = 0
    size: int = LEAST_BYTES

    def frame(self) -> bytes:
        """Return it with room for the tester's stamp at its end."""
        l4_bytes = {UDP: 8, TCP: 20}.get(self.proto, 8)
        payload = bytes(max(self.size - 34 - l4_bytes, STAMP_BYTES))
        length = 20 + l4_bytes + len(payload)
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, length, self.ident, 0, self.ttl, self.proto, 0,
            self.src.packed, self.dst.packed,
        )  # fmt: skip
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        ether = mac(LEFT_MAC) + mac(PEER_MAC) + struct.pack(">H", IPV4)
        return ether + ip + self._l4(payload)

    def _l4(self, payload: bytes) -> bytes:
        ports = struct.pack(">HH", self.sport, self.dport)
        length = len(payload) + {UDP: 8, TCP: 20}.get(self.proto, 8)
        if self.proto == UDP:
            head, at = ports + struct.pack(">HH", length, 0), 6
        elif self.proto == TCP:
            head, at = ports + struct.pack(">IIBBHHH", 1, 1, 0x50, 0x10, 1024, 0, 0), 16
        else:
            head, at = struct.pack(">BBHHH", 8, 0, 0, 1, 1), 2
        pseudo = self.src.packed + self.dst.packed + struct.pack(">HH", self.proto, length)
        data = (b"" if self.proto == ICMP else pseudo) + head + payload
        value = checksum(data + b"\0" * (len(data) % 2))
        return head[:at] + struct.pack(">H", value or 0xFFFF) + head[at + 2 :] + payload


def sampled(items: Sequence[Item]) -> list[tuple[int, Item]]:
    """Return some of them with their numbers: the first, the last, and others evenly between."""
    count = len(items)
    if count <= 3 * SAMPLED:
        return list(enumerate(items))
    between = {SAMPLED + i * (count - 2 * SAMPLED) // SAMPLED for i in range(SAMPLED)}
    chosen = {*range(SAMPLED), *between, *range(count - SAMPLED, count)}
    return [(i, items[i]) for i in sorted(chosen)]


def _around(low: int, high: int, most: int) -> list[int]:
    """Return the ends of a range, and what is just beyond them."""
    return [value for value in dict.fromkeys((low, high, low - 1, high + 1)) if 0 < value < most]


def _of_rule(number: int, rule: Rule) -> Iterator[Packet]:
    why = f"of rule {number}"
    base = Packet(why)
    if rule.src is not None:
        base = replace(base, src=_inside(rule.src.network_address, rule.src.num_addresses))
    if rule.dst is not None:
        base = replace(base, dst=_inside(rule.dst.network_address, rule.dst.num_addresses))
    base = replace(
        base,
        proto=UDP if rule.proto is None else rule.proto,
        sport=rule.sport[0] if rule.sport else base.sport,
        dport=rule.dport[0] if rule.dport else base.dport,
    )
    if base.proto not in (UDP, TCP, ICMP):
        return
    yield base
    for name, net in (("src", rule.src), ("dst", rule.dst)):
        if net is not None and net.prefixlen > 0:
            ends = _around(int(net[0]), int(net[-1]), HIGHEST)
            for value in ends:
                near = f"{why}: {name} {IPv4Address(value)}"
                change: dict[str, Any] = {name: IPv4Address(value)}
                yield replace(base, why=near, **change)
    ports: tuple[tuple[str, Ports | None], ...] = (("sport", rule.sport), ("dport", rule.dport))
    for name, span in ports:
        if span is not None:
            for value in _around(*span, most=1 << 16):
                change = {name: value}
                yield replace(base, why=f"{why}: {name} {value}", **change)
    if rule.proto in (UDP, TCP):
        yield replace(base, why=f"{why}, but of another protocol", proto=UDP + TCP - rule.proto)


def _inside(network: IPv4Address, count: int) -> IPv4Address:
    return network + (1 if count > 2 else 0)


def _wrapping(packet: Packet) -> Packet:
    """Return a packet whose checksum carries when its TTL is decremented (RFC 1624)."""
    (value,) = struct.unpack_from(">H", packet.frame(), 24)
    # It falls by what the identification rises, and behind 0 comes 0xFFFE.
    ident = 0 if value >= 0xFF00 else value + 1
    return replace(packet, ident=ident, why=f"{packet.why}: a checksum that carries")


def _of_router(router: Router) -> Iterator[Packet]:
    for _, route in sampled(router.routes):
        base = Packet(f"to {route.prefix}", dst=route.prefix[0])
        yield base
        if route.prefix.num_addresses > 1:
            yield replace(base, dst=route.prefix[-1])
        yield replace(base, why=f"{base.why}: the last TTL", ttl=1)
        yield replace(base, why=f"{base.why}: the last TTL but one", ttl=2)
    if router.routes:
        yield _wrapping(Packet("routed", dst=router.routes[0].prefix[0]))
        yield _wrapping(Packet("routed", dst=router.routes[0].prefix[0], ttl=33))
        yield replace(Packet("the highest TTL", dst=router.routes[0].prefix[0]), ttl=255)
    yield Packet("to no route", dst=IPv4Address("198.20.0.1"))


def _of_balancer(balancer: Balancer) -> Iterator[Packet]:
    for service in balancer.services:
        for proto in (UDP, TCP):
            for i in range(SPREAD):
                yield Packet(f"flow {i} to {service}", dst=service, proto=proto, sport=1024 + 5 * i)
        base = Packet(f"flow 0 to {service}", dst=service)
        yield replace(base, why=f"{base.why}: another TTL", ttl=3)
        yield replace(base, why=f"{base.why}: longer", size=SIZES[-1])
        for near in _around(int(service), int(service), HIGHEST)[1:]:
            yield Packet(f"to {IPv4Address(near)}, which is no service", dst=IPv4Address(near))


def packets(chain: Sequence[Meaning]) -> list[Packet]:
    """Return the packets for a chain, in an order in which neighbours differ little."""
    result: list[Packet] = []
    for size in SIZES:
        result.append(Packet(f"{size} bytes", size=size))
        result.append(Packet(f"{size} bytes, TCP", proto=TCP, size=size))
    result.append(Packet("ICMP", proto=ICMP))
    for meaning in chain:
        if isinstance(meaning, Firewall):
            for i, rule in sampled(meaning.rules):
                result += _of_rule(i + 1, rule)
        elif isinstance(meaning, Router):
            result += _of_router(meaning)
        elif isinstance(meaning, Balancer):
            result += _of_balancer(meaning)
    return list(dict.fromkeys(result))
