# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A capture as a scenario's traffic: its packets, on the way that all benchmark traffic takes.

Sizes, their order, flows, protocols and payloads are the capture's. Flow i gets the addresses and
ports of flow i of benchmark traffic, and each packet the MAC addresses that the functions expect:
a router knows all destinations, a firewall the port. All go from left to right, whichever way they
went. What is no whole IPv4 packet is left out, and counted. A capture is somebody else's data.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from convoy.base.problem import Loc, Problem, shown
from convoy.chain.meaning import Meaning
from convoy.dut.addresses import DESTINATIONS, DPORT, FEW, LEFT_MAC, SOURCES, TESTER_MAC
from convoy.dut.expected import ETHER_BYTES, ICMP, IP_BYTES, IPV4, TCP, UDP, expected, mac
from convoy.dut.probe_packets import STAMP_BYTES
from convoy.errors import ConvoyError, InputError
from convoy.frame.capture import captured
from convoy.frame.checksum import checksum
from convoy.results.scenario import Capture, Contents, Scenario

MOST_BYTES = 256 << 20
MOST_PACKETS = 100_000  # so that all of them fit into the memory that the tester has for frames
LEAST_FRAME, MOST_FRAME = 60, 1514  # without FCS
FCS_BYTES = 4
HOSTS = 1000  # sources; destinations are as many as a router knows
FIRST_PORT = 1024
VLANS = (0x8100, 0x88A8)
L4_BYTES = {ICMP: 8, TCP: 20, UDP: 8}
CHECKSUM_AT = {TCP: 16, UDP: 6}


@dataclass(frozen=True)
class Replay:
    """What a capture is as traffic."""

    sha256: str  # of the file
    frames: tuple[bytes, ...]  # without FCS, with room for the tester's stamp
    contents: Contents


def _words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(data) // 2}H", data)


def _updated(value: int, old: bytes, new: bytes) -> int:
    """Return a checksum after some of the words that it is over have changed (RFC 1624)."""
    total = (value ^ 0xFFFF) + sum(word ^ 0xFFFF for word in _words(old)) + sum(_words(new))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _ipv4(data: bytes, length: int) -> bytes | str:
    """Return an Ethernet frame's IPv4 packet, or why it is left out. length: it had on the wire.

    What was not captured of its payload is zeros.
    """
    at = ETHER_BYTES - 2
    while at + 4 <= len(data) and int.from_bytes(data[at : at + 2], "big") in VLANS:
        at += 4
    if int.from_bytes(data[at : at + 2], "big") != IPV4:
        return "not IPv4"
    packet = data[at + 2 :]
    if len(packet) < IP_BYTES or packet[0] >> 4 != 4:
        return "malformed"
    if packet[0] & 15 != 5:
        return "with IP options"
    total, _, fragment = _words(packet[2:8])
    proto = packet[9]
    head = IP_BYTES + L4_BYTES.get(proto, 0)
    if fragment & 0x3FFF:
        return "fragments"
    if not head <= total <= length - at - 2 or len(packet) < head:
        return "malformed"
    if ETHER_BYTES + total > MOST_FRAME:
        return f"longer than {MOST_FRAME} bytes"
    packet = packet[:total]
    if proto == TCP and not head <= IP_BYTES + (packet[IP_BYTES + 12] >> 4) * 4 <= total:
        return "malformed"
    return packet + bytes(total - len(packet))


def _flow(packet: bytes) -> bytes:
    """Return what tells a packet's flow from others: protocol, addresses, ports."""
    ports = packet[IP_BYTES : IP_BYTES + 4] if packet[9] in CHECKSUM_AT else b""
    return packet[9:10] + packet[12:IP_BYTES] + ports


