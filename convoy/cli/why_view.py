# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A packet's way as people read it."""

from collections.abc import Iterator
from datetime import datetime
from ipaddress import ip_address

from convoy.client import Packet, Step

_IPV4, _IPV6, _ARP = 0x0800, 0x86DD, 0x0806
_TAGS = (0x8100, 0x88A8)
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}
_WITH_PORTS = (6, 17, 132)


def lines_of(packet: Packet) -> Iterator[str]:
    """Yield the lines of a packet: what it was, each function, what became of it."""
    time = datetime.fromtimestamp(packet.at / 1e9).strftime("%H:%M:%S.%f")
    came = "" if packet.before is None else f"  {summary(packet.before.data)}"
    length = "" if packet.before is None else f", {packet.before.length} bytes"
    made = "" if packet.origin == "port" else f" from {packet.by or 'a function'},"
    chain = "no chain" if packet.chain is None else f"chain {packet.chain}"
    yield f"{time}{came}"
    yield f"  in {packet.port},{made} {chain}{length}"
    chain = packet.chain or ""
    for step in packet.way:
        place = step.function if step.chain == chain else f"{step.chain}: {step.function}"
        cycles = "" if step.cycles is None else f"{step.cycles:>8} cycles"
        size = "" if step.bytes is None else f"{step.bytes:>7} bytes"
        because = "" if step.because is None else f"  {step.because}"
        yield f"    {place:<20} {_verdict(step):<28}{cycles:<15}{size:<13}{because}".rstrip()
    yield f"  {end_of(packet)}"


def comment_of(packet: Packet) -> str:
    """Return a packet's way on one line."""
    way = ", ".join(f"{step.function} {_verdict(step)}{_because(step)}" for step in packet.way)
    origin = "" if packet.origin == "port" else f", from {packet.by or 'a function'}"
    return f"{end_of(packet)}; {packet.chain or 'no chain'}{origin}: {way or 'no function'}"


def end_of(packet: Packet) -> str:
    """Return what became of a packet."""
    if packet.end == "dropped":
        return f"dropped by {packet.function or 'the node'}: {packet.reason}"
    if packet.end == "absorbed" and packet.way:
        return f"absorbed by {packet.way[-1].function}: it was for it"
    if packet.end == "held" and packet.way:
        return f"held by {packet.way[-1].function}"
    if packet.end != "sent":
        return f"{packet.end} to another worker"
    after = "" if packet.after is None else f", {packet.after.length} bytes"
    next_hop = "" if packet.next_hop is None else f", next hop {packet.next_hop}"
    if packet.next_hop is not None and packet.next_hop_of is not None:
        next_hop += f" (one of {packet.next_hop_of} by its flow)"
    convoy = "" if packet.convoy is None else f", in a convoy of {packet.convoy}"
    return f"sent by {packet.out}{next_hop}{convoy}{after}{_change(packet)}"


def _change(packet: Packet) -> str:
    """Return what a packet was when it left, if that is not what it was."""
    if packet.before is None or packet.after is None:
        return ""
    before, after = summary(packet.before.data), summary(packet.after.data)
    return "" if before == after else f": {after}"


def _verdict(step: Step) -> str:
    if step.verdict == "drop":
        return f"drop: {step.reason}"
    return f"output {step.output}" if step.verdict == "output" else step.verdict


def _because(step: Step) -> str:
    return "" if step.because is None else f" ({step.because})"


def summary(frame: bytes) -> str:
    """Return a frame's addresses and ports; of one that is cut off, what there is."""
    at, kind, tags = 14, int.from_bytes(frame[12:14]), ""
    while kind in _TAGS and len(frame) >= at + 4:
        tags += f"vlan {int.from_bytes(frame[at : at + 2]) & 0xFFF} "
        kind, at = int.from_bytes(frame[at + 2 : at + 4]), at + 4
    packet = frame[at:]
    if kind == _IPV4 and len(packet) >= 20:
        first = int.from_bytes(packet[6:8]) & 0x1FFF == 0
        header = 4 * (packet[0] & 15)
        return tags + _ends(packet[12:16], packet[16:20], packet[9], packet[header:], first)
    if kind == _IPV6 and len(packet) >= 40:
        return tags + _ends(packet[8:24], packet[24:40], packet[6], packet[40:], True)
    if kind == _ARP:
        return f"{tags}arp"
    source, target = (":".join(f"{b:02x}" for b in frame[i : i + 6]) for i in (6, 0))
    return f"{tags}{source} > {target} type 0x{kind:04x}"


def _ends(source: bytes, target: bytes, proto: int, rest: bytes, first: bool) -> str:
    name = _PROTOCOLS.get(proto, f"protocol {proto}")
    ends = (str(ip_address(source)), str(ip_address(target)))
    if proto not in _WITH_PORTS or not first or len(rest) < 4:
        return f"{ends[0]} > {ends[1]} {name}"
    ports = (int.from_bytes(rest[:2]), int.from_bytes(rest[2:4]))
    return f"{_at(ends[0], ports[0])} > {_at(ends[1], ports[1])} {name}"


def _at(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
