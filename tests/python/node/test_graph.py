# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Service function graphs: a classifier's outputs lead to other chains, real packets through it.

The packets come one by one and in convoys; either way each leaves where its rule says, marked and
tagged, with no packet lost or changed otherwise.
"""

import struct
from pathlib import Path
from typing import Any

import pytest

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.picture import pictures
from convoy.chain.plan import make_plan
from convoy.host.machine import this_machine
from convoy.host.node import Node

from .conftest import captures, read_capture, write_capture

GRAPH = """
ports:
  in: {{pcap: {{read: {read}}}{convoys}}}
  calls: {{pcap: {{write: {folder}/calls.pcap}}}}
  web: {{pcap: {{write: {folder}/web.pcap}}}}
  bulk: {{pcap: {{write: {folder}/bulk.pcap}}}}
functions:
  sort:
    classifier:
      rules:
        - {{match: {{proto: udp, dport: 5060}}, dscp: 46, output: voice}}
        - {{match: {{proto: tcp, dport: 80}}, vlan: 20, output: other}}
      outputs: {{voice: to-calls, other: more}}
  again:
    classifier:
      rules: [{{match: {{src: 10.0.0.0/25}}, output: here}}]
      outputs: {{here: to-web}}
  count: {{firewall: {{default: allow}}}}
chains:
  all: {{from: in, to: bulk, path: [sort, count], deployment: {deployment}}}
  to-calls: {{to: calls, path: [count]}}
  more: {{to: bulk, path: [again]}}
  to-web: {{to: web}}
"""
MACS = bytes.fromhex("02000000000102000000000a")


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(number: int, proto: int, port: int, tos: int = 0, vlan: int | None = None) -> bytes:
    payload = struct.pack(">HHHH", 1000, port, 12 + number % 200, 0) + number.to_bytes(4, "big")
    payload += bytes(number % 200)
    head = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(payload), number & 0xFFFF, 0, 64, proto, 0)
    addresses = bytes([10, 0, 0, number % 256, 192, 0, 2, 1])
    total = checksum(head + addresses)
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return MACS + tag + b"\x08\x00" + head[:10] + total.to_bytes(2, "big") + addresses + payload


KINDS = [(17, 5060), (6, 80), (6, 443), (17, 53)]


def run(text: str, folder: Path, **values: Any) -> dict[str, Any]:
    machine = this_machine()
    filled = text.format(folder=folder, **values)
    with Node(make_plan(loads(filled, machine, folder), machine).data) as node:
        counts = node.finish()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["held"] == 0
    return counts


def in_convoys(frames: list[bytes], folder: Path) -> Path:
    """Aggregate the frames by a node of its own; return the capture of its convoys."""
    write_capture(folder / "plain.pcap", frames)
    text = f"""
ports:
  in: {{{{pcap: {{{{read: {folder}/plain.pcap}}}}}}}}
  out: {{{{pcap: {{{{write: {folder}/convoys.pcap}}}}, convoys: {{{{ip: 192.0.2.1}}}}}}}}
next-hops: {{{{b: {{{{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}}}}}}}
chains: {{{{all: {{{{from: in, to: out}}}}}}}}
"""
    run(text, folder)
    assert len(read_capture(folder / "convoys.pcap")) < len(frames) / 3
    return folder / "convoys.pcap"


@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
@pytest.mark.parametrize("convoys", [False, True], ids=["one by one", "in convoys"])
def test_each_leaves_where_its_rule_says(tmp_path: Path, convoys: bool, deployment: str):
    numbers = range(3000)
    kinds = [KINDS[number * 7 % 11 % 4] for number in numbers]
    frames = [packet(number, *kind) for number, kind in zip(numbers, kinds, strict=True)]
    read = in_convoys(frames, tmp_path) if convoys else write_capture(tmp_path / "in.pcap", frames)
    extra = ", convoys: {}" if convoys else ""
    counts = run(GRAPH, tmp_path, read=read, convoys=extra, deployment=deployment)
    each = list(zip(numbers, kinds, strict=True))
    calls = [packet(n, *kind, tos=184) for n, kind in each if kind == KINDS[0]]
    tagged = {n: packet(n, *kind, vlan=20) for n, kind in each if kind == KINDS[1]}
    bulk = [packet(n, *kind) for n, kind in each if kind in KINDS[2:]]
    assert read_capture(tmp_path / "calls.pcap") == calls
    assert read_capture(tmp_path / "web.pcap") == [tagged[n] for n in tagged if n % 256 < 128]
    at_bulk = read_capture(tmp_path / "bulk.pcap")
    assert [frame for frame in at_bulk if frame[12:14] == b"\x08\x00"] == bulk
    assert [frame for frame in at_bulk if frame[12:14] == b"\x81\x00"] == [
        tagged[n] for n in tagged if n % 256 >= 128
    ]
    functions = counts["functions"]
    assert functions["sort"]["outputs"] == {"voice": len(calls), "other": len(tagged)}
    assert functions["count"]["packets"] == len(calls) + len(bulk)
    assert (functions["sort"]["copied_out"] > 0) == convoys


@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.stem)
def test_other_peoples_traffic(tmp_path: Path, capture: Path):
    counts = run(GRAPH, tmp_path, read=capture, convoys="", deployment="inline")
    sent = sum(len(read_capture(tmp_path / f"{name}.pcap")) for name in ("calls", "web", "bulk"))
    assert sent == counts["accounting"]["sent"]


BAD = [
    ("other: more}", "other: mroe}", "sort.classifier.outputs.other: 'mroe': no chain is called"),
    ("other: more}", "other: all}", "sort.classifier.outputs.other: 'all': that chain comes in by"),
    ("{{here: to-web}}", "{{here: more}}", "again.classifier.outputs.here: 'more': leads back to"),
    ("output: voice", "output: voices", "rule 1: 'voices' is not among the outputs"),
    (
        "  to-web: {{to: web}}",
        "  to-web: {{to: web}}\n  lost: {{to: web}}",
        "lost.from: is missing",
    ),
    ("to-web: {{to: web}}", "to-web: {{to: web, both-ways: true}}", "is for chains that come in"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[row[2] for row in BAD])
def test_what_leads_nowhere_is_refused(tmp_path: Path, old: str, new: str, message: str):
    assert old in GRAPH
    text = GRAPH.replace(old, new)
    write_capture(tmp_path / "in.pcap", [])
    values = {"read": tmp_path / "in.pcap", "convoys": "", "deployment": "inline"}
    with pytest.raises(DescriptorError) as error:
        loads(text.format(folder=tmp_path, **values), this_machine(), tmp_path)
    assert message in str(error.value)


def test_the_picture_shows_the_graph(tmp_path: Path):
    write_capture(tmp_path / "in.pcap", [])
    values = {"read": tmp_path / "in.pcap", "convoys": "", "deployment": "inline"}
    machine = this_machine()
    loaded = loads(GRAPH.format(folder=tmp_path, **values), machine, tmp_path)
    drawn = dict(pictures(make_plan(loaded, machine).data))
    assert "voice ▶ to-calls" in drawn["all: everything"][0]
    assert drawn["to-calls: from outputs"][0].startswith("sort.voice ──▶ ")
