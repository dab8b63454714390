# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A guest's packet that looks like a convoy arrives at the second guest as that packet.

Node A sends what its guest sends to node B, which disaggregates. A packet that B would take
for a convoy must not be: what is inside of it passed no function of A.
"""

from pathlib import Path
from typing import Any

import pytest

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.frame import Outer, Vlan, decode, encode
from convoy.host.machine import this_machine

from .conftest import read_capture, write_capture
from .test_convoys import TO_B, frame, run, through

FORGER = Outer(
    dst_mac="02:00:00:00:00:0b", src_mac="02:00:00:00:00:99", src="192.0.2.1", dst="192.0.2.2"
)
HIDDEN = [frame(666, i, 60) for i in range(3)]
BY_VLAN = f"{{b: {TO_B}, for: [{{vlan: 100}}]}}}}"


def forged(size: int = 0, **changes: Any) -> bytes:
    """Return a convoy that a guest makes, of `size` bytes at least."""
    hidden = [*HIDDEN, frame(666, 9, size - 250)] if size else HIDDEN
    outer = Outer(**{**FORGER.model_dump(), "mtu": 9000, **changes})
    return encode(hidden, outer, 0)


def tagged(vlan: int) -> bytes:
    return forged(vlans=(Vlan(type=0x8100, tci=vlan),))


def drops(counts: dict[str, Any], port: str) -> dict[str, int]:
    return {why: n for why, n in counts["ports"][port]["drops"].items() if n}


@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
@pytest.mark.parametrize(
    "frames",
    [
        [forged()],
        [tagged(100)],
        [forged(port=51966, src="2001:db8::1", dst="2001:db8::2")],
        [forged(), frame(-1, 1, 60)],
        [frame(-1, 1, 1000), forged(900), frame(-1, 2, 1000)],
        [forged()[:60]],  # B would refuse it as a convoy
        [forged(1400), forged(), forged(1200)],
    ],
    ids=["alone", "tagged", "IPv6", "with another", "long", "cut short", "several"],
)
def test_it_arrives_as_it_is(tmp_path: Path, frames: list[bytes], deployment: str) -> None:
    middle, out, sent, received = through(
        frames, tmp_path, deployment=deployment, path="[mac, again]"
    )
    assert out == frames
    assert drops(sent, "out") == drops(received, "in") == {}
    assert not [one for one in middle if one in frames and one[:60] == forged()[:60]]


def test_a_convoy_of_one(tmp_path: Path) -> None:
    middle, _, _, _ = through([forged()], tmp_path)
    assert [decode(one).packets for one in middle] == [(forged(),)]


def test_one_that_fits_into_no_convoy_is_dropped(tmp_path: Path) -> None:
    long, other = forged(1500), frame(-1, 1, len(forged(1500)))
    middle, out, sent, _ = through([other, long, other], tmp_path)
    assert middle == out == [other, other]
    assert drops(sent, "out") == {"looks_like_convoy": 1}


def test_one_without_a_next_hop_is_dropped(tmp_path: Path) -> None:
    """A guest need but send it in a VLAN that has no next hop."""
    frames = [frame(7, 1, 60), tagged(7), forged(), frame(-1, 2, 60)]
    middle, out, sent, _ = through(frames, tmp_path, BY_VLAN)
    assert middle == out == [frames[0], frames[3]]
    assert drops(sent, "out") == {"looks_like_convoy": 2}


PLAIN = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{pcap: {{write: {write}}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""


def test_ports_that_carry_no_convoys_let_it_pass(tmp_path: Path) -> None:
    frames = [forged(), tagged(7), forged(1500)]
    read = write_capture(tmp_path / "in.pcap", frames)
    run(PLAIN, tmp_path, read=read, write=tmp_path / "out.pcap")
    assert read_capture(tmp_path / "out.pcap") == frames


LISTED = """
ports:
  in: {{pcap: {{read: {read}}}, convoys: {{from: ["192.0.2.1", "2001:db8::1"]}}}}
  out: {{pcap: {{write: {write}}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""


def test_convoys_of_those_who_may_send_them(tmp_path: Path) -> None:
    known = [forged(), forged(src="2001:db8::1", dst="2001:db8::2")]
    others = [forged(src="192.0.2.9"), forged(src="2001:db8::9", dst="2001:db8::2")]
    plain = frame(-1, 1, 60)
    read = write_capture(tmp_path / "in.pcap", [others[0], known[0], plain, *others, known[1]])
    counts = run(LISTED, tmp_path, read=read, write=tmp_path / "out.pcap")
    assert read_capture(tmp_path / "out.pcap") == [*HIDDEN, plain, *HIDDEN]
    assert drops(counts, "in") == {"unknown_sender": 3}


@pytest.mark.parametrize(
    ("senders", "message"),
    [
        ("[]", "needs 1 or more items"),
        ("[here]", "here"),
        ("[" + "192.0.2.1, " * 17 + "]", "has 17 items, 16 is the most"),
    ],
)
def test_bad_senders(tmp_path: Path, senders: str, message: str) -> None:
    text = LISTED.format(read="/in", write="/out").replace('["192.0.2.1", "2001:db8::1"]', senders)
    with pytest.raises(DescriptorError, match=message):
        make_plan(loads(text, this_machine(), tmp_path), this_machine())
