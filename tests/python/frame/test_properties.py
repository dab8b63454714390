# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What holds for any packets, any next hop and any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoy.errors import InputError
from convoy.frame import (
    MAX_PACKETS,
    FrameError,
    NotAConvoyError,
    Outer,
    decode,
    encode,
    may_be_convoy,
    pack,
)

from .conftest import GOOD, lookalikes, lots_of_packets, nexthops

OUTER = Outer(
    dst_mac="02:00:00:00:00:02", src_mac="02:00:00:00:00:01", src="192.0.2.1", dst="192.0.2.2"
)


def unpack(sent: list[bytes], outer: Outer, packets: list[bytes]) -> list[bytes]:
    """Return the packets of what was sent. Those that travel as they are must be packets."""
    received: list[bytes] = []
    for frame in sent:
        if frame in packets:
            received.append(frame)
            continue
        received += decode(frame, outer.port).packets
    return received


@given(lots_of_packets(), nexthops(), st.integers(0, 65535))
def test_packets_come_out_as_they_went_in(packets, outer, nfi):
    sent = pack(packets, outer, nfi)
    assert unpack(sent, outer, packets) == packets
    for frame in sent:
        if frame in packets:
            continue
        convoy = decode(frame, outer.port)
        assert convoy.nfi == nfi
        assert 2 <= len(convoy.packets) <= MAX_PACKETS
        assert len(frame) - 14 - 4 * len(outer.vlans) <= outer.mtu
        assert convoy.outer.model_copy(update={"mtu": outer.mtu}) == outer
        assert encode(convoy.packets, convoy.outer.model_copy(update={"mtu": 65500}), nfi) == frame


@given(lookalikes(), nexthops(), st.integers(0, 65535))
def test_nobody_but_the_sender_makes_convoys(packets, outer, nfi):
    """What the next hop takes for a convoy is one of ours, and its packets are what was sent."""
    received: list[bytes] = []
    for frame in pack(packets, outer, nfi):
        received += (
            decode(frame, outer.port).packets if may_be_convoy(frame, outer.port) else [frame]
        )
    kept = [one for one in packets if outer.fits(one) or not may_be_convoy(one, outer.port)]
    assert received == kept


@given(st.lists(st.binary(min_size=14, max_size=100), min_size=2, max_size=8), st.data())
def test_no_cut_and_no_tail_is_accepted(packets, data):
    frame = encode(packets, OUTER, 7)
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(FrameError):
        decode(frame[:cut])
    with pytest.raises(FrameError):
        decode(frame + data.draw(st.binary(min_size=1, max_size=8)))


@given(st.sampled_from(GOOD), st.data())
def test_any_change_is_read_or_refused(vector, data):
    frame = bytearray.fromhex(vector["frame"])
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        convoy = decode(bytes(frame))
    except FrameError:
        return
    assert sum(2 + len(packet) for packet in convoy.packets) < len(frame)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(frame):
    try:
        decode(frame)
    except FrameError as error:
        assert error.exit_code == 2


def test_a_flow_keeps_its_source_port():
    def port(ttl: int, sport: int) -> int | None:
        header = bytes.fromhex("0200000001020200000001010800") + b"\x45" + bytes(7)
        packet = (
            header + bytes([ttl, 17, 0, 0]) + b"\xc6\x33\x64\x01" * 2 + sport.to_bytes(2, "big")
        )
        return decode(encode([packet + bytes(26)] * 2, OUTER, 7)).outer.source_port

    assert port(64, 1000) == port(63, 1000)
    ports = {port(64, sport) for sport in range(100)}
    assert len(ports) > 90
    assert all(result is not None and 49152 <= result <= 65535 for result in ports)


@pytest.mark.parametrize(
    "packets, nfi, message",
    [
        ([], 7, "0 packets: a frame holds 1 to 255"),
        ([bytes(14)] * 256, 7, "256 packets: a frame holds 1 to 255"),
        ([bytes(60), bytes(13)], 7, "packet 2: 13 bytes: must be at least 14"),
        ([bytes(60)], 65536, "NFI-ID 65536: must be from 0 to 65535"),
        ([bytes(732), bytes(733)], 7, "2 packets take 1469 bytes: an MTU of 1500 leaves 1468"),
    ],
)
def test_what_no_frame_can_hold_is_an_error(packets, nfi, message):
    with pytest.raises(InputError) as caught:
        encode(packets, OUTER, nfi)
    assert str(caught.value) == message


def test_ends_of_two_families_are_an_error():
    with pytest.raises(ValueError, match="must be of one IP version"):
        Outer(**{**OUTER.model_dump(), "dst": "2001:db8::1"})


def test_an_ordinary_frame_says_why_it_is_none():
    with pytest.raises(NotAConvoyError, match=r"to UDP port 51966, not 4000"):
        decode(encode([bytes(60)], OUTER, 7), port=4000)
