# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Bytes of packets in tunnels: functions see and count what is inside, ports all of it."""

import struct
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.run import run
from convoy.host.machine import this_machine

from .conftest import read_capture, write_capture

TEXT = """
ports: {a: {pcap: {read: in.pcap}}, b: {pcap: {write: out.pcap}}}
functions: {inner: {firewall: {default: allow}}, outer: {firewall: {default: allow}}}
chains:
  tenant: {match: {vni: 5000}, from: a, to: b, path: [inner]}
  rest: {from: a, to: b, path: [outer]}
"""
INNER = b"\x02\0\0\0\0\xaa\x02\0\0\0\0\xbb\x88\xb5" + bytes(46)


def tunnel(vni: int) -> bytes:
    """A frame with an inner one in it."""
    vxlan = struct.pack(">II", 0x08000000, vni << 8) + INNER
    udp = struct.pack(">HHHH", 50000, 4789, 8 + len(vxlan), 0) + vxlan
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0)
    return INNER[:12] + b"\x08\0" + ip + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + udp


@pytest.mark.parametrize("vnis", [(5000,), (5000, 5001), (5001,)], ids=["all", "some", "none"])
def test_bytes(tmp_path: Path, vnis: tuple[int, ...]):
    frames = [tunnel(vni) for vni in vnis for _ in range(100)]
    write_capture(tmp_path / "in.pcap", frames)
    machine = this_machine()
    counts = run(tmp_path, make_plan(loads(TEXT, machine, tmp_path), machine)).counts
    assert sorted(read_capture(tmp_path / "out.pcap")) == sorted(frames)
    assert counts["ports"]["a"]["rx_bytes"] == sum(map(len, frames))
    assert counts["ports"]["b"]["tx_bytes"] == sum(map(len, frames))
    inside = 100 * (5000 in vnis)
    assert counts["functions"]["inner"]["bytes"] == inside * len(INNER)
    assert counts["functions"]["outer"]["bytes"] == (len(frames) - inside) * len(frames[0])
