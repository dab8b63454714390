# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""ESP through the node, byte by byte beside RFC 4303 and 4106 written down in Python, and scapy."""

import json
import random
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.layers import ipsec
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.errors import InputError
from sfc.conftest import IN_MAC, OUT_MAC, Ran, through, write_capture

from .esp import Association
from .gcm import Gcm

PEER = "02:00:00:00:00:01"
SHORT = bytes(range(20))
LONG = bytes(range(100, 136))
WEST = {4: "192.0.2.1", 6: "2001:db8:1::1"}
EAST = {4: "198.51.100.1", 6: "2001:db8:2::1"}
SPI = 0xC0FFEE
# Version outside, AES key, extended sequence numbers, in UDP.
TUNNELS = [
    (4, SHORT, False, False),
    (4, LONG, True, True),
    (6, SHORT, True, False),
    (6, LONG, False, True),
]
each_tunnel = pytest.mark.parametrize(("version", "key", "esn", "udp"), TUNNELS)


def test_aes_and_gcm_are_what_nist_says():
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308")
    plain = bytes.fromhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    )
    extra = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    nonce = bytes.fromhex("cafebabefacedbaddecaf888")
    for repeats, tag in ((1, "5bc94fbc3221a5db94fae95ae7121a47"),
                         (2, "76fc6ece0f4e1768cddf8853bb2d551b")):  # fmt: skip
        sealed = Gcm(key * repeats).seal(nonce, plain, extra)
        assert sealed[-16:].hex() == tag
        assert Gcm(key * repeats).open(nonce, sealed, extra) == plain


def inside(count: int = 12) -> Iterator[Packet]:
    """Return packets to go through a tunnel, of many lengths."""
    for i in range(count):
        payload = Raw(bytes(i % 256 for i in range(i * i * 9 % 1300)))
        link = Ether(src=PEER, dst=IN_MAC)
        if i % 3 == 1:
            link = link / Dot1Q(vlan=7)
        yield link / IP(src="10.1.0.1", dst="10.2.0.1", id=i, ttl=9, tos=9) / UDP() / payload
        yield link / IPv6(src="2001:db8:a::1", dst="2001:db8:b::1", hlim=9, tc=9) / TCP() / payload


def onward(frame: bytes, hops: int = 1) -> bytes:
    """Return a frame behind a hop."""
    packet = Ether(frame)
    if IP in packet:
        packet[IP].ttl -= hops
        del packet[IP].chksum
    else:
        packet[IPv6].hlim -= hops
    return bytes(packet)


def network(frame: bytes) -> bytes:
    """Return what lies behind Ethernet and its tags."""
    packet = Ether(frame)
    return bytes(packet[Dot1Q].payload) if Dot1Q in packet else bytes(packet.payload)


def function(
    folder: Path, sas: str, outside: str, policies: str = "[{name: all}]", more: str = ""
) -> str:
    """Return a function's text, whose associations are in a file of that folder."""
    folder.mkdir(exist_ok=True)
    file = folder / "sas"
    file.write_text(sas)
    file.chmod(0o600)
    return f"f: {{vpn: {{outside: [{outside}], policies: {policies}, sa-file: {file}{more}}}}}"


def sa_out(version: int, key: bytes, esn: bool, udp: bool) -> str:
    more = (" esn yes" if esn else "") + (" udp 4500" if udp else "")
    return (
        f"out {SPI:#x} policy all local {WEST[version]} peer {EAST[version]} key {key.hex()}{more}"
    )


def sa_in(version: int, key: bytes, esn: bool, more: str = "") -> str:
    word = "yes" if esn else "no"
    return f"in {SPI} policy all local {EAST[version]} key 0x{key.hex()} esn {word} {more}"


def outer(version: int, udp: bool, esp: bytes, **fields: Any) -> bytes:
    """Return a frame that an ESP packet of the west arrives in."""
    make = {4: IP, 6: IPv6}[version]
    header = make(src=WEST[version], dst=EAST[version], **fields)
    if udp:
        return bytes(Ether(src=PEER, dst=IN_MAC) / header / UDP(sport=9999, dport=4500) / Raw(esp))
    header.fields["proto" if version == 4 else "nh"] = 50
    return bytes(Ether(src=PEER, dst=IN_MAC) / header / Raw(esp))


