# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Compressed convoys between two nodes: what comes out is what went in."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoy.base.problem import DescriptorError
from convoy.client import Client
from convoy.errors import InputError
from convoy.frame.capture import read_packets
from convoy.frame.dictionary import dictionary_id, make_dictionary
from convoy.frame.read import decode
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import captures, read_capture, write_capture
from .test_convoys import HOST_A, HOST_B, SENDER, live_plan, plan, run, two_hosts, vlan_of

__all__ = ["two_hosts"]  # a fixture

CAPTURES = [path for path in captures() if path.suffix == ".pcap"]
RECEIVER = """
ports:
  in: {{pcap: {{read: {read}}}, convoys: {convoys}}}
  out: {{pcap: {{write: {write}}}}}
chains: {{all: {{from: in, to: out, path: []}}}}
workers: {{idle: sleep}}
"""
HOP = '{{b: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, compress: lz4{more}}}}}'


def send(
    frames: list[bytes], folder: Path, more: str = "", hop: str = HOP
) -> tuple[list[bytes], dict[str, Any]]:
    """Return what a node makes of frames that go to a next hop, and its counts."""
    write_capture(folder / "in.pcap", frames)
    middle = folder / "middle.pcap"
    values = {"deployment": "inline", "path": "[]", "hops": hop.format(more=more)}
    counts = run(SENDER, folder, read=folder / "in.pcap", write=middle, **values)
    return read_capture(middle), counts


def receive(middle: list[bytes], folder: Path, convoys: str) -> tuple[list[bytes], dict[str, Any]]:
    """Return what a node makes of frames that another sent, and its counts."""
    write_capture(folder / "middle.pcap", middle)
    out = folder / "out.pcap"
    counts = run(RECEIVER, folder, read=folder / "middle.pcap", write=out, convoys=convoys)
    return read_capture(out), counts


def packet(number: int, size: int) -> bytes:
    head = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5" + number.to_bytes(4)
    return (head + bytes(i * 7 & 255 for i in range(1600)))[:size]


def is_compressed(frame: bytes) -> bool:
    return frame[12:14] == b"\x08\0" and frame[36:38] == b"\xca\xfe" and frame[42] == 0x11


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.one_of(st.just(60), st.integers(18, 200), st.integers(18, 1514)), min_size=1),
    st.booleans(),
    st.data(),
)
def test_any_traffic_through_any_loss(
    tmp_path: Path, sizes: list[int], dictionary: bool, data: Any
) -> None:
    frames = [packet(i, size) for i, size in enumerate(sizes)]
    (tmp_path / "d").write_bytes(b"".join(packet(77, 300) for _ in range(9)))
    middle, sent = send(frames, tmp_path, ", dictionary: d" if dictionary else "")
    kept = [one for one in middle if data.draw(st.booleans())]
    out, _ = receive(kept, tmp_path, "{ip: 192.0.2.2, expand: lz4, dictionaries: [d]}")
    numbers = [int.from_bytes(one[14:18]) for one in out]
    assert numbers == sorted(set(numbers))
    assert out == [frames[number] for number in numbers]
    if len(kept) == len(middle):
        assert out == frames
    compression = sent["next_hops"]["b"]["compressed"]
    assert compression["frames"] == sum(map(is_compressed, middle))
    assert compression["bytes_after"] <= compression["bytes_before"]


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
def test_captures_with_a_dictionary_of_them(tmp_path: Path) -> None:
    frames = [one for path in CAPTURES for one in _packets(path) if len(one) <= 128]
    (tmp_path / "d").write_bytes(make_dictionary(frames[::2]))
    middle, sent = send(frames, tmp_path, ", dictionary: d")
    out, received = receive(middle, tmp_path, "{expand: lz4, dictionaries: [d]}")
    assert out == frames
    compression = sent["next_hops"]["b"]["compressed"]
    assert received["ports"]["in"]["expanded"]["frames"] == compression["frames"] > 0
    assert compression["bytes_after"] < 0.75 * compression["bytes_before"]
    assert sum(map(len, middle)) == sent["ports"]["out"]["tx_bytes"]


def _packets(path: Path) -> list[bytes]:
    try:
        return read_packets(path)
    except Exception:
        return []


def test_who_does_not_expand_drops_by_name(tmp_path: Path) -> None:
    frames = [packet(i, 60) for i in range(100)]
    (tmp_path / "d").write_bytes(packet(1, 300))
    (tmp_path / "e").write_bytes(packet(2, 300))
    middle, _ = send(frames, tmp_path, ", dictionary: d")
    assert all(map(is_compressed, middle))
    for convoys, reason in (
        ("{}", "bad_type"),
        ("{expand: lz4}", "wrong_dictionary"),
        ("{expand: lz4, dictionaries: [e]}", "wrong_dictionary"),
    ):
        out, counts = receive(middle, tmp_path, convoys)
        assert out == []
        port = counts["ports"]["in"]
        assert port["convoys_refused"][reason] == len(middle) == port["drops"]["bad_convoy"]


