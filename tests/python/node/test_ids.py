# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""ids beside a matcher in plain Python: made-up rules on made-up packets and TCP streams, and words
in other people's traffic. Alerts are read from the file that the node writes.
"""

import json
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from convoy.errors import InputError

from .conftest import captures, read_capture, write_capture
from .test_convoys import plan, run

NODE = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{pcap: {{write: {write}}}}}
functions:
  watch:
    ids: {{rules-file: rules, stateful: {stateful}, alerts-file: {alerts}, unsupported: skip}}
chains: {{all: {{from: in, to: out, path: [watch]}}}}
flows: {{max: 4096}}
workers: {{idle: sleep}}
"""
SEED = 20261123
LETTERS = "abcAB"
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


@dataclass(frozen=True)
class Content:
    """A content, and where it must be."""

    text: bytes
    nocase: bool
    negated: bool
    relative: bool
    first: int
    length: int | None  # depth or within

    def rule(self) -> str:
        """Return it as rules write it."""
        words = [f'content:{"!" if self.negated else ""}"{self.text.decode()}"']
        words += ["nocase"] if self.nocase else []
        words += [f"{'distance' if self.relative else 'offset'}:{self.first}"] if self.first else []
        key = "within" if self.relative else "depth"
        words += [f"{key}:{self.length}"] if self.length is not None else []
        if self.relative and len(words) == 1 + self.nocase:
            words.append("distance:0")
        return "; ".join(words)

    def ends(self, payload: bytes, before: int) -> Iterator[int]:
        """Yield where it ends, at each place that it may have."""
        start = max(before + self.first, 0) if self.relative else self.first
        limit = len(payload)
        if self.length is not None:
            limit = min(limit, (before if self.relative else 0) + self.first + self.length)
        flags = re.IGNORECASE if self.nocase else 0
        pattern = re.compile(b"(?=" + re.escape(self.text) + b")", flags)
        for match in pattern.finditer(payload, start):
            if match.start() + len(self.text) <= limit:
                yield match.start() + len(self.text)


def matches(contents: tuple[Content, ...], payload: bytes, before: int = 0) -> bool:
    """Try all places of all contents."""
    if not contents:
        return True
    first, rest = contents[0], contents[1:]
    if first.negated:
        return not any(first.ends(payload, before)) and matches(rest, payload, before)
    return any(matches(rest, payload, end) for end in first.ends(payload, before))


def made_up(chance: random.Random, negated: bool) -> tuple[Content, ...]:
    """Return contents of a rule."""
    result: list[Content] = []
    for _ in range(chance.randint(1, 4)):
        text = "".join(chance.choices(LETTERS, k=chance.randint(1, 3))).encode()
        relative = any(not one.negated for one in result) and chance.random() < 0.5
        first = chance.choice((0, chance.randint(-3, 5) if relative else chance.randint(0, 5)))
        length = chance.choice((None, len(text) + chance.randint(0, 6)))
        not_there = negated and chance.random() < 0.3
        result.append(Content(text, chance.random() < 0.3, not_there, relative, first, length))
    return tuple(result)


def payload_of(chance: random.Random, most: int) -> bytes:
    return "".join(chance.choices(LETTERS + ".", k=chance.randint(1, most))).encode()


def segments(chance: random.Random, stream: bytes, sport: int) -> list[bytes]:
    """Cut a stream, mix the parts and repeat some; a connection's frames."""
    ends = {"src": "10.0.0.1", "dst": "198.51.100.7"}
    cuts = sorted({0, len(stream), *(chance.randrange(len(stream)) for _ in range(6))})
    parts = [(a, stream[a:b]) for a, b in pairwise(cuts)]
    parts += [(at, stream[at : at + 5]) for at in chance.choices(range(len(stream)), k=2)]
    chance.shuffle(parts)
    syn = TCP(sport=sport, dport=80, flags="S", seq=2**32 - 9)
    frames = [ETHER / IP(**ends) / syn]
    for at, part in parts:
        tcp = TCP(sport=sport, dport=80, flags="A", seq=(2**32 - 8 + at) % 2**32)
        frames.append(ETHER / IP(**ends) / tcp / part)
    return [bytes(frame) for frame in frames]


def alerts(path: Path) -> Counter[tuple[int, int]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["event_type"] == "alert" for line in lines)
    return Counter((line["alert"]["signature_id"], line["src_port"]) for line in lines)