def esp_of(frame: bytes, version: int, udp: bool) -> bytes:
    """Return the ESP packet of a frame; its headers are as they should be."""
    packet = Ether(frame)
    ip = packet[IP] if version == 4 else packet[IPv6]
    assert (ip.src, ip.dst) == (WEST[version], EAST[version])
    assert bytes(Ether(bytes(packet))) == frame
    checked = ip.copy()
    if version == 4:
        del checked.chksum
        assert IP(bytes(checked)).chksum == ip.chksum
        assert (ip.ttl, ip.tos, ip.len) == (64, 9, len(bytes(ip)))
    else:
        assert (ip.hlim, ip.tc, ip.plen) == (64, 9, len(bytes(ip)) - 40)
    if udp:
        assert (ip[UDP].sport, ip[UDP].dport, ip[UDP].len) == (4500, 4500, len(bytes(ip[UDP])))
        if version == 6:
            sum_ = ip[UDP].chksum
            del checked[UDP].chksum
            assert IPv6(bytes(checked))[UDP].chksum == sum_
        else:
            assert ip[UDP].chksum == 0
        return bytes(ip[UDP])[8:]
    assert (ip.proto if version == 4 else ip.nh) == 50
    return bytes(ip.payload)


@each_tunnel
@pytest.mark.parametrize("convoys", [False, True], ids=["alone", "in convoys"])
def test_seals_as_the_rfcs_say(tmp_path, version, key, esn, udp, convoys):
    frames = [bytes(packet) for packet in inside()]
    text = function(tmp_path / "keys", sa_out(version, key, esn, udp), "out")
    ran = through(tmp_path, frames, text, ["f"], convoys=convoys)
    peer = Association(SPI, key, esn)
    opened = [peer.open(esp_of(frame, version, udp)) for frame in ran.out]
    assert sorted(one.sequence for one in opened) == list(range(1, len(frames) + 1))
    assert len({one.iv for one in opened}) == len(frames)
    assert [one.inner for one in opened] == [network(onward(frame)) for frame in frames]
    assert [one.next_header for one in opened] == [4, 41] * (len(frames) // 2)
    # Ethernet and its tags stay.
    for frame, out in zip(frames, ran.out, strict=True):
        was = Ether(frame)
        assert (Dot1Q in Ether(out)) == (Dot1Q in was)
        assert out[:12] == frame[:12]


@each_tunnel
@pytest.mark.parametrize("convoys", [False, True], ids=["alone", "in convoys"])
def test_opens_what_the_rfcs_say(tmp_path, version, key, esn, udp, convoys):
    peer = Association(SPI, key, esn)
    packets = [network(bytes(packet)) for packet in inside()]
    frames = [
        outer(version, udp, peer.seal(packet, i + 1, tfc=i % 3 * 40))
        for i, packet in enumerate(packets)
    ]
    text = function(tmp_path / "keys", sa_in(version, key, esn), "in")
    ran = through(tmp_path, frames, text, ["f"], convoys=convoys)
    assert [network(frame) for frame in ran.out] == packets
    if convoys:
        assert ran.counts["functions"]["f"]["copied_out"] == 0


@pytest.mark.skipif("AES-GCM" not in ipsec.CRYPT_ALGOS, reason="scapy has no AES-GCM: make setup")
@each_tunnel
def test_scapy_both_ways(tmp_path, version, key, esn, udp):
    def association(**more: Any) -> ipsec.SecurityAssociation:
        make = {4: IP, 6: IPv6}[version]
        return ipsec.SecurityAssociation(
            ipsec.ESP, SPI, crypt_algo="AES-GCM", crypt_key=key, esn_en=esn, esn=0,
            tunnel_header=make(src=WEST[version], dst=EAST[version]),
            nat_t_header=UDP(sport=4500, dport=4500) if udp else None, **more,
        )  # fmt: skip

    packets = [packet for packet in inside() if Dot1Q not in packet]
    frames = [bytes(packet) for packet in packets]
    text = function(tmp_path / "out", sa_out(version, key, esn, udp), "out")
    ran = through(tmp_path, frames, text, ["f"])
    peer = association()
    for frame, out in zip(frames, ran.out, strict=True):
        assert bytes(peer.decrypt(Ether(out).payload, verify=True)) == network(onward(frame))

    peer = association(seq_num=1)
    link = Ether(src=PEER, dst=IN_MAC)
    arriving = [bytes(link / peer.encrypt(packet.payload)) for packet in packets]
    text = function(tmp_path / "in", sa_in(version, key, esn), "in")
    ran = through(tmp_path, arriving, text, ["f"])
    assert [network(frame) for frame in ran.out] == [network(frame) for frame in frames]


def test_nothing_wrong_is_ever_delivered(tmp_path):
    """Reordered, repeated, changed, cut and late packets; what is delivered is what was sent."""
    chance = random.Random(1)
    peer = Association(SPI, SHORT)
    packets = [
        bytes(IP(src="10.2.0.1", dst="10.1.0.1", id=i) / UDP() / Raw(bytes([i % 256] * (i % 90))))
        for i in range(1, 400)
    ]
    sound = [outer(4, False, peer.seal(packet, i + 1)) for i, packet in enumerate(packets)]
    arriving: list[tuple[int, bytes]] = []
    for i, frame in enumerate(sound):
        arriving.append((i + chance.randrange(40), frame))
        if chance.random() < 0.2:
            arriving.append((i + chance.randrange(40), frame))
        if chance.random() < 0.3:
            changed = bytearray(frame)
            changed[chance.randrange(38, len(frame))] ^= 1 << chance.randrange(8)
            arriving.append((i + chance.randrange(40), bytes(changed)))
        if chance.random() < 0.2:
            whole = Ether(frame)
            esp = bytes(whole[IP].payload)
            cut = esp[: chance.randrange(len(esp))]
            arriving.append((i + chance.randrange(40), outer(4, False, cut)))
    arriving.sort(key=lambda each: each[0])
    arriving += [(10_000, outer(4, False, peer.seal(packets[0], 5000)))]
    arriving += [(10_001, frame) for frame in sound]  # behind the window
    text = function(tmp_path / "keys", sa_in(4, SHORT, False, "window 64"), "in")
    ran = through(tmp_path, [frame for _, frame in arriving], text, ["f"])
    delivered = [network(frame) for frame in ran.out]
    assert sorted(delivered) == sorted([*packets, packets[0]])
    drops = ran.drops("f")
    assert set(drops) <= {"replayed", "bad_tag", "bad_esp", "no_sa"}
    assert drops["replayed"] > len(sound)
    assert drops["bad_tag"] > 50
    assert len(arriving) == len(delivered) + sum(drops.values())
    (sa,) = ran.counts["functions"]["f"]["info"]["sas"]
    assert sa["packets"] == len(delivered)
    assert (sa["replayed"], sa["bad_tags"]) == (drops["replayed"], drops["bad_tag"])


def test_policies_of_both_directions(tmp_path):
    """What should have come in ESP and did not is dropped; what may is let in."""
    policies = (
        "[{match: {proto: icmp}, action: bypass}, {name: all, match: {dst: 10.2.0.0/16}}, "
        "{match: {dst: 10.9.0.0/16}, action: discard}]"
    )
    link = Ether(src=PEER, dst=IN_MAC)
    answers: Sequence[Packet] = [
        link / IP(src="10.2.0.1", dst="10.1.0.1") / ICMP(),
        link / IP(src="10.2.0.1", dst="10.1.0.1") / UDP(),
        link / IP(src="10.9.0.1", dst="10.1.0.1") / UDP(),
        link / IP(src="10.8.0.1", dst="10.1.0.1") / UDP(),
    ]
    text = function(tmp_path / "keys", sa_in(4, SHORT, False), "in", policies)
    ran = through(tmp_path, [bytes(packet) for packet in answers], text, ["f"])
    assert ran.out == [bytes(answers[0])]
    assert ran.drops("f") == {"unprotected": 1, "discarded": 2}


def test_what_is_too_long_is_fragmented_or_told(tmp_path):
    link = Ether(src=PEER, dst=IN_MAC)
    frames = [
        bytes(link / IP(src="10.1.0.1", dst="10.2.0.1", id=7) / UDP() / Raw(bytes(3000))),
        bytes(link / IP(src="10.1.0.1", dst="10.2.0.1", flags="DF") / UDP() / Raw(bytes(1450))),
        bytes(link / IPv6(src="2001:db8:a::1", dst="2001:db8:b::1") / UDP() / Raw(bytes(1430))),
    ]
    sas = sa_out(4, SHORT, False, False)
    text = function(tmp_path / "keys", sas, "out", more=", mtu: 1500")
    ran = through(tmp_path, frames, text, ["f"])
    assert ran.drops("f") == {"too_big": 2}
    assert all(len(frame) <= 1514 for frame in ran.out)
    peer = Association(SPI, SHORT)
    parts = sorted(
        (IP(peer.open(bytes(Ether(frame)[IP].payload)).inner) for frame in ran.out),
        key=lambda part: part.frag,
    )
    assert [part.flags.MF for part in parts] == [True, True, False]
    assert b"".join(bytes(part.payload) for part in parts) == bytes(Ether(frames[0])[IP].payload)
    four, six = (Ether(frame) for frame in ran.back)
    assert (four.dst, four[IP].src, four[ICMP].code, four[ICMP].nexthopmtu) == (
        PEER, WEST[4], 4, 1446,
    )  # fmt: skip
    assert (six[IPv6].nh, six[IPv6].payload.type, six[IPv6].payload.mtu) == (58, 2, 1446)


DESCRIPTOR = """
ports:
  in: {pcap: {read: in.pcap}}
  out: {pcap: {write: out.pcap}}
functions:
  f:
    vpn: {outside: [out], policies: [{name: all}], sa-file: sas}
chains: {all: {from: in, to: out, path: [f]}}
"""


def checked(folder: Path, mode: int, sas: str, *options: str) -> tuple[str, str]:
    """Return what `convoy check` prints, and why it refuses."""
    (folder / "sas").write_text(sas)
    (folder / "sas").chmod(mode)
    write_capture(folder / "in.pcap", [])
    (folder / "chain.yaml").write_text(DESCRIPTOR)
    done = CliRunner().invoke(app, ["check", str(folder / "chain.yaml"), *options])
    assert done.exception is None or isinstance(done.exception, InputError)
    return done.output, str(done.exception or "")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    _, why = checked(tmp_path, mode, sa_out(4, SHORT, False, False))
    assert "chain.yaml:7: " in why
    assert "others may read or write it, and it has keys; chmod 600 it" in why


def test_keys_are_never_printed(tmp_path):
    key = SHORT.hex()[:12]
    for options in ((), ("--json",), ("--plan",)):
        printed, why = checked(tmp_path, 0o600, sa_out(4, SHORT, False, False), *options)
        assert printed
        assert why == ""
        assert key not in printed
    for wrong, words in (
        (sa_out(4, SHORT, False, False) + " esn maybe", "sas:2: esn: must be yes or no"),
        (f"out 300 {SHORT.hex()}", "sas:2: a word is not known: they are policy local"),
    ):
        printed, why = checked(tmp_path, 0o600, f"# two lines\n{wrong}\n")
        assert words in why
        assert key not in printed + why
    assert stat.S_IMODE((tmp_path / "sas").stat().st_mode) == 0o600


def test_counts_have_no_keys(tmp_path):
    text = function(tmp_path / "keys", sa_out(4, SHORT, False, False), "out")
    ran: Ran = through(tmp_path, [bytes(packet) for packet in inside(2)], text, ["f"])
    info = ran.counts["functions"]["f"]["info"]
    assert info["sas"][0]["packets"] == 4
    assert SHORT.hex()[:12] not in json.dumps(ran.counts)


def test_both_ends_in_one_chain(tmp_path):
    """West seals what comes in by `in`; east opens what it takes for come from there."""
    frames = [bytes(packet) for packet in inside()]
    west = function(tmp_path / "west", sa_out(6, LONG, True, True), "out")
    east = function(tmp_path / "east", sa_in(6, LONG, True), "in").replace("f:", "g:", 1)
    for deployment in ("inline", "pipeline"):
        ran = through(tmp_path, frames, f"{west}\n{east}", ["f", "g"], deployment=deployment)
        assert ran.out == [onward(frame) for frame in frames]
    assert OUT_MAC not in {Ether(frame).src for frame in ran.out}
