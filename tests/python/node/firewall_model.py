# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The firewall as its documentation reads, slowly: a packet at a time, a rule at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

PORTS = {"tcp": 6, "udp": 17, "dccp": 33, "sctp": 132, "udplite": 136}
PROTOCOLS = {**PORTS, "icmp": 1, "icmpv6": 58}
EXTENSIONS = {0: "hop-by-hop", 43: "routing", 44: "fragment", 51: "authentication", 60: "options"}
EXTENSIONS_MAX = 8
FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")


class RefusedError(Exception):
    """Dropped before any rule was asked; the argument is the reason."""


@dataclass(frozen=True)
class Packet:
    """What rules are asked about."""

    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    proto: int
    later: bool  # a fragment that is not the first
    sport: int = 0
    dport: int = 0
    tags: int = 0  # VLAN tags
    authenticated: bool = False  # an IPv6 authentication header was skipped
    vlan: int | str = "none"  # the outermost tag's id
    dscp: int = 0
    length: int = 0  # of the IP packet
    more: bool = False  # fragments follow
    offset: int = 0  # of a fragment, in units of 8 bytes
    layer_4: bytes = b""  # of a whole packet or a first fragment


def number(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "big")


def need(holds: bool, reason: str = "bad_header") -> None:
    if not holds:
        raise RefusedError(reason)


def read(frame: bytes) -> Packet | None:
    """Return what is in the frame; None: not IP. Raises RefusedError."""
    need(len(frame) >= 14)
    at, tags = 12, 0
    while number(frame, at) in (0x8100, 0x88A8):
        tags += 1
        need(tags <= 2 and len(frame) >= at + 6)
        at += 4
    kind, data = number(frame, at), frame[at + 2 :]
    need(kind != 0)
    if kind not in (0x0800, 0x86DD):
        return None
    packet = read_ipv4(data, tags) if kind == 0x0800 else read_ipv6(data, tags)
    return replace(packet, vlan=number(frame, 14) & 0xFFF) if tags else packet


def read_ports(payload: bytes, proto: int, first: bool) -> tuple[int, int]:
    if proto not in PORTS.values():
        return 0, 0
    need(len(payload) >= 4, "fragment" if first else "bad_header")
    return number(payload, 0), number(payload, 2)


def read_ipv4(data: bytes, tags: int) -> Packet:
    need(len(data) >= 20 and data[0] >> 4 == 4)
    header, total = (data[0] & 15) * 4, number(data, 2)
    need(20 <= header <= total <= len(data))
    offset, more = number(data, 6) & 0x1FFF, bool(data[6] & 0x20)
    ports = (0, 0)
    if offset == 0:
        ports = read_ports(data[header:total], data[9], first=more)
    src, dst = ip_address(data[12:16]), ip_address(data[16:20])
    return Packet(
        src,
        dst,
        data[9],
        offset != 0,
        *ports,
        tags=tags,
        dscp=data[1] >> 2,
        length=total,
        more=more,
        offset=offset,
        layer_4=b"" if offset else data[header:total],
    )


def read_ipv6(data: bytes, tags: int) -> Packet:
    need(len(data) >= 40 and data[0] >> 4 == 6)
    need(40 + number(data, 4) <= len(data))
    proto, rest = data[6], data[40 : 40 + number(data, 4)]
    fragments, walked, later, authenticated, field = 0, 0, False, False, 0
    short = "bad_header"
    while proto in EXTENSIONS and not later:
        need(len(rest) >= 8 and walked < EXTENSIONS_MAX, short)
        walked += 1
        size = 8
        if proto == 44:
            fragments += 1
            need(fragments == 1, "fragment")
            field = number(rest, 2)
            later = field >> 3 != 0
            if later:
                need(rest[0] not in EXTENSIONS, "fragment")
            elif rest[3] & 1:
                short = "fragment"
        elif proto == 51:
            size, authenticated = (rest[1] + 2) * 4, True
        else:
            size = (rest[1] + 1) * 8
        need(len(rest) >= size, short)
        proto, rest = rest[0], rest[size:]
    ports = (0, 0) if later else read_ports(rest, proto, first=short == "fragment")
    src, dst = ip_address(data[8:24]), ip_address(data[24:40])
    return Packet(
        src,
        dst,
        proto,
        later,
        *ports,
        tags=tags,
        authenticated=authenticated,
        dscp=number(data, 0) >> 6 & 63,
        length=40 + number(data, 4),
        more=bool(field & 1),
        offset=field >> 3,
        layer_4=b"" if later else rest,
    )


