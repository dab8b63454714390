# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames for devices, made by scapy: with nothing behind the IP packet, which routers cut off."""

import struct
from collections.abc import Callable
from typing import Any

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, fragment
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from convoy.dut.addresses import DPORT, LEFT_MAC

PEER_MAC = "02:00:00:00:99:01"
MARK = b"convoy's conformance "
END_BYTES = len(MARK) + 4


def payload(number: int, size: int = 0) -> bytes:
    return bytes(size) + MARK + struct.pack(">I", number)


def ether(packet: Packet, dst: str = LEFT_MAC) -> bytes:
    return bytes(Ether(src=PEER_MAC, dst=dst) / packet)


def ip(src: str = "198.18.0.1", dst: str = "198.19.0.1", **more: Any) -> IP:
    return IP(src=src, dst=dst, **({"ttl": 64} | more))


def udp(
    *, number: int = 0, sport: int = 1024, dport: int = DPORT, size: int = 0, **more: Any
) -> bytes:
    data = Raw(payload(number, size))
    return ether(ip(**more) / UDP(sport=sport, dport=dport) / data)


def tcp(*, number: int = 0, dport: int = DPORT, size: int = 0, **more: Any) -> bytes:
    return ether(ip(**more) / TCP(sport=1024, dport=dport) / Raw(payload(number, size)))


def icmp(*, number: int = 0, size: int = 0) -> bytes:
    return ether(ip() / ICMP() / Raw(payload(number, size)))


def esp(*, number: int = 0) -> bytes:
    return ether(ip(proto=50) / Raw(payload(number)))


def ipv6(*, number: int = 0) -> bytes:
    head = IPv6(src="2001:db8::1", dst="2001:db8::2")
    return ether(head / UDP(sport=1024, dport=DPORT) / Raw(payload(number)))


def tagged(frame: bytes, vlan: int = 100) -> bytes:
    """Return a frame with an 802.1Q tag."""
    return frame[:12] + b"\x81\x00" + struct.pack(">H", vlan) + frame[12:]


def arp() -> bytes:
    return ether(ARP(psrc="198.18.0.1", pdst="198.19.0.1") / Raw(bytes(18)))


def other(*, number: int = 0) -> bytes:
    """Neither IP nor ARP: a protocol for local experiments."""
    return bytes(Ether(src=PEER_MAC, dst=LEFT_MAC, type=0x88B5) / Raw(payload(number, 20)))


def fragments(made: Callable[..., bytes] = udp, **more: Any) -> tuple[bytes, bytes]:
    """Return a packet's two fragments: ports are in the first one alone."""
    whole = Ether(made(size=80, **more))
    first, second = fragment(whole[IP], fragsize=64)
    return ether(first), ether(second)


def options(**more: Any) -> bytes:
    return udp(options=[IPOption(b"\x01\x01\x01\x01")], **more)


def wrong_checksum(frame: bytes) -> bytes:
    return frame[:24] + bytes([frame[24] ^ 0xFF]) + frame[25:]


def routed(frame: bytes, src: str, dst: str) -> bytes:
    """Return an IPv4 frame as a router sends it on."""
    packet = Ether(frame)
    packet.src, packet.dst = src, dst
    packet[IP].ttl -= 1
    del packet[IP].chksum
    return bytes(packet)


def rewritten(frame: bytes, src: str, dst: str) -> bytes:
    packet = Ether(frame)
    packet.src, packet.dst = src, dst
    return bytes(packet)
