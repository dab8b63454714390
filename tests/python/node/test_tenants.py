# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two chains by VLAN id on the same ports do not leak into each other."""

import random
import struct
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.run import run
from convoy.host.machine import this_machine

from .conftest import read_capture, write_capture

TENANTS = {10: "02:00:00:00:00:10", 20: "02:00:00:00:00:20"}
TEXT = f"""
ports: {{a: {{pcap: {{read: in.pcap}}}}, b: {{pcap: {{write: out.pcap}}}}}}
functions:
  red: {{l2fwd: {{mode: rewrite, dst: "{TENANTS[10]}", src: "{TENANTS[10]}"}}}}
  blue: {{l2fwd: {{mode: rewrite, dst: "{TENANTS[20]}", src: "{TENANTS[20]}"}}}}
  more: {{firewall: {{default: allow}}}}
chains:
  red: {{match: {{vlan: 10}}, from: a, to: b, path: [more, red], deployment: DEPLOYMENT}}
  blue: {{match: {{vlan: 20}}, from: a, to: b, path: [more, blue], deployment: DEPLOYMENT}}
"""
REST = "  rest: {from: a, to: b}\n"
SEED = 4


def frame(number: int, tags: tuple[int, ...]) -> bytes:
    """A frame whose payload is its number."""
    header = b"\x02\0\0\0\0\xaa\x02\0\0\0\0\xbb"
    for tag in tags:
        header += struct.pack(">HH", 0x8100, tag)
    return header + struct.pack(">HI", 0x88B5, number) + bytes(40)


def traffic() -> list[bytes]:
    rng = random.Random(SEED)
    kinds = [(10,), (20,), (30,), (), (10, 20), (20, 10), (0,), (10 | 0x3000,), (20 | 0xE000,)]
    return [frame(i, rng.choice(kinds)) for i in range(1000)]


def outer(data: bytes) -> int | None:
    kind, tag = struct.unpack_from(">HH", data, 12)
    return tag & 0xFFF if kind == 0x8100 else None


@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
@pytest.mark.parametrize("rest", [False, True])
def test_no_leak(tmp_path: Path, deployment: str, rest: bool):
    frames = traffic()
    write_capture(tmp_path / "in.pcap", frames)
    text = TEXT.replace("DEPLOYMENT", deployment) + REST * rest
    machine = this_machine()
    plan = make_plan(loads(text, machine, tmp_path), machine)
    counts = run(tmp_path, plan).counts
    wanted = []
    for data in frames:
        mac = TENANTS.get(outer(data) if outer(data) is not None else -1)
        if mac:
            wanted.append(bytes.fromhex(mac.replace(":", "")) * 2 + data[12:])
        elif rest:
            wanted.append(data)
    assert sorted(read_capture(tmp_path / "out.pcap")) == sorted(wanted)
    for name, tag in (("red", 10), ("blue", 20)):
        mine = [data for data in frames if outer(data) == tag]
        assert counts["functions"][name]["packets"] == len(mine)
    assert counts["ports"]["a"]["drops"]["no_chain"] == len(frames) - len(wanted)
    assert counts["accounting"]["conserved"]
