# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets in two frames between two nodes: what comes out is what went in."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoy.base.problem import DescriptorError
from convoy.client import Client
from convoy.errors import InputError
from convoy.frame.fragments import Reassembly, read_fragments
from convoy.frame.read import may_be_convoy
from convoy.frame.reason import FrameError
from convoy.host.node import Node

from . import test_compress
from .conftest import captures
from .test_compress import _packets, packet
from .test_convoys import SENDER, live_plan, plan

CAPTURES = [path for path in captures() if path.suffix in (".pcap", ".pcapng", ".cap")]
HOP = '{{b: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, fragment: true{more}}}}}'
TAKES = "{ip: 192.0.2.2, reassemble: true}"


def send(frames: list[bytes], folder: Path, more: str = "") -> tuple[list[bytes], dict[str, Any]]:
    """Return what a node makes of frames that it may cut, and its counts."""
    return test_compress.send(frames, folder, more, HOP)


def receive(
    middle: list[bytes], folder: Path, convoys: str = TAKES
) -> tuple[list[bytes], dict[str, Any]]:
    """Return what a node makes of frames that another sent, and its counts."""
    return test_compress.receive(middle, folder, convoys)


def numbers_of(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(one[14:18]) for one in frames]


def expected(middle: list[bytes]) -> tuple[list[bytes], int]:
    """Return the packets of frames, by the decoder in Python, and how many rests were in vain."""
    reassembly, out, lost = Reassembly(), [], 0
    for frame in middle:
        if not may_be_convoy(frame):
            out.append(frame)
            continue
        try:
            packets, dropped = reassembly.take(frame)
        except FrameError:
            continue
        out += packets
        lost += dropped
    return out, lost


SIZES = st.lists(
    st.one_of(st.just(508), st.integers(18, 200), st.integers(400, 1514)), min_size=1, max_size=80
)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(SIZES, st.sampled_from(["", ", encapsulate: true", ", mtu: 600"]), st.data())
def test_any_traffic_through_loss_reordering_and_duplication(
    tmp_path: Path, sizes: list[int], more: str, data: Any
) -> None:
    frames = [packet(i, size) for i, size in enumerate(sizes)]
    middle, sent = send(frames, tmp_path, more)
    assert sent["accounting"]["dropped"] == 0 or "encapsulate" in more or "600" in more
    whole, _ = receive(middle, tmp_path)
    if sent["accounting"]["dropped"] == 0:
        assert whole == frames
    assert max(map(len, middle)) <= 1514
    order = data.draw(st.lists(st.sampled_from(range(len(middle))), max_size=2 * len(middle)))
    shaken = [middle[i] for i in order] or middle
    out, received = receive(shaken, tmp_path)
    want, lost = expected(shaken)
    assert out == want
    assert received["ports"]["in"]["drops"]["lost_fragment"] == lost
    assert received["accounting"]["conserved"]
    assert all(one == frames[number] for number, one in zip(numbers_of(out), out, strict=True))


@pytest.mark.parametrize("lost", range(1, 20))
def test_one_lost_frame_costs_its_packets_and_those_that_were_cut(
    tmp_path: Path, lost: int
) -> None:
    frames = [packet(i, 508) for i in range(60)]
    middle, _ = send(frames, tmp_path)
    assert len(middle) <= 0.36 * len(frames) + 1
    parts = read_fragments(middle[lost])
    out, received = receive(middle[:lost] + middle[lost + 1 :], tmp_path)
    whole = len(parts.packets)
    cut = (parts.rest is not None) + (parts.total > 0)
    assert len(out) == len(frames) - whole - cut
    assert out == [frames[number] for number in numbers_of(out)]
    # A packet counts where its rest is: of the two that were cut, the second one's came.
    assert received["ports"]["in"]["drops"]["lost_fragment"] == (parts.total > 0)


