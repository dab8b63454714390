# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Other people's TCP through a firewall that checks windows: what it drops, no receiver could use.

A capture lacks packets that whoever made it has missed. What acknowledges these acknowledges what
was not seen, and is dropped, by Linux as well. Nothing else is, but resets behind what was
acknowledged.
"""

from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from .conftest import captures, read_capture
from .test_convoys import run

CAPTURES = [path for path in captures() if path.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"]
pytestmark = pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
NODE = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{pcap: {{write: {write}}}}}
functions:
  fw: {{firewall: {{stateful: true, default: allow, tcp-loose: true, tcp-window: all}}}}
chains: {{all: {{from: in, to: out, path: [fw]}}}}
flows: {{max: 65536, max-ipv6: 65536}}
workers: {{idle: sleep}}
"""


def _is_after(one: int, other: int) -> bool:
    return 0 < (one - other) % 2**32 < 2**31


class Seen:
    """What was sent and acknowledged, by the two ends and the direction."""

    def __init__(self) -> None:
        self.sent: dict[object, int] = {}
        self.acked: dict[object, int] = {}

    def usable(self, frame: bytes, passed: bool) -> bool:
        """Note a frame; return whether its receiver could use it."""
        packet = Ether(frame)
        if TCP not in packet:
            return True
        ip, tcp = packet[IP if IP in packet else IPv6], packet[TCP]
        way, back = (ip.src, tcp.sport, ip.dst, tcp.dport), (ip.dst, tcp.dport, ip.src, tcp.sport)
        length = ip.len - 4 * ip.ihl if IP in packet else ip.plen
        end = tcp.seq + length - 4 * tcp.dataofs + ("S" in tcp.flags) + ("F" in tcp.flags)
        usable = not ("A" in tcp.flags and back in self.sent) or not _is_after(
            tcp.ack, self.sent[back]
        )
        if "R" in tcp.flags and back in self.acked:
            usable = usable and not _is_after(self.acked[back], tcp.seq)
        if passed:
            if way not in self.sent or _is_after(end, self.sent[way]):
                self.sent[way] = end % 2**32
            self.acked[way] = tcp.ack
        return usable


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_is_dropped_is_of_no_use(path: Path, tmp_path: Path):
    counts = run(NODE, tmp_path, read=path, write=tmp_path / "out.pcap")
    (flows,) = counts["flows"].values()
    left = iter([*read_capture(tmp_path / "out.pcap"), b""])
    seen, next_left, useful = Seen(), next(left), 0
    for frame in read_capture(path):
        passed = frame == next_left
        if passed:
            next_left = next(left)
        useful += seen.usable(frame, passed) and not passed
    # Of what could be used none was out of its window: it has another reason.
    dropped = counts["accounting"]["dropped"]
    assert useful <= dropped - flows["drops"]["tcp_out_of_window"]
