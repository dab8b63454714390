# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A convoy's NFI-ID leads its packets to an instance of a function; unknown ones are refused."""

from pathlib import Path
from typing import Any

import pytest

from convoy.frame import Outer, encode

from .conftest import read_capture, write_capture
from .test_compress import send
from .test_convoys import frame, run

PORTS = """
ports:
  in: {{pcap: {{read: {here}/in.pcap}}, convoys: {convoys}}}
  seven: {{pcap: {{write: {here}/seven.pcap}}}}
  eight: {{pcap: {{write: {here}/eight.pcap}}}}
  rest: {{pcap: {{write: {here}/rest.pcap}}}}
functions:
  one: {{firewall: {{default: allow}}}}
  other: {{firewall: {{default: allow}}}}
chains:
  a: {{from: in, to: seven, match: {{nfi: 7}}, path: [one], deployment: {deployment}}}
  b: {{from: in, to: eight, match: {{nfi: 8}}, path: [other], deployment: {deployment}}}
  c: {{from: in, to: rest, match: {rest}}}
workers: {{idle: sleep}}
"""
OUTER = Outer(
    dst_mac="02:00:00:00:00:0b", src_mac="02:00:00:00:00:99", src="192.0.2.1", dst="192.0.2.2"
)


def packets(first: int, count: int) -> list[bytes]:
    """Return packets of one SC-ID: it is the NFI-ID that tells them apart."""
    return [frame(100, number, 60) for number in range(first, first + count)]


def received(
    folder: Path, frames: list[bytes], deployment: str = "inline", rest: str = "{}",
    convoys: str = "{}",
) -> tuple[dict[str, Any], dict[str, list[bytes]]]:  # fmt: skip
    write_capture(folder / "in.pcap", frames)
    counts = run(PORTS, folder, here=folder, deployment=deployment, rest=rest, convoys=convoys)
    return counts, {
        name: read_capture(folder / f"{name}.pcap") for name in ("seven", "eight", "rest")
    }


def drops(counts: dict[str, Any]) -> dict[str, int]:
    return {why: n for why, n in counts["ports"]["in"]["drops"].items() if n}


@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
def test_packets_go_to_the_instance_of_their_convoy(tmp_path: Path, deployment: str) -> None:
    convoys = [encode(packets(100 * i, 1 + i % 5), OUTER, (7, 8)[i % 2]) for i in range(90)]
    alone = packets(9000, 3)
    counts, out = received(tmp_path, [*convoys[:40], *alone, *convoys[40:]], deployment)
    for nfi, name, function in ((0, "seven", "one"), (1, "eight", "other")):
        expected = [one for i in range(nfi, 90, 2) for one in packets(100 * i, 1 + i % 5)]
        assert out[name] == expected
        assert counts["functions"][function]["packets"] == len(expected)
    assert out["rest"] == alone
    assert drops(counts) == {}
    assert counts["ports"]["in"]["convoys_by_nfi"] == {"7": 45, "8": 45}


def test_convoys_to_unknown_instances_are_refused(tmp_path: Path) -> None:
    frames = [encode(packets(10 * i, 4), OUTER, nfi) for i, nfi in enumerate((0, 7, 9, 65535))]
    counts, out = received(tmp_path, frames)
    assert out == {"seven": packets(10, 4), "eight": [], "rest": []}
    assert drops(counts) == {"unknown_nfi": 3}
    assert counts["ports"]["in"]["convoys_by_nfi"] == {"7": 1, "8": 0}


def test_what_is_alone_has_its_chain_by_its_scid(tmp_path: Path) -> None:
    mine, others = packets(0, 2), [frame(101, 0, 60)]
    counts, out = received(tmp_path, [*mine, *others], rest="{vlan: 100}")
    assert out == {"seven": [], "eight": [], "rest": mine}
    assert drops(counts) == {"no_chain": 1}


def test_other_checks_go_first(tmp_path: Path) -> None:
    frames = [encode(packets(0, 2), OUTER, 9), encode(packets(2, 2), OUTER, 7)]
    counts, out = received(tmp_path, frames, convoys="{from: [192.0.2.7]}")
    assert drops(counts) == {"unknown_sender": 2}
    assert not any(out.values())


def test_compressed_convoys(tmp_path: Path) -> None:
    sent = packets(0, 60)
    middle, _ = send(sent, tmp_path, ", nfi: 8")
    assert len(middle) < 10
    counts, out = received(tmp_path, middle, convoys="{expand: lz4}")
    assert out["eight"] == sent
    assert counts["ports"]["in"]["convoys_by_nfi"] == {"7": 0, "8": len(middle)}
