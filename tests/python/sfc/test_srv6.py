# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""SRv6 byte by byte beside Linux's seg6 and seg6local; what this kernel lacks, beside scapy."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ParamProblem, IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from convoy.errors import ConvoyError

from .conftest import IN_MAC, OUT_MAC, through
from .kernel import NEXT, PEER, Kernel

SID = "2001:db8:a::"
BEYOND = "2001:db8:b::"
ROUTER = f"""
rtr:
  router:
    routes:
      - 2001:db8:b::/48 via 2001:db8:2::9 dev out
      - 2001:db8:2::/64 dev out
      - 10.0.2.0/24 dev out
    neighbours: {{"2001:db8:2::9": "{NEXT}", 10.0.2.9: "{NEXT}"}}
"""
SIDS = f"""
sr:
  srv6:
    sids:
      - {{sid: "{SID}1"}}
      - {{sid: "{SID}2", behaviour: end-x, mac: "{NEXT}", output: past}}
      - {{sid: "{SID}d2", behaviour: end-dx2, output: past}}
      - {{sid: "{SID}d4", behaviour: end-dx4, mac: "{NEXT}", output: past}}
      - {{sid: "{SID}d6", behaviour: end-dx6, mac: "{NEXT}", output: past}}
      - {{sid: "{SID}f6", behaviour: end-dt6}}
      - {{sid: "{SID}f4", behaviour: end-dt4}}
      - {{sid: "{SID}f46", behaviour: end-dt46}}
    outputs: {{past: past-the-router}}
"""
LINUX = f"""
ip -6 route add {BEYOND}/48 via 2001:db8:2::9 dev right
ip -6 route add {SID}1/128 encap seg6local action End dev right
ip -6 route add {SID}2/128 encap seg6local action End.X nh6 2001:db8:2::9 dev right
ip -6 route add {SID}d2/128 encap seg6local action End.DX2 oif right dev right
ip -6 route add {SID}d4/128 encap seg6local action End.DX4 nh4 10.0.2.9 dev right
ip -6 route add {SID}d6/128 encap seg6local action End.DX6 nh6 2001:db8:2::9 dev right
ip -6 route add {SID}f6/128 encap seg6local action End.DT6 table 254 dev right
"""
MORE = "past-the-router: {to: out}"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo make check")


def outer(dst: str, segments: Sequence[str], left: int, hop: int = 64) -> Packet:
    """Return the headers of a packet on its way."""
    srh = IPv6ExtHdrSegmentRouting(addresses=list(segments), segleft=left)
    srh.lastentry = len(segments) - 1
    header = IPv6(src="2001:db8:1::1", dst=dst, hlim=hop, fl=5, tc=12)
    return Ether(src=PEER, dst=IN_MAC) / header / srh


def inner4(i: int = 0, ttl: int = 64) -> Packet:
    """Return an IPv4 packet that the node can forward."""
    return IP(src="10.0.1.1", dst="10.0.2.9", id=i, ttl=ttl) / UDP(sport=i, dport=53) / Raw(b"four")


def inner6(i: int = 0, hop: int = 64) -> Packet:
    """Return an IPv6 packet that the node can forward."""
    header = IPv6(src="2001:db8:1::1", dst="2001:db8:2::9", fl=i + 1, hlim=hop, tc=i)
    return header / UDP(sport=i, dport=53) / Raw(bytes(i * 40))


def segments() -> Iterator[bytes]:
    """Return packets to each segment that Linux has too."""
    inside = Ether(src="02:00:00:00:00:0c", dst="02:00:00:00:00:0d") / inner4(7)
    for hop in (64, 2):
        for sid in (f"{SID}1", f"{SID}2"):
            yield bytes(outer(sid, [f"{BEYOND}4", sid], 1, hop) / inner6())
            yield bytes(outer(sid, [f"{BEYOND}4", f"{BEYOND}5", sid], 2, hop) / inner4())
            yield bytes(outer(sid, [f"{BEYOND}4"], 1, hop) / inner6(1))  # reduced
    for i, (ttl, listed) in enumerate([(64, True), (2, True), (64, False)]):
        for sid, packet in (("d4", inner4(i, ttl)), ("d6", inner6(i, ttl)), ("f6", inner6(9, ttl)),
                            ("d2", inside)):  # fmt: skip
            whole = outer(SID + sid, [SID + sid], 0) / packet
            if not listed:
                number = {"d4": 4, "d6": 41, "f6": 41, "d2": 143}[sid]
                header = IPv6(src="2001:db8:1::1", dst=SID + sid, nh=number)
                whole = Ether(src=PEER, dst=IN_MAC) / header / Raw(bytes(packet))
            if sid == "d2":
                whole[IPv6].nh = 143 if not listed else 43
                if listed:
                    whole[IPv6ExtHdrSegmentRouting].nh = 143
            yield bytes(whole)


