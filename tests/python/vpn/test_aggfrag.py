# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Convoys in ESP (RFC 9347): the node beside a decoder that was written from the RFC alone."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from sfc.conftest import IN_MAC, through

from .aggfrag import AGGFRAG, Decoder, fragmented, payload
from .esp import Association
from .test_vpn import (
    EAST,
    LONG,
    PEER,
    SHORT,
    SPI,
    WEST,
    checked,
    function,
    network,
    onward,
    outer,
    sa_in,
    sa_out,
)


def inner(number: int, size: int, six: bool = False) -> bytes:
    """Return a sound IP packet, which its number makes different from others."""
    if six:
        header = IPv6(src="2001:db8:b::1", dst="2001:db8:a::1", hlim=9, fl=number)
    else:
        header = IP(src="10.2.0.1", dst="10.1.0.1", ttl=9, id=number)
    return bytes(header / UDP(sport=1, dport=2) / Raw(bytes(number % 251 for _ in range(size))))


def arriving(association: Association, payloads: list[tuple[int, bytes]]) -> list[bytes]:
    """Return frames with payloads under their sequence numbers."""
    return [
        outer(4, False, association.seal(data, sequence, next_header=AGGFRAG))
        for sequence, data in payloads
    ]


def received(folder: Path, payloads: list[tuple[int, bytes]], convoys: bool = False):
    """Return the packets that the node takes out of payloads, and its run."""
    text = function(folder / "keys", sa_in(4, SHORT, False, "aggregate yes window 64"), "in")
    frames = arriving(Association(SPI, SHORT), payloads)
    ran = through(folder, frames, text, ["f"], convoys=convoys)
    return [network(frame) for frame in ran.out], ran


def expected(payloads: list[tuple[int, bytes]]) -> list[bytes]:
    """Return what a receiver with a window of 64 and without reordering delivers."""
    decoder, seen, out = Decoder(), set[int](), []
    for sequence, data in payloads:
        if sequence in seen or max(seen, default=0) - sequence >= 64:
            continue
        seen.add(sequence)
        out += decoder.take(sequence, data)
    return out


@pytest.mark.parametrize("udp", [False, True])
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("convoys", [False, True], ids=["alone", "in convoys"])
def test_seals_what_the_rfc_says(tmp_path, version, udp, convoys):
    link = Ether(src=PEER, dst=IN_MAC)
    frames = []
    for i in range(100):
        payload_ = UDP() / Raw(bytes([i] * (i * i % 1350 if i % 10 == 0 else i)))
        four = link / IP(src="10.1.0.1", dst="10.2.0.1", id=i, ttl=9) / payload_
        six = link / IPv6(src="2001:db8:a::1", dst="2001:db8:b::1", hlim=9, tc=9) / payload_
        frames += [bytes(four), bytes(six)]
    text = function(
        tmp_path / "keys", sa_out(version, LONG, True, udp) + " aggregate yes", "out",
        more=", mtu: 1400",
    )  # fmt: skip
    ran = through(tmp_path, frames, text, ["f"], convoys=convoys)
    peer, decoder, got, highest = Association(SPI, LONG, True), Decoder(), [], 0
    assert len(ran.out) < len(frames) / 4
    for frame in ran.out:
        packet = Ether(frame)
        ip = packet[IP] if version == 4 else packet[IPv6]
        assert (ip.src, ip.dst) == (WEST[version], EAST[version])
        assert len(bytes(ip)) <= 1400
        esp = bytes(ip[UDP].payload) if udp else bytes(ip.payload)
        opened = peer.open(esp)
        assert (opened.next_header, opened.inner[:2]) == (AGGFRAG, bytes(2))
        assert opened.sequence > highest
        highest = opened.sequence
        got += decoder.take(opened.sequence, opened.inner)
    assert sorted(got) == sorted(network(onward(frame)) for frame in frames)


