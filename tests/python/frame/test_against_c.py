# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What C sends, Python reads, and the other way round; of any bytes they think the same."""

from hypothesis import example, given
from hypothesis import strategies as st

from convoy.frame import FrameError, decode, pack

from .conftest import GOOD, lookalikes, lots_of_packets, nexthops

MTUS = st.sampled_from([128, 1500, 9000])


@given(st.one_of(lots_of_packets(), lookalikes()), nexthops(MTUS), st.integers(0, 65535))
def test_both_send_the_same(c_side, packets, outer, nfi):
    assert c_side.send(packets, outer, nfi) == pack(packets, outer, nfi)


@given(lots_of_packets(min_bytes=14), nexthops(MTUS), st.integers(0, 65535))
def test_python_reads_what_c_sends(c_side, packets, outer, nfi):
    outer = outer.model_copy(update={"source_port": None})
    received: list[bytes] = []
    for frame in c_side.send(packets, outer, nfi):
        if frame in packets:
            received.append(frame)
            continue
        convoy = decode(frame, outer.port)
        assert convoy.nfi == nfi
        assert 49152 <= (convoy.outer.source_port or 0) <= 65535
        received += convoy.packets
    assert received == packets


@given(lots_of_packets(min_bytes=14), nexthops(MTUS), st.integers(0, 65535))
def test_c_reads_what_python_sends(c_side, packets, outer, nfi):
    received: list[bytes] = []
    for frame in pack(packets, outer, nfi):
        if frame in packets:
            received.append(frame)
            continue
        answer = c_side.walk(frame, outer.port)
        assert answer["reason"] == "ok"
        assert answer["nfi"] == nfi
        received += [bytes.fromhex(packet) for packet in answer["packets"]]
    assert received == packets


def same_opinion(c_side, frame: bytes) -> None:
    answer = c_side.walk(frame, 51966)
    try:
        convoy = decode(frame)
    except FrameError as error:
        assert answer["reason"] == error.reason
    else:
        assert answer["reason"] == "ok"
        assert answer["packets"] == [packet.hex() for packet in convoy.packets]
        assert answer["nfi"] == convoy.nfi


@given(st.sampled_from(GOOD), st.data())
def test_of_changed_frames_they_think_the_same(c_side, vector, data):
    frame = bytearray.fromhex(vector["frame"])
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(frame)), st.integers(0, len(frame))))
    same_opinion(c_side, bytes(frame[:cut]))


@example(b"")
@given(st.binary(max_size=150))
def test_of_any_payload_they_think_the_same(c_side, payload):
    udp = (8 + len(payload)).to_bytes(2, "big")
    ethernet = bytes.fromhex("02000000000202000000000186dd")
    ip = bytes.fromhex("60000000") + udp + bytes.fromhex("1140") + bytes(32)
    ports = bytes.fromhex("c000cafe") + udp + bytes(2)
    same_opinion(c_side, ethernet + ip + ports + payload)
    # Most random payloads end at the version: the same with a right first byte.
    same_opinion(c_side, ethernet + ip + ports + b"\x10" + payload[1:])