def last() -> bytes:
    """Return a packet that Linux forwards: it ends a run."""
    header = IPv6(src="2001:db8:1::1", dst="2001:db8:2::9")
    payload = Raw(b"the last packet of all, known by its payload")
    return bytes(Ether(src=PEER, dst=IN_MAC) / header / UDP(sport=9, dport=9) / payload)


@pytest.fixture(scope="module")
def linux() -> Iterator[Kernel]:
    with Kernel(LINUX) as kernel:
        yield kernel


@needs_root
@pytest.mark.parametrize("convoys", [False, True], ids=["alone", "in convoys"])
def test_segments_as_linux(tmp_path: Path, linux: Kernel, convoys: bool):
    frames = [*segments(), last()]
    theirs = linux.through(frames)["right"]
    ours = through(tmp_path, frames, SIDS + ROUTER, ["sr", "rtr"], MORE, convoys)
    assert len(theirs) == len(frames)
    assert sorted(ours.out) == sorted(theirs)
    if convoys:
        assert ours.counts["functions"]["sr"]["copied_out"] == 0


@needs_root
def test_errors_as_linux(tmp_path: Path, linux: Kernel):
    sid = f"{SID}1"
    frames = [
        bytes(outer(sid, [f"{BEYOND}4", sid], 1, hop=1) / inner6()),
        bytes(outer(sid, [f"{BEYOND}4", sid], 1, hop=0) / inner6()),
    ]
    theirs = linux.through([*frames, last()])["left"]
    ran = through(tmp_path, frames, SIDS + ROUTER, ["sr", "rtr"], MORE)
    assert ran.drops("sr") == {"ttl_expired": 2}
    assert len(theirs) == len(ran.back) == 2
    for frame, our, their in zip(frames, ran.back, theirs, strict=True):
        # Linux answers from its link, and quotes the packet as it would have gone on.
        assert our[54:56] == their[54:56] == b"\x03\x00"
        assert our[62:] == frame[14:]
        assert our[18:22] == their[18:22]  # length, next header, hop limit


def test_what_rfc_8986_asks_senders_to_be_told(tmp_path: Path):
    sid = f"{SID}1"
    frames = [
        bytes(outer(sid, [f"{BEYOND}4", sid], 3) / inner6()),
        bytes(outer(f"{SID}d4", [f"{SID}d4"], 0) / inner6()),
        bytes(outer(f"{SID}d6", [f"{SID}d6", sid], 1) / inner6()),
    ]
    ran = through(tmp_path, frames, SIDS, ["sr"], MORE)
    assert ran.out == []
    assert ran.drops("sr") == {"bad_segments": 2, "upper_layer": 1}
    errors = [Ether(frame) for frame in ran.back]
    assert [(each[ICMPv6ParamProblem].code, each[ICMPv6ParamProblem].ptr) for each in errors] == [
        (0, 43),
        (4, 64),
        (0, 43),
    ]
    for frame, each in zip(frames, errors, strict=True):
        assert (each.src, each.dst) == (IN_MAC, PEER)
        assert each[IPv6].src == Ether(frame)[IPv6].dst
        assert bytes(each)[62:] == frame[14:]
        sum_, each[ICMPv6ParamProblem].cksum = each[ICMPv6ParamProblem].cksum, None
        assert Ether(bytes(each))[ICMPv6ParamProblem].cksum == sum_


def test_tables_are_routers(tmp_path: Path):
    inside = [inner4(), inner6(), inner6(1), inner4(1)]
    sids = ["f4", "f6", "f46", "f46"]
    frames = [
        bytes(outer(SID + sid, [SID + sid], 0) / packet)
        for sid, packet in zip(sids, inside, strict=True)
    ]
    ran = through(tmp_path, frames, SIDS + ROUTER, ["sr", "rtr"], MORE)
    assert ran.out == [forwarded(Ether(src=PEER, dst=IN_MAC) / packet) for packet in inside]


def forwarded(frame: Packet) -> bytes:
    """Return a frame as a router sends it to the next hop."""
    packet = Ether(bytes(frame))
    packet.src, packet.dst = OUT_MAC, NEXT
    if IP in packet:
        packet[IP].ttl -= 1
        packet[IP].chksum = None
    else:
        packet[IPv6].hlim -= 1
    return bytes(packet)