def test_a_long_packet_crosses_packets(tmp_path):
    """What the MTU does not let through whole is cut, and nobody is told."""
    frames = [
        bytes(Ether(src=PEER, dst=IN_MAC)
              / IP(src="10.1.0.1", dst="10.2.0.1", id=i, ttl=9, flags="DF")
              / UDP() / Raw(bytes(range(256)) * 5))
        for i in range(8)
    ]  # fmt: skip
    text = function(
        tmp_path / "keys", sa_out(4, SHORT, False, False) + " aggregate yes", "out",
        more=", mtu: 600",
    )  # fmt: skip
    ran = through(tmp_path, frames, text, ["f"])
    peer, decoder, got = Association(SPI, SHORT), Decoder(), []
    for frame in ran.out:
        assert len(frame) <= 614
        opened = peer.open(bytes(Ether(frame)[IP].payload))
        got += decoder.take(opened.sequence, opened.inner)
    assert got == [network(onward(frame)) for frame in frames]
    assert ran.back == []


@settings(deadline=None, max_examples=25,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(
    shapes=st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=1, max_size=40),
    sizes=st.lists(st.integers(1, 400).map(lambda n: max(n, 9)), min_size=1, max_size=5),
    order=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=400),
    pads=st.sets(st.integers(0, 60)),
    convoys=st.booleans(),
)
def test_receives_what_the_rfc_says(tmp_path, shapes, sizes, order, pads, convoys):
    """Loss, reordering, duplicates and padding between: the same packets, in the same order."""
    packets = [inner(i, size, six) for i, (size, six) in enumerate(shapes)]
    stream: list[bytes] = []
    for i, data in enumerate(fragmented(packets, sizes)):
        if i in pads:
            stream.append(payload(bytes(i % 7 + 1), 0))
        stream.append(data)
    sent: list[tuple[int, int, bytes]] = []  # when, number, payload
    for i, data in enumerate(stream):
        late, fate = order[i % len(order)]
        when = i + late if fate < 2 else i
        if fate != 9:
            sent.append((when, i + 1, data))
        if fate == 8:
            sent.append((when + 1, i + 1, data))
    sent.sort(key=lambda each: each[0])
    payloads = [(sequence, data) for _, sequence, data in sent]
    got, ran = received(tmp_path, payloads, convoys)
    assert got == expected(payloads)
    assert set(got) <= set(packets)
    in_a_row = [a + 1 == b for (a, _), (b, _) in pairwise(payloads)]
    if all(in_a_row) and len(payloads) == len(stream):
        assert got == packets
    assert set(ran.drops("f")) <= {"replayed", "out_of_sequence", "bad_block"}


@settings(deadline=None, max_examples=25,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 0, 1, 255]), st.integers(0, 90),
              st.lists(st.sampled_from([
                  inner(1, 0), inner(2, 30), inner(3, 9, six=True), b"\x45", b"\x45\x00\x00\x13",
                  b"\x60\x00\x00", b"\x00\x00", b"\x51", inner(4, 50)[:33], inner(4, 50)[33:]]),
                  max_size=6)),
    min_size=1, max_size=30))  # fmt: skip
def test_a_peer_that_lies_delivers_nothing_wrong(tmp_path, lies):
    payloads = [
        (i + 1, bytes([subtype, 0]) + offset.to_bytes(2, "big") + b"".join(blocks))
        for i, (subtype, offset, blocks) in enumerate(lies)
    ]
    got, ran = received(tmp_path, payloads)
    for packet in got:
        version = IP if packet[0] >> 4 == 4 else IPv6
        assert len(packet) == (version(packet).len if version is IP else version(packet).plen + 40)
    assert [packet for packet in expected(payloads) if sound(packet)] == got
    named = {"bad_block", "bad_header", "unknown_subtype", "out_of_sequence", "too_big"}
    assert set(ran.drops("f")) <= named | {"wrong_policy"}


def sound(packet: bytes) -> bool:
    """Return whether a packet has a header that its receiver takes."""
    if packet[0] >> 4 == 6:
        return True
    return packet[0] & 15 >= 5 and bytes(IP(packet)) == packet and valid_sum(packet)


def valid_sum(packet: bytes) -> bool:
    """Return whether the checksum of an IPv4 header holds."""
    header = packet[: (packet[0] & 15) * 4]
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def test_what_cannot_be_is_refused(tmp_path):
    line = sa_out(4, SHORT, False, False) + " aggregate yes"
    assert checked(tmp_path, 0o600, line)[1] == ""
    why = checked(tmp_path, 0o600, line + " df copy")[1]
    assert "sas:1: df: cannot be copy with aggregate yes" in why