def port_range(value: int | str | None) -> tuple[int, int]:
    if value is None:
        return 0, 65535
    first, _, last = str(value).partition("-")
    return int(first), int(last or first)


class Rule:
    """One rule of a plan."""

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self.allow = rule["action"] == "allow"
        self.src = ip_network(rule["src"]) if "src" in rule else None
        self.dst = ip_network(rule["dst"]) if "dst" in rule else None
        proto = rule.get("proto")
        self.proto: int | None = PROTOCOLS.get(proto, proto)  # type: ignore[arg-type]
        self.sport = port_range(rule.get("sport"))
        self.dport = port_range(rule.get("dport"))
        self.has_ports = self.sport != (0, 65535) or self.dport != (0, 65535)
        self.flags = rule.get("tcp_flags")
        self.icmp = (rule.get("icmp_type"), rule.get("icmp_code"))
        self.others = {key: rule[key] for key in ("dscp", "vlan") if key in rule}
        self.length = port_range(rule.get("length"))
        self.fragment = rule.get("fragment")

    def fields_match(self, packet: Packet) -> bool:
        part = "later" if packet.later else "first" if packet.more else "none"
        if self.fragment not in (None, part) and (self.fragment != "any" or part == "none"):
            return False
        if any(getattr(packet, key) != value for key, value in self.others.items()):
            return False
        return self.length[0] <= packet.length <= self.length[1]

    def layer_4_matches(self, packet: Packet) -> bool:
        if self.flags is not None:
            for word in self.flags.split(","):
                bit = 1 << FLAGS.index(word.removeprefix("!"))
                if bool(packet.layer_4[13] & bit) == word.startswith("!"):
                    return False
        pairs = zip(self.icmp, packet.layer_4, strict=False)
        return all(wanted in (None, byte) for wanted, byte in pairs)

    def matches(self, packet: Packet) -> bool:
        for network, address in ((self.src, packet.src), (self.dst, packet.dst)):
            if network and (network.version != address.version or address not in network):
                return False
        if self.proto is not None and self.proto != packet.proto:
            return False
        if not self.fields_match(packet):
            return False
        if self.has_ports and packet.proto not in PORTS.values():
            return False
        if packet.later and (self.has_ports or self.flags is not None or self.icmp[0] is not None):
            return not self.allow
        if not self.layer_4_matches(packet):
            return False
        return not self.has_ports or (
            self.sport[0] <= packet.sport <= self.sport[1]
            and self.dport[0] <= packet.dport <= self.dport[1]
        )


class Firewall:
    """A firewall with the configuration that a plan gives it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.rules = [Rule(rule) for rule in config.get("rules", [])]
        self.default = config.get("default", "deny")
        self.non_ip = config.get("non_ip", "pass")
        self.least = {}  # bytes of layer 4 that rules need, by protocol
        if any(rule.flags is not None for rule in self.rules):
            self.least[6] = 14
        if any(rule.icmp[0] is not None for rule in self.rules):
            self.least |= {1: 2, 58: 2}

    def need_layer_4(self, packet: Packet) -> None:
        if packet.later:
            over = packet.src.version == 4 and packet.proto == 6 and packet.offset == 1
            need(not over or 6 not in self.least, "fragment")
        else:
            enough = len(packet.layer_4) >= self.least.get(packet.proto, 0)
            need(enough, "fragment" if packet.more else "bad_header")

    def verdict(self, frame: bytes) -> tuple[str, int | None]:
        """Return "pass" or the drop's reason, and the index of the rule that decided."""
        try:
            packet = read(frame)
            if packet is not None:
                self.need_layer_4(packet)
        except RefusedError as refused:
            return str(refused), None
        if packet is None:
            return ("pass" if self.non_ip == "pass" else "non_ip"), None
        for index, rule in enumerate(self.rules):
            if rule.matches(packet):
                return ("pass" if rule.allow else "denied"), index
        return ("pass" if self.default == "allow" else "default_denied"), None
