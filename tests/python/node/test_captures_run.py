# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Captures through the examples' chains: no crash, and packets are conserved."""

import struct

import pytest
from scapy.utils import RawPcapReader

from convoy.chain.captures import with_captures
from convoy.chain.load import loads
from convoy.chain.open import open_file
from convoy.chain.plan import make_plan
from convoy.cli.run import run
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import ROOT, captures, read_capture, write_capture

CAPTURES = captures()
PCAPS = [path for path in CAPTURES if path.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"]
needs_captures = pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)


def through(example, read, write, chain=None):
    plan = open_file(ROOT / f"examples/{example}.yaml", this_machine()).plan
    return run(read, with_captures(plan, read, write, chain)).counts


def check(counts, read_frames: int, written: int):
    accounting = counts["accounting"]
    assert accounting["conserved"]
    assert accounting["received"] == read_frames
    assert accounting["held"] == 0
    assert accounting["sent"] == written
    drops = [
        sum(things["drops"].values())
        for part in ("ports", "functions")
        for things in counts[part].values()
    ]
    assert sum(drops) == accounting["dropped"]


@needs_captures
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_capture(path, tmp_path):
    counts = through("three-functions", path, tmp_path / "out.pcap")
    frames = read_capture(tmp_path / "out.pcap")
    assert counts["ports"]["outside"]["tx_packets"] == len(frames)
    assert counts["ports"]["outside"]["tx_bytes"] == sum(map(len, frames))
    with RawPcapReader(str(path)) as reader:  # scapy's own: pcap and pcapng
        read = sum(1 for _ in reader)
    check(counts, read, len(frames))
    assert counts["ports"]["inside"]["rx_packets"] == counts["functions"]["fw"]["packets"] == read
    assert read > 0


@needs_captures
@pytest.mark.parametrize(
    ("example", "chain"),
    [
        ("bridge", None),
        ("firewall-router", None),
        ("pipeline", None),
        ("two-tenants", "red"),
        ("vxlan", "tenant"),
    ],
)
def test_example(example, chain, tmp_path):
    path = next((p for p in CAPTURES if p.stem == example), PCAPS[0])
    counts = through(example, path, tmp_path / "out.pcap", chain)
    check(counts, len(read_capture(path)), len(read_capture(tmp_path / "out.pcap")))


@needs_captures
def test_pipeline_and_inline_do_the_same(tmp_path):
    packets = 0
    for path in CAPTURES[:3]:
        plan = open_file(ROOT / "examples/pipeline.yaml", this_machine()).plan
        outputs = []
        for stages in (plan.data["stages"], inline(plan.data["stages"])):
            write = tmp_path / "out.pcap"
            data = {**plan.data, "stages": stages}
            run(path, with_captures(type(plan)(data), path, write, None))
            outputs.append(read_capture(write))
        assert outputs[0] == outputs[1]
        packets += len(outputs[0])
    assert packets


def inline(stages):
    first, *_, last = stages
    path = [name for stage in stages for name in stage["path"]]
    return [{**first, "path": path, "sink": last["sink"]}]


def long_frame(size: int) -> bytes:
    """Return a UDP frame as a host that lets its network card cut hands it over."""
    payload = bytes(i * 7 & 0xFF for i in range(size - 42))
    udp = struct.pack(">HHHH", 5000, 53, len(payload) + 8, 0)
    ip = bytearray(
        struct.pack(">BBHHHBBH4s4s", 0x45, 0, len(udp) + len(payload) + 20, 1, 0, 64, 17, 0,
                    b"\x0a\0\0\1", b"\x0a\0\0\2")
    )  # fmt: skip
    struct.pack_into(">H", ip, 10, checksum(ip))
    # To the port's own address, or the router would not take it.
    return b"\x02\xc0\x17\0\0\0" + b"\x02\0\0\0\0\x09" + b"\x08\0" + bytes(ip) + udp + payload


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


@pytest.mark.parametrize("example", ["three-functions", "pipeline"])
def test_frames_of_any_length_go_through_the_three_functions_byte_for_byte(example, tmp_path):
    frames = [long_frame(size) for size in (60, 9015, 9400, 65000, 60, 65535, 1514)] * 20
    path = write_capture(tmp_path / "in.pcap", frames)
    counts = through(example, path, tmp_path / "out.pcap")
    check(counts, len(frames), len(frames))
    for before, after in zip(frames, read_capture(tmp_path / "out.pcap"), strict=True):
        header = bytearray(before[14:34])
        header[8] -= 1
        header[10:12] = b"\0\0"
        struct.pack_into(">H", header, 10, checksum(header))
        assert after[14:] == bytes(header) + before[34:]


def test_what_is_longer_than_a_packet_can_be_is_dropped_and_counted(tmp_path):
    frames = [long_frame(60), long_frame(65535) + bytes(100), long_frame(60)]
    counts = through("bridge", write_capture(tmp_path / "in.pcap", frames), tmp_path / "out.pcap")
    check(counts, 3, 2)
    assert counts["ports"]["left"]["drops"]["segmented"] == 1
    assert read_capture(tmp_path / "out.pcap") == [frames[0], frames[2]]


def test_an_mtu_of_65500_forwards(tmp_path):
    frames = [long_frame(size) for size in (60, 65000)]
    path = write_capture(tmp_path / "in.pcap", frames)
    text = (
        f"ports:\n  a: {{pcap: {{read: {path}}}, mtu: 65500}}\n"
        f"  b: {{pcap: {{write: {tmp_path / 'out.pcap'}}}, mtu: 65500}}\n"
        "chains: {w: {from: a, to: b}}\n"
    )
    (tmp_path / "chain.yaml").write_text(text)
    plan = open_file(tmp_path / "chain.yaml", this_machine()).plan
    check(run(path, plan, duration_s=60).counts, 2, 2)
    assert read_capture(tmp_path / "out.pcap") == frames


def test_an_mtu_that_no_buffer_can_hold_is_refused(tmp_path):
    (tmp_path / "chain.yaml").write_text(
        "ports:\n  a: {null:}\n  b: {vhost-user: b.sock, mtu: 65301}\n"
        "chains: {w: {from: a, to: b}}\n"
    )
    with pytest.raises(InputError, match=r"chain.yaml:3: ports.b: .*give vhost-user 65300 at most"):
        open_file(tmp_path / "chain.yaml", this_machine())


GRAPH = """
ports: {PORTS}
functions:
  cls: {classifier: {rules: [{match: {src: 10.0.0.1}, output: x}], outputs: {x: side}}}
chains:
  all: {from: in, to: out, path: [cls]}
  side: {to: out, path: []}
workers: {idle: sleep}
memory: {hugepages: never}
"""


@pytest.mark.parametrize("first", ["in", "out"])
def test_a_graph_ends_with_its_capture(tmp_path, first):
    """A chain that no port leads to is not waited for, whichever port comes first."""
    write_capture(tmp_path / "in.pcap", [long_frame(60)])
    ports = {"in": "in: {pcap: {read: in.pcap}}", "out": "out: {null: }"}
    text = ", ".join([ports.pop(first), *ports.values()])
    machine = this_machine()
    plan = make_plan(loads(GRAPH.replace("PORTS", text), machine, tmp_path), machine)
    with Node(plan.data) as node:
        wait_for(lambda: node.process.exit_code is not None, 20, "the node to end")
        assert node.finish()["accounting"]["sent"] == 1


def test_an_empty_capture(tmp_path):
    read = write_capture(tmp_path / "in.pcap", [])
    check(through("three-functions", read, tmp_path / "out.pcap"), 0, 0)
    assert read_capture(tmp_path / "out.pcap") == []