def encap(behaviour: str, segments: Sequence[str]) -> str:
    """Return a function that encapsulates all, and the router behind it."""
    return f"""
f:
  srv6-encap:
    source: 2001:db8::1
    rules: [{{behaviour: {behaviour}, segments: [{", ".join(f'"{each}"' for each in segments)}]}}]
{ROUTER}"""


LISTS = [[f"{BEYOND}4"], [f"{BEYOND}4", f"{BEYOND}5", f"{BEYOND}6"]]
MODES = {
    "encaps": "encap",
    "encaps-red": "encap.red",
    "encaps-l2": "l2encap",
    "encaps-l2-red": "l2encap.red",
}


def plain(frame: bytes, l2: bool) -> bytes:
    """Return a frame without what differs by choice: flow label, the hop inside, link addresses."""
    packet = Ether(frame)
    packet[IPv6].fl = packet[IPv6].tc = 0
    at = (
        len(frame)
        - len(packet[IPv6].payload)
        + (
            len(packet[IPv6ExtHdrSegmentRouting]) - len(packet[IPv6ExtHdrSegmentRouting].payload)
            if IPv6ExtHdrSegmentRouting in packet
            else 0
        )
    )
    outside, inside = bytearray(bytes(packet)[:at]), bytearray(frame[at:])
    if l2:
        return bytes(outside + inside)
    if inside[0] >> 4 == 4:
        inside[8] = 0
        inside[10:12] = b"\0\0"
    else:
        inside[7] = 0
    return bytes(outside + inside)


@needs_root
@pytest.mark.parametrize("behaviour", MODES)
@pytest.mark.parametrize("segments", LISTS, ids=["one", "three"])
def test_encapsulates_as_linux(tmp_path: Path, behaviour: str, segments: list[str]):
    frames = [
        bytes(Ether(src=PEER, dst=IN_MAC) / packet)
        for i in range(4)
        for packet in (
            IP(src="10.0.1.1", dst="10.30.0.1", id=i) / UDP(sport=i) / Raw(b"x" * 30 * i),
            IPv6(src="2001:db8:1::1", dst="2001:db8:30::1", fl=i + 1) / UDP(sport=i) / Raw(b"abc"),
        )
    ]
    way = f"encap seg6 mode {MODES[behaviour]} segs {','.join(segments)} dev right"
    setup = f"""{LINUX}
ip sr tunsrc set 2001:db8::1
ip -6 route add 2001:db8:30::/48 {way}
ip route add 10.30.0.0/16 {way}
"""
    try:
        with Kernel(setup) as kernel:
            theirs = kernel.through([*frames, last()])["right"][:-1]
    except ConvoyError as error:
        if "Invalid" in str(error) or "garbage" in str(error):
            pytest.skip(f"this ip or kernel has no {MODES[behaviour]}: {error}")
        raise
    ours = through(tmp_path, frames, encap(behaviour, segments), ["f", "rtr"])
    l2 = "l2" in behaviour
    assert len(theirs) == len(frames)
    assert [plain(frame, l2) for frame in ours.out] == [plain(frame, l2) for frame in theirs]


def test_encapsulates_as_scapy(tmp_path: Path):
    path = [f"{BEYOND}4", f"{BEYOND}5"]
    frames = [
        bytes(Ether(src=PEER, dst=IN_MAC) / Dot1Q(vlan=9) / packet)
        for packet in (inner4(), inner6(3), inner4(1, ttl=1), inner6(4, hop=1))
    ]
    ran = through(tmp_path, frames, encap("encaps", path), ["f"])
    assert ran.drops("f") == {"ttl_expired": 2}
    assert len(ran.back) == 1  # only IPv6's sender can be told
    for inside, out in zip((inner4(), inner6(3)), ran.out, strict=True):
        srh = IPv6ExtHdrSegmentRouting(addresses=path[::-1], segleft=1)
        srh.lastentry = 1
        flow = Ether(out)[IPv6].fl
        header = IPv6(src="2001:db8::1", dst=path[0], fl=flow, tc=3 if IPv6 in inside else 0)
        link = Ether(src=PEER, dst=IN_MAC) / Dot1Q(vlan=9)
        hop = Ether(forwarded(Ether() / inside)).payload
        assert out == bytes(link / header / srh / hop)
        assert flow == 4 if IPv6 in inside else flow != 0