def _moved(packet: bytes, flow: int, known: int) -> bytes:
    """Return a packet with a flow's addresses and ports. known: destinations of a router."""
    # In steps of a golden section, so that few flows meet routes from all of a table.
    step = round(known * 0.618) | 1
    src = SOURCES[1 + flow % HOSTS].packed
    dst = DESTINATIONS[flow * step % known].packed
    proto, old, new = packet[9], packet[12:IP_BYTES], src + dst
    rest = packet[IP_BYTES:]
    if proto in CHECKSUM_AT:
        ports = struct.pack(">HH", FIRST_PORT + flow % (0x10000 - FIRST_PORT), DPORT)
        at = CHECKSUM_AT[proto]
        value = _words(rest[at : at + 2])[0]
        if value or proto == TCP:  # UDP: 0 is none
            value = _updated(value, old + rest[:4], new + ports)
            value = value or (0xFFFF if proto == UDP else 0)
        rest = ports + rest[4:at] + struct.pack(">H", value) + rest[at + 2 :]
    head = packet[:10] + b"\0\0" + new
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + rest


def _stamped(packet: bytes) -> bytes:
    """Return a packet's frame with room for the tester's stamp, in the payload or behind it.

    That is where the tester would make room, so that what it sends is as long as this.
    """
    end = ETHER_BYTES + len(packet)
    if packet[9] == TCP:
        payload = ETHER_BYTES + IP_BYTES + (packet[IP_BYTES + 12] >> 4) * 4
    else:
        payload = ETHER_BYTES + IP_BYTES + L4_BYTES.get(packet[9], MOST_FRAME)
    frame = mac(LEFT_MAC) + mac(TESTER_MAC) + struct.pack(">H", IPV4) + packet
    frame += bytes(max(0, LEAST_FRAME - len(frame)))
    stamp = (len(frame) - STAMP_BYTES) & ~1
    if stamp >= end or payload <= stamp <= end - STAMP_BYTES:
        return frame
    return frame + bytes(len(frame) % 2 + STAMP_BYTES)


def read(path: Path, known: int = FEW.num_addresses) -> Replay:
    """Return a capture as traffic. known: destinations that a router knows.

    Raises InputError: `what; fix`, without the file's name.
    """
    try:
        if not path.exists():
            raise InputError("there is no such file; give a pcap or pcapng file")
        if not path.is_file():
            raise InputError("is no file; give a pcap or pcapng file")
        state = path.stat()
        if state.st_size > MOST_BYTES:
            raise InputError(f"has more than {MOST_BYTES >> 20} MiB; give a shorter capture")
        return _read(path, known, (state.st_mtime_ns, state.st_size))
    except OSError as error:
        raise InputError(f"{error.strerror}; give a file that can be read") from None


@lru_cache(maxsize=8)
def _read(path: Path, known: int, _state: tuple[int, int]) -> Replay:
    data = path.read_bytes()
    try:
        packets = captured(data, path)
    except InputError as error:
        raise InputError(str(error).removeprefix(f"{path}: ")) from None
    if len(packets) > MOST_PACKETS:
        raise InputError(
            f"has {len(packets):,} packets, {MOST_PACKETS:,} is the most; cut it: "
            f"editcap -r IN OUT 1-{MOST_PACKETS}"
        )
    frames, flows, left_out, filled = [], dict[bytes, int](), Counter[str](), 0
    for captured_bytes, length in packets:
        packet = _ipv4(captured_bytes, length)
        if isinstance(packet, str):
            left_out[packet] += 1
            continue
        flow = flows.setdefault(_flow(packet), len(flows))
        frame = _stamped(_moved(packet, flow, known))
        if len(frame) > MOST_FRAME:
            left_out[f"longer than {MOST_FRAME} bytes"] += 1
            continue
        filled += len(captured_bytes) < length
        frames.append(frame)
    words = ", ".join(f"{count:,} {why}" for why, count in left_out.most_common())
    if not frames:
        raise InputError(
            f"has no whole IPv4 packets ({words or 'it is empty'}); give a capture with some"
        )
    contents = Contents(
        packets=len(frames),
        flows=len(flows),
        mean_bytes=round(sum(map(len, frames)) / len(frames) + FCS_BYTES, 1),
        filled=filled,
        left_out=words,
    )
    return Replay(sha256(data).hexdigest(), tuple(frames), contents)