def test_alerts_are_those_of_a_plain_matcher(tmp_path):
    chance = random.Random(SEED)
    rules = {sid: ("udp", made_up(chance, True)) for sid in range(1, 71)}
    # What is not there yet may come: only of packets it is known when they are matched.
    rules |= {sid: ("tcp", made_up(chance, False)) for sid in range(121, 137)}
    lines = [
        f"alert {proto} any any -> any any ({'; '.join(c.rule() for c in contents)}; sid:{sid};)"
        for sid, (proto, contents) in rules.items()
    ]
    lines += ["alert http any any -> any any (sid:999;)"]  # left out
    (tmp_path / "rules").write_text("\n".join(lines))
    packets = {1000 + i: payload_of(chance, 30) for i in range(100)}
    streams = {3000 + i: payload_of(chance, 60) for i in range(40)}
    frames = [
        bytes(ETHER / IP() / UDP(sport=sport, dport=9) / data) for sport, data in packets.items()
    ]
    for sport, data in streams.items():
        frames += segments(chance, data, sport)
    wanted: Counter[tuple[int, int]] = Counter()
    for sid, (proto, contents) in rules.items():
        for sport, data in (packets if proto == "udp" else streams).items():
            if matches(contents, data):
                wanted[sid, sport] += 1
    assert sum(wanted.values()) > 500
    counts = run(
        NODE, tmp_path, read=write_capture(tmp_path / "in.pcap", frames),
        write=tmp_path / "out.pcap", alerts=tmp_path / "eve.json", stateful="true",
    )  # fmt: skip
    info = counts["functions"]["watch"]["info"]
    assert info["alerts_lost"] == info["forgotten"] == 0
    assert info["skipped"][0]["line"] == len(lines)
    assert alerts(tmp_path / "eve.json") == wanted


def payloads(frame: bytes) -> tuple[int, bytes] | None:
    """Return the protocol and what is behind its header, of a whole packet; None: it is another."""
    at, proto = 14, frame[12:14]
    while proto in (b"\x81\x00", b"\x88\xa8") and at < 22:
        proto, at = frame[at + 2 : at + 4], at + 4
    ip = frame[at:]
    if proto == b"\x08\x00" and len(ip) >= 20 and ip[0] >> 4 == 4:
        header, (total,) = (ip[0] & 15) * 4, struct.unpack_from(">H", ip, 2)
        if struct.unpack_from(">H", ip, 6)[0] & 0x3FFF or not 20 <= header <= total <= len(ip):
            return None
        number, rest = ip[9], ip[header:total]
    elif proto == b"\x86\xdd" and len(ip) >= 40 and ip[0] >> 4 == 6:
        number, end = ip[6], 40 + struct.unpack_from(">H", ip, 4)[0]
        if number in (0, 43, 44, 51, 60) or end > len(ip):
            return None
        rest = ip[40:end]
    else:
        return None
    least = {socket.IPPROTO_TCP: 20, socket.IPPROTO_UDP: 8}.get(number)
    if least is None or len(rest) < least:
        return None
    header = (rest[12] >> 4) * 4 if least == 20 else 8
    return (number, rest[header:]) if least <= header <= len(rest) else None


WORDS = (b"GET ", b"HTTP/1.1", b"\r\n\r\n", b"\x03www", b"SIP/2.0", b"\x16\x03\x01", b"com")
CAPTURES = [path for path in captures() if path.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"]


@pytest.mark.skipif(not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder")
def test_words_in_other_peoples_traffic(tmp_path):
    frames = [frame for path in CAPTURES for frame in read_capture(path)]
    (tmp_path / "rules").write_text(
        "".join(
            f'alert {proto} any any -> any any (content:"|{word.hex(" ")}|"; sid:{number + i};)\n'
            for proto, number in (("tcp", 600), ("udp", 1700))
            for i, word in enumerate(WORDS)
        )
    )
    whole = [payload for payload in map(payloads, frames) if payload is not None]
    wanted = {
        100 * number + i: sum(word in data for proto, data in whole if proto == number)
        for number in (6, 17)
        for i, word in enumerate(WORDS)
    }
    counts = run(
        NODE, tmp_path, read=write_capture(tmp_path / "in.pcap", frames),
        write=tmp_path / "out.pcap", alerts=tmp_path / "eve.json", stateful="false",
    )  # fmt: skip
    info = counts["functions"]["watch"]["info"]
    assert {one["sid"]: one["packets"] for one in info["hits"]} == {
        sid: packets for sid, packets in wanted.items() if packets
    }
    assert sum(wanted.values()) > 500
    assert info["alerts"] == sum(wanted.values()) == sum(alerts(tmp_path / "eve.json").values())


def test_a_file_that_is_wrong_is_refused_with_its_line(tmp_path):
    (tmp_path / "rules").write_text('\nalert tcp any any -> any any (content:"a"; sid:x;)\n')
    with pytest.raises(InputError, match=r"rules:2: sid: \"x\": must be a whole number from 1"):
        run(
            NODE, tmp_path, read=write_capture(tmp_path / "in.pcap", []),
            write=tmp_path / "out.pcap", alerts=tmp_path / "eve.json", stateful="false",
        )  # fmt: skip
    with pytest.raises(InputError, match="has alerts-file and alerts-socket; remove one"):
        plan(
            NODE.replace("stateful:", "alerts-socket: s, stateful:"), tmp_path, read="in",
            write="out", alerts="eve.json", stateful="true",
        )  # fmt: skip
