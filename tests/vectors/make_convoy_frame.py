# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Writes convoy-frame.json: frames, and what docs/convoy-frame.md says that they are.

    .venv/bin/python tests/vectors/make_convoy_frame.py > tests/vectors/convoy-frame.json

Outer headers are scapy's and the rest is composed by hand, so nothing of what the vectors test
has made them. Each vector is {name, reason, frame} and, where the reason is "ok", what is in the
frame. `port` is the UDP port of convoys, 51966 where it is not said; `packed` says that a sender
that is given `outer`, `nfi` and `packets` makes exactly this frame.
"""

import json
import struct
import sys
import zlib
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

PORT = 51966
MAC = {"dst_mac": "02:00:00:00:00:02", "src_mac": "02:00:00:00:00:01"}
V4: dict[str, Any] = {**MAC, "src": "192.0.2.1", "dst": "192.0.2.2", "source_port": 49152}
V6: dict[str, Any] = {**MAC, "src": "2001:db8::1", "dst": "2001:db8::2", "source_port": 65535}

vectors: list[dict[str, Any]] = []


def inner(size: int, number: int = 1) -> bytes:
    """Return a UDP packet of `size` bytes without FCS; the number tells it from others."""
    packet = (
        Ether(dst="02:00:00:00:01:02", src="02:00:00:00:01:01")
        / IP(src="198.51.100.1", dst="203.0.113.1", id=number, ttl=64)
        / UDP(sport=1000 + number, dport=53)
    )
    return bytes(packet / Raw(bytes((number + i) & 0xFF for i in range(size - 42))))


def embed(packets: list[bytes]) -> bytes:
    return b"".join(struct.pack("!H", len(p)) + p for p in packets)


def payload(
    packets: list[bytes], nfi: int = 7, count: int | None = None, first: int = 0x10
) -> bytes:
    number = len(packets) if count is None else count
    return struct.pack("!BBH", first, number, nfi) + embed(packets)


def ethernet(outer: dict[str, Any]) -> Packet:
    frame: Packet = Ether(dst=outer["dst_mac"], src=outer["src_mac"])
    for tag in outer.get("vlans", []):
        layer = Dot1AD if tag["type"] == 0x88A8 else Dot1Q
        tci = tag["tci"]
        frame /= layer(prio=tci >> 13, id=tci >> 12 & 1, vlan=tci & 0xFFF)
    return frame


def network(outer: dict[str, Any], **fields: Any) -> Packet:
    tos, ttl = outer.get("tos", 0), outer.get("ttl", 64)
    if ":" in outer["src"]:
        return IPv6(src=outer["src"], dst=outer["dst"], hlim=ttl, tc=tos, **fields)
    default = {"id": 0, "flags": "DF", "tos": tos, "ttl": ttl}
    return IP(src=outer["src"], dst=outer["dst"], **{**default, **fields})


def frame(outer: dict[str, Any], data: bytes, udp: Any = None, **fields: Any) -> bytes:
    """Return the frame with this UDP payload; fields are IP's, udp are the UDP header's."""
    ports = {"sport": outer["source_port"], "dport": outer.get("port", PORT), "chksum": 0}
    return bytes(
        ethernet(outer) / network(outer, **fields) / UDP(**{**ports, **(udp or {})}) / data
    )


def good(name: str, outer: dict[str, Any], packets: list[bytes], nfi: int = 7, **more: Any) -> None:
    bytes_ = more.pop("frame", None) or frame(outer, payload(packets, nfi))
    port = {"port": outer["port"]} if "port" in outer else {}
    vectors.append(
        {
            "name": name,
            "reason": "ok",
            "frame": bytes_.hex(),
            **port,
            "packed": more.pop("packed", True),
            "outer": outer,
            "nfi": nfi,
            "packets": [p.hex() for p in packets],
        }
    )


def bad(name: str, reason: str, bytes_: bytes, **more: Any) -> None:
    vectors.append({"name": name, "reason": reason, "frame": bytes_.hex(), **more})


def accepted() -> None:
    two = [inner(60, 1), inner(60, 2)]
    good("two packets over IPv4", V4, two)
    good("two packets over IPv6", V6, two, nfi=0x1234)
    mixed = [inner(60, 1), inner(61, 2), inner(124, 3), inner(42, 4)]
    vlan = {**V4, "vlans": [{"type": 0x8100, "tci": 0x600A}]}
    good("mixed lengths in a VLAN", vlan, mixed, nfi=65535)
    qinq = {**V6, "vlans": [{"type": 0x88A8, "tci": 20}, {"type": 0x8100, "tci": 0x1FFF}]}
    good("two tags, IPv6", {**qinq, "tos": 0xB8, "ttl": 1}, mixed, nfi=0)
    arp = ARP(hwsrc=MAC["src_mac"], psrc="192.0.2.1", pdst="192.0.2.9")
    tags = Ether(dst=MAC["dst_mac"], src=MAC["src_mac"]) / Dot1AD(vlan=20) / Dot1Q(vlan=10)
    other = [
        bytes(Ether(dst="ff:ff:ff:ff:ff:ff", src=MAC["src_mac"]) / arp),
        bytes(Ether(dst="02:00:00:00:01:02", src="02:00:00:00:01:01", type=0x88CC)),
        bytes(tags / network(V6) / UDP(sport=1, dport=2)),
        bytes.fromhex("02000000010202000000010181000fff"),
    ]
    good("any packets: ARP, a header alone, two tags, a cut tag", V4, other)
    good("22 packets of 64 bytes", V4, [inner(64, i) for i in range(22)])
    good("23 packets of 60 bytes", V4, [inner(60, i) for i in range(23)])
    full = [inner(1000, 1), inner(1500 - 32 - 1002 - 2, 2)]
    good("exactly the MTU of 1500", V4, full)
    good("exactly the MTU of 1500, IPv6", V6, [full[0], full[1][:-20]])
    jumbo = {**V4, "mtu": 9000}
    good("jumbo: packets of 1514 bytes", jumbo, [inner(1514, i) for i in range(5)])
    good("255 packets, as short as they may be", jumbo, [inner(60)[:14]] * 255)
    good("another UDP port", {**V4, "port": 4000}, two)
    # What the fast path must not take for equal lengths.
    good("lengths whose mean is the first", V4, [inner(60), inner(59), inner(61)])
    # What looks like a convoy to the next hop leaves in a convoy of one, and nothing else does.
    forged = frame({**V4, "src": "198.51.100.1"}, payload(two))
    tagged = frame({**V6, "vlans": [{"type": 0x8100, "tci": 666}]}, payload(two))
    good("a convoy within a convoy of one", V4, [forged])
    good("a convoy within a convoy of one, tagged IPv6", V6, [tagged])
    good("one that would be refused, in a convoy of one", V4, [forged[:-1]])
    good("convoys within a convoy", V4, [forged, two[0], tagged])
    # Receivers take what senders do not make.
    good("one packet", V4, [two[0]], packed=False)
    good("a convoy to another UDP port, alone", {**V4, "port": 4000}, [forged], packed=False)
    summed = bytes(ethernet(V4) / network(V4) / UDP(sport=49152, dport=PORT) / payload(two))
    good("a UDP checksum, which nobody verifies", V4, two, frame=summed, packed=False)
    wrong = frame(V4, payload(two), udp={"chksum": 0xDEAD})
    good("a wrong UDP checksum", V4, two, frame=wrong, packed=False)
    fragmentable = frame(V4, payload(two), flags=0, id=77)
    good("may be fragmented, but is not", V4, two, frame=fragmentable, packed=False)


def not_convoys() -> None:
    data = payload([inner(60, 1), inner(60, 2)])
    whole = frame(V4, data)
    bad("no bytes at all", "not_a_convoy", b"")
    bad("13 bytes", "not_a_convoy", whole[:13])
    bad("ends behind the Ethernet header", "not_a_convoy", whole[:14])
    bad("ends in the UDP header", "not_a_convoy", whole[:41])
    bad("IPv6, ends in the UDP header", "not_a_convoy", frame(V6, data)[:61])
    bad("a cut VLAN tag", "not_a_convoy", whole[:12] + b"\x81\x00\x00")
    bad("three VLAN tags", "not_a_convoy", whole[:12] + b"\x81\0\0\x01" * 3 + whole[12:])
    bad("another destination port", "not_a_convoy", frame(V4, data, udp={"dport": 51965}))
    bad("IPv6, another destination port", "not_a_convoy", frame(V6, data, udp={"dport": 53}))
    bad("the port of convoys is another", "not_a_convoy", whole, port=4000)
    bad(
        "the port is the source's", "not_a_convoy", frame(V4, data, udp={"sport": PORT, "dport": 9})
    )
    tcp = bytes(ethernet(V4) / network(V4) / TCP(sport=1, dport=PORT) / data)
    bad("TCP", "not_a_convoy", tcp)
    bad("IPv4 options", "not_a_convoy", frame(V4, data, options=b"\x01\x01\x01\x00"))
    bad("a non-first fragment", "not_a_convoy", frame(V4, data, flags="MF", frag=1))
    bad("IPv4 in an IPv6 frame", "not_a_convoy", whole[:12] + b"\x86\xdd" + whole[14:] + bytes(8))
    bad("IPv6 in an IPv4 frame", "not_a_convoy", whole[:12] + b"\x08\x00" + frame(V6, data)[14:])
    hop = bytes(ethernet(V6) / network(V6) / IPv6ExtHdrHopByHop() / UDP(sport=1, dport=PORT) / data)
    bad("an IPv6 extension header", "not_a_convoy", hop)
    arp = ARP(hwsrc=MAC["src_mac"], psrc="192.0.2.1")
    bad("ARP", "not_a_convoy", bytes(ethernet(V4) / arp))


def outer_refused() -> None:
    data = payload([inner(60, 1), inner(60, 2)])
    whole = frame(V4, data)
    bad("the first fragment", "fragmented", frame(V4, data, flags="MF"))
    bad("IPv4 header checksum", "bad_checksum", frame(V4, data, chksum=0x1234))
    bad("the last byte is missing", "truncated", whole[:-1])
    bad("ends behind the UDP header", "truncated", whole[:42])
    bad("ends in the convoy header", "truncated", whole[:45])
    bad("IPv6, the last byte is missing", "truncated", frame(V6, data)[:-1])
    bad("one byte behind the IP packet", "trailing_bytes", whole + b"\0")
    bad("IPv6, a frame check sequence is still there", "trailing_bytes", frame(V6, data) + bytes(4))
    bad("no payload", "bad_length", frame(V4, b""))
    bad("half a convoy header", "bad_length", frame(V4, data[:3]))
    bad("IPv6, half a convoy header", "bad_length", frame(V6, data[:3]))
    bad("IPv6, a jumbogram", "bad_length", frame(V6, data, plen=0))
    bad("IPv4 length 0", "bad_length", frame(V4, data, len=0))
    bad("UDP length one less", "bad_length", frame(V4, data, udp={"len": 8 + len(data) - 1}))
    bad("UDP length one more", "bad_length", frame(V4, data, udp={"len": 8 + len(data) + 1}))
    bad("UDP length 0", "bad_length", frame(V6, data, udp={"len": 0}))


def payload_refused() -> None:
    one, two = inner(60, 1), inner(60, 2)
    for first, reason in [
        (0x00, "bad_version"),
        (0x20, "bad_version"),
        (0xF1, "bad_version"),
        (0x11, "bad_type"),
        (0x1F, "bad_type"),
    ]:
        bad(f"first byte {first:#04x}", reason, frame(V4, payload([one, two], first=first)))
    bad("no packets", "bad_count", frame(V4, payload([])))
    bad("count 0, but packets", "bad_count", frame(V4, payload([one, two], count=0)))
    bad("one counted, none there", "bad_count", frame(V4, payload([], count=1)))
    bad("one counted, one byte there", "bad_count", frame(V4, payload([], count=1) + b"\0"))
    bad("one more counted than there are", "bad_count", frame(V4, payload([one, two], count=3)))
    bad("255 counted, two there", "bad_count", frame(V6, payload([one, two], count=255)))
    bad("half a length", "bad_count", frame(V4, payload([one, two], count=3) + b"\0"))
    bad(
        "one fewer counted than there are",
        "trailing_bytes",
        frame(V4, payload([one, two], count=1)),
    )
    bad("one byte behind the last packet", "trailing_bytes", frame(V4, payload([one, two]) + b"\0"))
    bad("a packet of 13 bytes", "runt_packet", frame(V4, payload([one, two[:13]])))
    bad("packets of 13 bytes, all equal", "runt_packet", frame(V4, payload([one[:13]] * 3)))
    bad("a packet of 0 bytes", "runt_packet", frame(V4, payload([one, b"", two])))
    bad("packets of 0 bytes, all equal", "runt_packet", frame(V4, payload([b""] * 4)))
    long = payload([one, two])
    bad("the last packet ends behind the frame", "bad_length", frame(V4, long[:-1]))
    bad("a packet of 65535 bytes", "bad_length", frame(V4, long[:4] + b"\xff\xff" + long[6:]))
    bad(
        "lengths add up in 16 bits",
        "bad_length",
        frame(V4, payload([one, two]).replace(b"\0\x3c", b"\xff\xff", 1)),
    )
    bad(
        "the second packet's length reaches too far",
        "bad_length",
        frame(V6, payload([one])[:1] + b"\x02" + payload([one])[2:] + b"\0\x3d" + two),
    )


def compressed(
    block: bytes,
    length: int,
    count: int,
    dictionary: bytes = b"",
    codec: int = 1,
    reserved: int = 0,
) -> bytes:
    """Return the UDP payload of a frame of type 1."""
    name = zlib.crc32(dictionary) if dictionary else 0
    return struct.pack("!BBHBBHI", 0x11, count, 7, codec, reserved, length, name) + block


def lz4(*sequences: tuple[bytes, int, int], last: bytes) -> bytes:
    """Return an LZ4 block of sequences (literals, offset, length of the match) and literals."""

    def more(number: int) -> bytes:
        return (
            b"" if number < 15 else b"\xff" * ((number - 15) // 255) + bytes([(number - 15) % 255])
        )

    block = b""
    for literals, offset, match in sequences:
        block += bytes([min(len(literals), 15) << 4 | min(match - 4, 15)]) + more(len(literals))
        block += literals + struct.pack("<H", offset) + more(match - 4)
    return block + bytes([min(len(last), 15) << 4]) + more(len(last)) + last


def expanded() -> list[dict[str, Any]]:
    """Return vectors for a receiver that expands: with `dictionary`, in hex, where it has one.

    One that does not refuses all of them but those that are refused before: `bad_type`.
    """
    one, two = inner(60, 1), inner(60, 2)
    both = embed([one, two])
    whole = lz4(last=both)
    # The second packet begins as the first does, and both as the dictionary.
    match = lz4((both[:62], 62, 20), last=both[82:])
    zeros = embed([bytes(60), bytes(60)])
    known = embed([inner(60, 9)])
    with_known = lz4((b"", 62, 20), last=both[20:])
    result: list[dict[str, Any]] = []

    def add(name: str, reason: str, data: bytes, **more: Any) -> None:
        sent = more.pop("sent", None) or frame(more.pop("outer", V4), data)
        result.append({"name": name, "reason": reason, **more, "frame": sent.hex()})

    def good(name: str, data: bytes, **more: Any) -> None:
        add(name, "ok", data, nfi=7, packets=[one.hex(), two.hex()], **more)

    good("literals only", compressed(whole, 124, 2))
    good("IPv6, literals only", compressed(whole, 124, 2), outer=V6)
    good("a match", compressed(match, 124, 2))
    run = lz4((b"\0\x3c\0", 1, 59), (b"\0\x3c\0", 1, 54), last=bytes(5))
    nulls = [bytes(60).hex()] * 2
    add("matches that overlap", "ok", compressed(run, len(zeros), 2), nfi=7, packets=nulls)
    good("a dictionary", compressed(with_known, 124, 2, known), dictionary=known.hex())
    good("a dictionary that is not used", compressed(match, 124, 2), dictionary=known.hex())
    add("no compression header", "bad_length", compressed(b"", 124, 2)[:11])
    add("no packets", "bad_count", compressed(whole, 124, 0))
    add("codec 0", "bad_codec", compressed(whole, 124, 2, codec=0))
    add("codec 2", "bad_codec", compressed(whole, 124, 2, codec=2))
    add("reserved bits", "bad_codec", compressed(whole, 124, 2, reserved=1))
    add("a dictionary, none here", "wrong_dictionary", compressed(with_known, 124, 2, known))
    other = {"dictionary": known[1:].hex()}
    add("another dictionary", "wrong_dictionary", compressed(with_known, 124, 2, known), **other)
    add("no bytes", "bad_length", compressed(lz4(last=b""), 0, 2))
    add("an empty block", "bad_block", compressed(b"", 124, 2))
    add("one byte less than it says", "bad_block", compressed(whole, 125, 2))
    add("one byte more than it says", "bad_block", compressed(whole, 123, 2))
    add("a bomb", "bad_block", compressed(lz4((b"a", 1, 60000), last=b"bcdef"), 124, 2))
    add("the block is cut", "bad_block", compressed(match[:-1], 124, 2))
    add("a match before the first byte", "bad_block", compressed(with_known, 124, 2))
    add("an offset of 0", "bad_block", compressed(match.replace(b"\x3e\0", b"\0\0"), 124, 2))
    runt = embed([one, two[:13]])
    add("a packet of 13 bytes", "runt_packet", compressed(lz4(last=runt), len(runt), 2))
    add("one more counted than there are", "bad_count", compressed(whole, 124, 3))
    add("one fewer counted than there are", "trailing_bytes", compressed(whole, 124, 1))
    add("type 3", "bad_type", b"\x13" + compressed(whole, 124, 2)[1:])
    add("version 2", "bad_version", b"\x21" + compressed(whole, 124, 2)[1:])
    cut = frame(V4, compressed(whole, 124, 2))[:-1]
    add("the frame is cut", "truncated", b"", sent=cut)
    return result


def fragments() -> list[dict[str, Any]]:
    """Return vectors of frames in which packets are cut, for a receiver that reassembles.

    One that does not refuses all of them but those that are refused before: `bad_type`. `packets`
    are those that are whole; `rest` and `beginning` are parts of others, of which the second has
    `total` bytes.
    """
    one, two, long = inner(60, 1), inner(60, 2), inner(508, 3)
    result: list[dict[str, Any]] = []

    def payload_of(
        packets: list[bytes], flags: int, total: int, behind: bytes, count: int | None = None
    ) -> bytes:
        number = len(packets) if count is None else count
        header = struct.pack("!BBHIIHH", 0x12, number, 7, 0xC0FFEE11, 0xFFFFFFFF, flags, total)
        return header + embed(packets) + behind

    def add(name: str, reason: str, data: bytes, outer: dict[str, Any] = V4, **more: Any) -> None:
        result.append({"name": name, "reason": reason, **more, "frame": frame(outer, data).hex()})

    def good(name: str, rest: bytes, whole: list[bytes], beginning: bytes, total: int,
             outer: dict[str, Any] = V4) -> None:  # fmt: skip
        packets = [rest, *whole] if rest else whole
        add(name, "ok", payload_of(packets, int(bool(rest)), total, beginning), outer,
            nfi=7, stream=0xC0FFEE11, sequence=0xFFFFFFFF, rest=rest.hex(),
            packets=[p.hex() for p in whole], beginning=beginning.hex(), total=total)  # fmt: skip

    good("a packet begins", b"", [one, two], long[:300], 508)
    good("its rest", long[300:], [one, two], b"", 0)
    good("a rest, and a packet begins", long[300:], [one], long[:100], 508)
    good("a rest, and a packet begins, IPv6", long[300:], [one], long[:100], 508, V6)
    good("a rest alone", long[300:], [], b"", 0)
    good("a rest of one byte", long[507:], [one], b"", 0)
    good("a beginning alone", b"", [], long[:300], 508)
    good("all but the last byte", b"", [one], long[:507], 508)
    good("a packet of 65535 bytes begins", b"", [one], long[:64], 65535)
    add("no header of fragments", "bad_length", payload_of([], 0, 0, b"")[:15])
    add("nothing is cut", "bad_fragment", payload_of([one, two], 0, 0, b""))
    add("an unknown flag", "bad_fragment", payload_of([one], 2, 508, long[:300]))
    add("a flag more", "bad_fragment", payload_of([long[300:], one], 3, 0, b""))
    add("a rest that is not counted", "bad_fragment", payload_of([], 1, 508, long[:300]))
    add("a rest of no bytes", "runt_packet", payload_of([b"", one], 1, 0, b""))
    add("a runt behind the rest", "runt_packet", payload_of([long[300:], one[:13]], 1, 0, b""))
    add("a runt begins", "runt_packet", payload_of([one], 0, 13, long[:12]))
    add("no byte of what begins", "bad_fragment", payload_of([one], 0, 508, b""))
    add("all bytes of what begins", "bad_fragment", payload_of([one], 0, 300, long[:300]))
    add("more bytes than it has", "bad_fragment", payload_of([one], 0, 299, long[:300]))
    add("bytes, and nothing begins", "trailing_bytes",
        payload_of([long[300:], one], 1, 0, b"\0"))  # fmt: skip
    add("one more counted than there are", "bad_count",
        payload_of([long[300:], one], 1, 0, b"", count=3))  # fmt: skip
    add("a rest that is longer than the frame", "bad_length",
        payload_of([long[300:]], 1, 0, b"")[:-1])  # fmt: skip
    return result


accepted()
not_convoys()
outer_refused()
payload_refused()
names = [vector["name"] for vector in vectors]
assert len(set(names)) == len(names), "names are unique"
about = "Made by make_convoy_frame.py; docs/convoy-frame.md is the specification."
head = {"schema": "convoy.vectors.frame/1", "about": about}
lines = ",\n".join(json.dumps(vector) for vector in vectors)
more = ",\n".join(json.dumps(vector) for vector in expanded())
sys.stdout.write(json.dumps(head)[:-1] + ', "vectors": [\n' + lines + "\n],\n")
cut = ",\n".join(json.dumps(vector) for vector in fragments())
sys.stdout.write('"expanded": [\n' + more + "\n],\n")
sys.stdout.write('"fragments": [\n' + cut + "\n]}\n")