def _replay(capture: Capture, path: Path, known: int = FEW.num_addresses) -> Replay:
    """Return a capture as traffic, if it is the file that it must be. Raises InputError."""
    replay = read(path, known)
    if capture.sha256 not in ("", replay.sha256):
        raise InputError(
            f"is another file: its sha256 is {replay.sha256}; give the file whose is "
            f"{capture.sha256}, or remove sha256"
        )
    return replay


def _resolved(capture: Capture, folder: Path) -> Capture:
    """Return a capture with what is in its file. Raises InputError as read() does."""
    path = (folder / capture.capture).resolve()
    replay = _replay(capture, path)
    known = {"sha256": replay.sha256, "contents": replay.contents}
    return capture.model_copy(update={"capture": str(path), "name": str(capture), **known})


def with_captures(scenario: Scenario, folder: Path) -> tuple[Scenario, list[Problem]]:
    """Return a scenario with what is in its captures, and what is wrong with these.

    folder: that their paths begin at.
    """
    problems: list[Problem] = []

    def read_all(loc: Loc, sizes: Sequence[object] | None) -> tuple[object, ...] | None:
        result: list[object] = []
        for i, size in enumerate(sizes or ()):
            try:
                result.append(_resolved(size, folder) if isinstance(size, Capture) else size)
            except InputError as error:
                what, _, fix = str(error).partition("; ")
                path = size.capture if isinstance(size, Capture) else ""
                problems.append(Problem((*loc, i, "capture"), what, fix, shown(path)))
        return None if sizes is None else tuple(result)

    compare = tuple(
        one.model_copy(update={"sizes": read_all(("compare", i, "sizes"), one.sizes)})
        for i, one in enumerate(scenario.compare)
    )
    quick = {"sizes": read_all(("quick", "sizes"), scenario.quick.sizes)}
    changed = {
        "sizes": read_all(("sizes",), scenario.sizes),
        "compare": compare,
        "quick": scenario.quick.model_copy(update=quick),
    }
    return scenario.model_copy(update=changed), problems


def check(scenario: Scenario) -> None:
    """Read the captures of a run's scenario. Raises InputError where one is not what it was."""
    for capture in scenario.captures if not scenario.pending else ():
        try:
            _resolved(capture, Path())
        except InputError as error:
            raise InputError(f"{capture.capture}: {error}") from None


@dataclass(frozen=True)
class Traffic:
    """A capture before some functions."""

    name: str
    frames: tuple[bytes, ...]  # all of it
    sent: tuple[bytes, ...]  # what the functions let pass

    @property
    def note(self) -> str:
        """Return what belongs beside each result, mostly nothing."""
        dropped = len(self.frames) - len(self.sent)
        if not dropped:
            return ""
        return (
            f"{self.name}: {len(self.sent):,} of {len(self.frames):,} packets are sent, the "
            "functions drop the others"
        )


def traffic(capture: Capture, chain: Sequence[Meaning] | None, entries: int) -> Traffic:
    """Return a capture before functions of so many routes. None: what they drop is not known.

    Raises ConvoyError: they let nothing pass, or the file is not what it was.
    """
    known = FEW if entries <= FEW.num_addresses else DESTINATIONS
    try:
        frames = _replay(capture, Path(capture.capture), known.num_addresses).frames
    except InputError as error:
        raise ConvoyError(f"{capture}: {error}") from None
    sent = frames if chain is None else tuple(_passing(chain, frames))
    if not sent:
        raise ConvoyError(f"{capture}: the functions drop all of its packets")
    return Traffic(str(capture), frames, sent)


def _passing(chain: Sequence[Meaning], frames: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the frames of which something comes out of a chain without state."""
    passes: dict[bytes, bool] = {}  # by all that rules and routes look at
    for frame in frames:
        key = frame[22:24] + frame[26:38]
        if key not in passes:
            passes[key] = bool(expected(chain, frame))
        if passes[key]:
            yield frame
