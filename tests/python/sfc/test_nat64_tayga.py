# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""nat64 beside tayga, a translator for Linux, on the same packets.

Not compared: identifications and DF of IPv4, which tayga sets otherwise than RFC 7915 says; and the
messages that it drops (parameter problems with a pointer, unreachable addresses).
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrFragment,
)
from scapy.packet import Packet, Raw

from convoy.errors import ConvoyError
from convoy.host.command import run
from convoy.host.namespace import Namespace
from convoy.host.process import Process

from .conftest import through

SIX = {"src": "2001:db8:a::5", "dst": "2001:db8:64::cb00:7107"}
FOUR = {"src": "203.0.113.7", "dst": "192.0.2.5"}
TAYGA = """
tun-device nat64
ipv4-addr 203.0.113.1
ipv6-addr 2001:db8:ffff::1
prefix 2001:db8:64::/96
map 192.0.2.5 2001:db8:a::5
data-dir {folder}
"""
OURS = """
tr:
  nat64:
    prefix: 2001:db8:64::/96
    eam: [{ipv4: 192.0.2.5, ipv6: "2001:db8:a::5"}]
    source: 203.0.113.1
    source-ipv6: 2001:db8:ffff::1
"""
STARTED = "until ip link show nat64 | grep -q LOWER_UP; do sleep 0.05; done"
# Gives tayga packets, one after the other; what it made of each, or nothing.
WIRE = """
import json, select, socket, sys, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
wire.bind(("nat64", 3))
out = []
for packet in map(bytes.fromhex, sys.stdin.read().split()):
    wire.sendto(packet, ("nat64", 0x86dd if packet[0] >> 4 == 6 else 0x0800))
    end, got = time.monotonic() + 0.3, ""
    while not got and time.monotonic() < end:
        if select.select([wire], [], [], 0.05)[0]:
            data, address = wire.recvfrom(65536)
            if address[2] != 4 and (data[0] ^ packet[0]) & 0x20:
                got = data.hex()
    out.append(got)
print(json.dumps(out))
"""


def _packets() -> Iterator[Packet]:
    six, four = IPv6(hlim=64, **SIX), IP(flags="DF", ttl=63, **FOUR)
    for size in (0, 1, 1000, 1300):
        payload = Raw(bytes(i % 251 for i in range(size)))
        for upper in (UDP(sport=size, dport=53), TCP(sport=size, dport=80, flags="PA")):
            yield IPv6(tc=size % 256, **SIX) / upper / payload
            yield IP(flags="DF", tos=size % 256, **FOUR) / upper / payload
        yield six / ICMPv6EchoRequest(id=size, data=payload.load)
        yield six / ICMPv6EchoReply(id=size, data=payload.load)
        yield four / ICMP(type=8, id=size) / payload
        yield four / ICMP(type=0, id=size) / payload
    inner: Any = UDP(sport=5, dport=6) / Raw(b"inside")
    about4 = IP(src=FOUR["dst"], dst=FOUR["src"], ttl=9, id=0) / inner
    about6 = IPv6(src=SIX["dst"], dst=SIX["src"], hlim=9) / inner
    for code in (0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15):
        yield four / ICMP(type=3, code=code) / about4
    for code in (0, 1):
        yield four / ICMP(type=11, code=code) / about4
        yield six / ICMPv6TimeExceeded(code=code) / about6
    for code in (0, 1, 2, 4):
        yield six / ICMPv6DestUnreach(code=code) / about6
    for mtu in (1300, 1400):
        yield four / ICMP(type=3, code=4, nexthopmtu=mtu) / about4
        yield six / ICMPv6PacketTooBig(mtu=mtu) / about6
    yield six / ICMPv6ParamProblem(code=1, ptr=6) / about6
    yield six / IPv6ExtHdrFragment(id=77, offset=4, m=1, nh=17) / Raw(bytes(64))
    yield IP(id=77, frag=4, flags="MF", proto=17, **FOUR) / Raw(bytes(64))


def _known(packet: bytes) -> bytes:
    """Return a packet without identifications and DF, outside and inside, and their checksums."""
    if packet[0] >> 4 == 6:
        return packet
    copy = bytearray(packet)
    is_error = packet[9] == 1 and len(packet) >= 48 and packet[20] in (3, 11, 12)
    for at in (0, 28) if is_error else (0,):
        copy[at + 4 : at + 6] = copy[at + 10 : at + 12] = bytes(2)
        copy[at + 6] &= 0x3F
    return bytes(copy)


def _tayga(folder: Path, packets: list[bytes]) -> list[bytes]:
    config = folder / "tayga.conf"
    config.write_text(TAYGA.format(folder=folder))
    with Namespace() as namespace:
        namespace.run(f"tayga -c {config} --mktun\nip link set nat64 mtu 1500 up")
        sent = "\n".join(packet.hex() for packet in packets)
        with Process([*namespace.command("tayga", "-d", "-c", str(config))]):
            namespace.run(f"timeout 10 sh -c '{STARTED}'")
            ended = run(namespace.command("python3", "-c", WIRE), 60.0, sent)
    if ended.exit_code != 0:
        raise ConvoyError(ended.output)
    return [bytes.fromhex(packet) for packet in json.loads(ended.stdout)]


def test_packets_as_tayga(tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network namespace")
    if shutil.which("tayga") is None:
        pytest.skip("not installed: tayga")
    packets = [bytes(packet) for packet in _packets()]
    try:
        theirs = _tayga(tmp_path, packets)
    except ConvoyError as error:
        pytest.skip(str(error))
    macs = bytes.fromhex("02000000000a020000000001")
    types = {4: b"\x08\x00", 6: b"\x86\xdd"}
    frames = [macs + types[packet[0] >> 4] + packet for packet in packets]
    ours = through(tmp_path, frames, OURS, ["tr"])
    assert [_known(frame[14:]) for frame in ours.out] == [_known(packet) for packet in theirs]