@pytest.mark.parametrize(
    ("size", "most"),
    [(508, 0.36), (570, 0.40), (742, 0.53), (1000, 0.71), (1250, 0.89), (1496, 1.0)],
)
def test_frames_a_packet(tmp_path: Path, size: int, most: float) -> None:
    frames = [packet(i, size) for i in range(600)]
    middle, sent = send(frames, tmp_path)
    assert len(middle) <= most * len(frames) + 30  # at the end of a poll a frame is not full
    assert sent["next_hops"]["b"]["packets"] == len(frames)
    out, received = receive(middle, tmp_path)
    assert out == frames
    assert received["accounting"]["received"] == len(frames)


def test_imix_shares_frames(tmp_path: Path) -> None:
    sizes = ([60] * 7 + [566] * 4 + [1514]) * 50
    frames = [packet(i, size) for i, size in enumerate(sizes)]
    middle, _ = send(frames, tmp_path)
    assert len(middle) <= 0.27 * len(frames)
    assert receive(middle, tmp_path)[0] == frames


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
def test_captures(tmp_path: Path) -> None:
    seen = 0
    for path in CAPTURES:
        frames = [one for one in _packets(path) if 14 <= len(one) <= 1514]
        if not frames:
            continue
        middle, sent = send(frames, tmp_path)
        assert sent["accounting"]["dropped"] == 0, path
        out, _ = receive(middle, tmp_path)
        assert out == frames, path
        seen += len(frames)
    assert seen > 0


def test_who_does_not_reassemble_drops_by_name(tmp_path: Path) -> None:
    frames = [packet(i, 508) for i in range(30)]
    middle, _ = send(frames, tmp_path)
    out, counts = receive(middle, tmp_path, "{}")
    assert out == frames[:0]
    port = counts["ports"]["in"]
    assert port["convoys_refused"]["bad_type"] == port["drops"]["bad_convoy"] == len(middle)


def test_from_others_nothing_is_reassembled(tmp_path: Path) -> None:
    middle, _ = send([packet(i, 508) for i in range(30)], tmp_path)
    out, counts = receive(middle, tmp_path, "{reassemble: true, from: [192.0.2.77]}")
    assert out == []
    assert counts["ports"]["in"]["drops"]["unknown_sender"] == len(middle)
    from_it = "{reassemble: true, from: [192.0.2.77, 192.0.2.1]}"
    assert len(receive(middle, tmp_path, from_it)[0]) == 30


def test_hostile_frames(tmp_path: Path) -> None:
    """Each byte of a good frame's headers changed, and then the good ones."""
    frames = [packet(i, 508) for i in range(12)]
    middle, _ = send(frames, tmp_path)
    hostile = []
    for at in range(42, 60):
        for value in (0, 1, 0x7F, 0xFF):
            frame = bytearray(middle[1])
            frame[at] = value
            hostile.append(bytes(frame))
    out, counts = receive(hostile + middle, tmp_path)
    assert counts["accounting"]["conserved"]
    want, lost = expected(hostile + middle)
    assert out == want
    assert counts["ports"]["in"]["drops"]["lost_fragment"] == lost
    # One packet at most: what was cut between the last hostile frame's number and the next.
    assert len(set(frames) & set(out[-12:])) >= 11


@pytest.mark.parametrize(
    ("more", "words"),
    [(", compress: lz4", "has fragment and compress"), (", fragment: 7", "fragment")],
)
def test_wrong_descriptors(tmp_path: Path, more: str, words: str) -> None:
    hops = HOP.format(more=more)
    if "7" in more:
        hops = hops.replace("fragment: true, ", "")
    with pytest.raises(DescriptorError, match=words):
        plan(SENDER, tmp_path, read="i", write="o", deployment="inline", path="[]", hops=hops)


def test_a_running_node_takes_and_refuses_it(tmp_path: Path) -> None:
    with (
        Node(live_plan(tmp_path).data) as node,
        Client(node.running.control, 30) as client,
    ):
        hop = {"name": "b", "port": "out", "mac": "02:00:00:00:00:0b", "ip": "192.0.2.2"}
        hop |= {"match": [{}]}
        for turn in range(10):
            client.put_next_hop({**hop, "fragment": turn % 2 == 0})
        with pytest.raises(InputError, match="fragment: is not for compressed convoys"):
            client.put_next_hop({**hop, "fragment": True, "compress": "lz4"})
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0