def test_from_others_nothing_is_expanded(tmp_path: Path) -> None:
    middle, _ = send([packet(i, 60) for i in range(100)], tmp_path)
    out, counts = receive(middle, tmp_path, "{expand: lz4, from: [192.0.2.77]}")
    assert out == []
    assert counts["ports"]["in"]["drops"]["unknown_sender"] == len(middle)
    assert counts["ports"]["in"]["expanded"]["frames"] == 0


def test_the_command_makes_a_dictionary(tmp_path: Path) -> None:
    write_capture(tmp_path / "in.pcap", [packet(i, 60) for i in range(100)])
    command = [sys.executable, "-c", "from convoy.cli.main import main; main()"]
    command += ["dictionary", "in.pcap", "-o", "d", "--size", "1000"]
    done = subprocess.run(
        [*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    made = (tmp_path / "d").read_bytes()
    document = json.loads(done.stdout)
    assert document["bytes"] == len(made) <= 1000
    assert document["id"] == dictionary_id(made)
    (tmp_path / "in.pcap").write_bytes(b"no capture")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "in.pcap: is no capture; give a pcap or pcapng file" in done.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (", compress: gzip", "lz4"),
        (", dictionary: nowhere", "no such file"),
        (", dictionary: empty", "has 0 bytes, must be 1 to 65536"),
        (", dictionary: long", "has 65537 bytes, must be 1 to 65536"),
    ],
)
def test_wrong_descriptors(tmp_path: Path, more: str, words: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "long").write_bytes(bytes(65537))
    hops = HOP.format(more=more).replace("lz4, compress:", "")
    with pytest.raises(DescriptorError, match=words):
        plan(SENDER, tmp_path, read="i", write="o", deployment="inline", path="[]", hops=hops)


def test_expanded_frames_are_what_was_compressed(tmp_path: Path) -> None:
    frames = [packet(i, 60) for i in range(23)]
    middle, _ = send(frames, tmp_path)
    assert [one for frame in middle for one in decode(frame, dictionaries=[b""]).packets] == frames


def test_compression_changes_while_packets_flow(tmp_path: Path) -> None:
    with (
        Node(live_plan(tmp_path).data) as node,
        Client(node.running.control, 30) as client,
    ):

        def frames() -> int:
            compressed = client.next_hops()["b"].get("compressed")
            return int(compressed["frames"]) if compressed else 0

        hop = {"name": "b", "port": "out", "mac": "02:00:00:00:00:0b", "ip": "192.0.2.2"}
        hop |= {"match": [{}]}
        for turn in range(30):
            client.put_next_hop(hop)
            assert "compressed" not in client.next_hops()["b"]
            known = base64.b64encode(packet(turn, 300 + turn)).decode()
            client.put_next_hop({**hop, "compress": "lz4", "dictionary": known})
            before = frames()
            wait_for(lambda before=before: frames() > before, 20, "compressed frames")
        for key, value, words in (
            ("dictionary", "AAA", "dictionary: must be 1 to 65536 bytes in base64"),
            ("dictionary", "AA=A", "dictionary: must be 1 to 65536 bytes in base64"),
            ("dictionary", "", "dictionary: must be 1 to 65536 bytes in base64"),
            ("dictionary", "AAAA" * 21846, "dictionary: must be 1 to 65536 bytes in base64"),
            ("dictionary", 7, "dictionary: must be 1 to 65536 bytes in base64"),
            ("compress", "zip", "compress"),
        ):
            with pytest.raises(InputError, match=words):
                client.put_next_hop({**hop, "compress": "lz4", key: value})
        with pytest.raises(InputError, match="dictionary: is for compress: lz4; add that"):
            client.put_next_hop({**hop, "dictionary": "AAAA"})
        client.remove_next_hop("b")
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
def test_captures_compressed_between_two_hosts(
    two_hosts: list[tuple[str, ...]], tmp_path: Path
) -> None:
    """Short packets of all captures, compressed on the wire between two nodes."""
    frames = [
        one
        for path in CAPTURES  # as many as fit into the kernel's receive ring all at once
        for one in [p for p in _packets(path) if len(p) <= 128 and vlan_of(p) < 0][:100]
    ]
    (tmp_path / "d").write_bytes(make_dictionary(frames[1::2]))
    out = tmp_path / "out.pcap"
    read = write_capture(tmp_path / "in.pcap", frames)
    sender = HOST_A.replace("192.0.2.2}}", "192.0.2.2, compress: lz4, dictionary: d}}")
    receiver = HOST_B.replace("192.0.2.2}}", "192.0.2.2, expand: lz4, dictionaries: [d]}}")
    with Node(plan(receiver, tmp_path, write=out).data, wrapper=two_hosts[1]) as b:
        with Node(plan(sender, tmp_path, read=read).data, wrapper=two_hosts[0]) as a:
            sent = a.finish()
        want = sent["accounting"]["sent"]
        wait_for(lambda: b.counts()["accounting"]["sent"] >= want, 30, "all packets at b")
        received = b.stop()
    assert sent["accounting"]["dropped"] == 0
    assert received["accounting"]["conserved"]
    assert read_capture(out) == frames
    assert sent["next_hops"]["b"]["compressed"] == received["ports"]["in"]["expanded"]
