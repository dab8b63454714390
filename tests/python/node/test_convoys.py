# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Packets that are aggregated between two nodes come out as they went in.

Node A sends convoys into a capture file or over af_packet into another network namespace, node B
disaggregates. Whatever sizes, SC-IDs, next hops and MTUs: byte-identical, in order per SC-ID.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.plan import Plan, make_plan
from convoy.client import Client
from convoy.errors import InputError
from convoy.frame import NotAConvoyError, decode
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import captures, read_capture, write_capture

CAPTURES = captures()
SENDER = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{pcap: {{write: {write}}}, convoys: {{ip: 192.0.2.1}}, mac: "02:00:00:00:00:0a"}}
next-hops: {hops}
functions: {{mac: {{bridge: {{}}}}, again: {{bridge: {{}}}}}}
chains: {{all: {{from: in, to: out, deployment: {deployment}, path: {path}}}}}
workers: {{idle: sleep}}
"""
RECEIVER = """
ports:
  in: {{pcap: {{read: {read}}}, convoys: {{ip: 192.0.2.2}}}}
  out: {{pcap: {{write: {write}}}}}
functions: {{mac: {{bridge: {{}}}}, again: {{bridge: {{}}}}}}
chains: {{all: {{from: in, to: out, deployment: {deployment}, path: {path}}}}}
workers: {{idle: sleep}}
"""
TO_B = '{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2'


def plan(text: str, folder: Path, **values: Any) -> Plan:
    machine = this_machine()
    return make_plan(loads(text.format(**values), machine, folder), machine)


def run(text: str, folder: Path, **values: Any) -> dict[str, Any]:
    """Run a node until its captures end; packets are conserved."""
    with Node(plan(text, folder, **values).data) as node:
        counts = node.finish()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["held"] == 0
    return counts


def through(
    frames: list[bytes], folder: Path, hops: str = f"{{b: {TO_B}}}}}", **values: Any
) -> tuple[list[bytes], list[bytes], dict[str, Any], dict[str, Any]]:
    """Send frames from A to B; return what travelled, what came out, and both nodes' counts."""
    values = {"deployment": "inline", "path": "[]", **values}
    read, middle, out = (folder / name for name in ("in.pcap", "middle.pcap", "out.pcap"))
    write_capture(read, frames)
    sent = run(SENDER, folder, read=read, write=middle, hops=hops, **values)
    received = run(RECEIVER, folder, read=middle, write=out, **values)
    return read_capture(middle), read_capture(out), sent, received


def vlan_of(frame: bytes) -> int:
    tagged = len(frame) >= 18 and frame[12:14] in (b"\x81\x00", b"\x88\xa8")
    return int.from_bytes(frame[14:16]) & 0xFFF if tagged else -1


def by_scid(frames: list[bytes]) -> dict[int, list[bytes]]:
    return {vlan: [f for f in frames if vlan_of(f) == vlan] for vlan in map(vlan_of, frames)}


def frame(vlan: int, number: int, size: int) -> bytes:
    head = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
    tag = b"" if vlan < 0 else b"\x81\0" + vlan.to_bytes(2)
    return (head + tag + b"\x88\xb5" + number.to_bytes(4) * 400)[:size]


def apart(one: bytes) -> list[bytes]:
    """Return the packets of a convoy, or the one that a frame is."""
    try:
        return [bytes(packet) for packet in decode(one).packets]
    except NotAConvoyError:
        return [one]


def packets_in(one: bytes) -> int:
    return len(apart(one))


@st.composite
def traffic(draw: Any) -> tuple[list[bytes], str]:
    sizes = st.one_of(st.just(60), st.integers(22, 200), st.integers(22, 1514))
    vlans = st.sampled_from([-1, 0, 7, 100, 4095])
    shape = draw(st.lists(st.tuples(vlans, sizes), min_size=1, max_size=300))
    frames = [frame(vlan, i, size) for i, (vlan, size) in enumerate(shape)]
    mtus = st.sampled_from([128, 300, 576, 1500])
    hops = [f"rest: {TO_B}, mtu: {draw(mtus)}}}"] if draw(st.booleans()) else []
    for vlan in draw(st.sets(st.sampled_from([0, 7, 100]))):
        outer = draw(st.sampled_from(["", ", vlan: 9", ", wait: 200us"]))
        hops.append(f"v{vlan}: {TO_B}, for: [{{vlan: {vlan}}}], mtu: {draw(mtus)}{outer}}}")
    return frames, "{" + ", ".join(hops) + "}"


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(traffic(), st.sampled_from(["inline", "pipeline"]))
def test_any_traffic(tmp_path: Path, case: tuple[list[bytes], str], deployment: str) -> None:
    frames, hops = case
    middle, out, sent, received = through(
        frames, tmp_path, hops, deployment=deployment, path="[mac, again]"
    )
    assert by_scid(out) == by_scid(frames)
    assert sent["accounting"]["sent"] == received["accounting"]["received"] == len(frames)
    assert sent["ports"]["out"]["tx_frames"] == len(middle)
    assert received["ports"]["in"]["rx_frames"] == len(middle)
    assert sum(map(packets_in, middle)) == len(frames)


def test_short_packets_share_frames(tmp_path: Path) -> None:
    frames = [frame(-1, i, 60) for i in range(230)]
    middle, out, sent, received = through(frames, tmp_path)
    assert out == frames
    assert all(len(one) <= 1514 for one in middle)
    assert sent["next_hops"]["b"]["packets"] == 230
    assert sent["next_hops"]["b"]["frames"] == len(middle) < 20
    assert received["ports"]["in"]["convoy_sizes"] == sent["next_hops"]["b"]["sizes"]


def test_frames_that_wait_are_fuller(tmp_path: Path) -> None:
    """The capture is read in bursts that do not fill their last frame."""
    frames = [frame(-1, i, 60) for i in range(2000)]
    write_capture(tmp_path / "in.pcap", frames)
    counts = []
    for wait in ("0", "1000us"):
        text = SENDER.replace("idle: sleep", "idle: poll")
        write, hops = tmp_path / f"{wait}.pcap", f"{{b: {TO_B}, wait: {wait}}}}}"
        values = {"read": tmp_path / "in.pcap", "deployment": "inline", "path": "[]"}
        run(text, tmp_path, write=write, hops=hops, **values)
        assert [packet for one in read_capture(write) for packet in apart(one)] == frames
        counts.append(len(read_capture(write)))
    assert counts[1] < counts[0]


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
def test_captures(tmp_path: Path) -> None:
    frames = [one for path in CAPTURES for one in _frames(path) if len(one) <= 1514]
    middle, out, sent, _ = through(frames, tmp_path)
    assert out == frames
    assert sent["ports"]["out"]["tx_frames"] == len(middle) < len(frames)


def test_refused_frames_are_one_packet_each(tmp_path: Path) -> None:
    good = through([frame(-1, i, 60) for i in range(20)], tmp_path)[0][0]
    bad = [good[:-1], good + b"\0", good[:42] + b"\x20" + good[43:]]
    write_capture(tmp_path / "bad.pcap", [good, *bad, frame(-1, 9, 60)])
    counts = run(
        RECEIVER,
        tmp_path,
        read=tmp_path / "bad.pcap",
        write=tmp_path / "out.pcap",
        deployment="inline",
        path="[]",
    )
    packets = len(read_capture(tmp_path / "out.pcap"))
    port = counts["ports"]["in"]
    assert port["drops"]["bad_convoy"] == 3
    refused = {why: n for why, n in port["convoys_refused"].items() if n}
    assert refused == {"truncated": 1, "trailing_bytes": 1, "bad_version": 1}
    assert counts["accounting"]["received"] == packets + 3


def test_convoys_to_somebody_else(tmp_path: Path) -> None:
    hops = '{c: {port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.3}}'
    middle, out, _, received = through([frame(-1, i, 60) for i in range(23)], tmp_path, hops)
    assert out == []
    assert received["ports"]["in"]["drops"]["others_convoy"] == len(middle)


LIVE = """
ports:
  in: {null: 60}
  out: {null:, convoys: {ip: 192.0.2.1}, mtu: 9000}
next-hops:
  b: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 7}
chains: {all: {from: in, to: out}}
workers: {idle: sleep}
"""


def live_plan(folder: Path) -> Plan:
    machine = this_machine()
    return make_plan(loads(LIVE, machine, folder), machine)


@pytest.mark.parametrize("wait_ns", [0, 1_000_000])
def test_next_hops_change_while_packets_flow(tmp_path: Path, wait_ns: int) -> None:
    with (
        Node(live_plan(tmp_path).data) as node,
        Client(node.running.control, 30) as client,
    ):

        def packets(name: str) -> int:
            return int(client.next_hops()[name]["packets"])

        wait_for(lambda: packets("b") > 1000, 20, "packets to b")
        hop: dict[str, Any] = {
            "name": "c",
            "port": "out",
            "mac": "02:00:00:00:00:0c",
            "ip": "192.0.2.3",
        }
        hop["wait_ns"] = wait_ns
        with pytest.raises(InputError, match="share SC-IDs and are one instance"):
            client.put_next_hop({**hop, "ip": "192.0.2.2", "nfi": 7, "match": [{}]})
        client.put_next_hop({**hop, "match": [{"vlan": 5}]})
        for turn in range(50):
            client.put_next_hop({**hop, "name": "b", "mtu": 1000 + turn, "match": [{}]})
        assert client.next_hops()["b"]["mtu"] == 1049
        client.remove_next_hop("b")
        client.put_next_hop({**hop, "match": [{}]})
        wait_for(lambda: packets("c") > 1000, 20, "packets to c")
        with pytest.raises(InputError, match="there is none of that name"):
            client.remove_next_hop("b")
        with pytest.raises(InputError, match="mtu: 9001: port"):
            client.put_next_hop({**hop, "mtu": 9001, "match": [{}]})
        with pytest.raises(InputError, match="no port is called"):
            client.put_next_hop({**hop, "port": "nowhere", "match": [{}]})
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("port: out", "port: ous"), "next-hops.b.port: 'ous': no port is called so"),
        (("convoys: {ip: 192.0.2.1}", "convoys: {}"), "b.port: 'out': does not send convoys"),
        (("ip: 192.0.2.2", "ip: 2001:db8::2"), "b.ip: 2001:db8::2: the port's own address"),
        (("nfi: 7", "mtu: 9001"), "b.mtu: 9001: more than port 'out' sends"),
        (("nfi: 7", "nfi: 65536"), "b.nfi: 65536: must be less than or equal to 65535"),
        (("nfi: 7", "wait: 1001us"), "b.wait: '1001us': write microseconds, from 0 to 1000us"),
        (("nfi: 7", "wait: 5"), "b.wait: 5: write microseconds"),
        (("nfi: 7", "for: [{vlan: 1}, {vlan: 1}]"), r"b.for\[1\]: vlan 1: is there twice"),
        (("nfi: 7", "leaving: [i]"), r"b.leaving\[0\]: 'i': no port is called so"),
        (("udp-port", "udp-prt"), "unknown key"),
    ],
)
def test_bad_descriptors(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = LIVE.replace("nfi: 7", "nfi: 7, udp-port: 51966") if "udp" in change[0] else LIVE
    assert change[0] in text
    with pytest.raises(DescriptorError, match=message):
        loads(text.replace(*change), this_machine(), tmp_path)


NAMESPACES = [f"convoy-{os.getpid()}-{side}" for side in "ab"]


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


@pytest.fixture
def two_hosts() -> Iterator[list[tuple[str, ...]]]:
    """Two network namespaces with a cable between them: interface `wire` in each."""
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces: sudo make check")
    a, b = NAMESPACES
    why = _ip("netns", "add", a) or _ip("netns", "add", b)
    try:
        why = why or _ip("-n", a, "link", "add", "wire", "type", "veth", "peer", "wire", "netns", b)
        if why:
            pytest.skip(f"no network namespaces or veth here: {why}")
        for name in NAMESPACES:
            inside = ("ip", "netns", "exec", name)
            subprocess.run(
                [*inside, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"], check=False
            )
            assert not _ip("-n", name, "link", "set", "wire", "up", "promisc", "on")
        yield [("ip", "netns", "exec", name) for name in NAMESPACES]
    finally:
        for name in NAMESPACES:
            _ip("netns", "delete", name)


HOST_A = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{af_packet: wire, convoys: {{ip: 192.0.2.1}}}}
next-hops: {{b: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""
HOST_B = """
ports:
  in: {{af_packet: wire, convoys: {{ip: 192.0.2.2}}}}
  out: {{pcap: {{write: {write}}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
def test_captures_between_two_hosts(two_hosts: list[tuple[str, ...]], tmp_path: Path) -> None:
    """Packets of all captures, from one host's node to the other's, over a wire."""
    frames = []
    for path in CAPTURES:  # as many as fit into the kernel's receive ring all at once
        some = [one for one in _frames(path) if 14 <= len(one) <= 1514 and vlan_of(one) < 0]
        frames += [one for one in some if not _fragment(one)][:20]
    read = write_capture(tmp_path / "in.pcap", frames)
    out = tmp_path / "out.pcap"
    b_plan = plan(HOST_B, tmp_path, write=out)
    a_plan = plan(HOST_A, tmp_path, read=read)
    with Node(b_plan.data, wrapper=two_hosts[1]) as b:
        with Node(a_plan.data, wrapper=two_hosts[0]) as a:
            sent = a.finish()
        want = sent["accounting"]["sent"]
        wait_for(lambda: b.counts()["accounting"]["sent"] >= want, 30, "all packets at b")
        received = b.stop()
    assert sent["accounting"]["conserved"]
    assert received["accounting"]["conserved"]
    assert sent["accounting"]["dropped"] == 0
    assert read_capture(out) == frames
    assert sent["next_hops"]["b"]["frames"] < len(frames)


def _frames(path: Path) -> list[bytes]:
    """Return the frames of a capture in the machine's own byte order; none of other captures."""
    return read_capture(path) if path.read_bytes()[:2] in (b"\xd4\xc3", b"\x4d\x3c") else []


def _fragment(one: bytes) -> bool:
    """Return whether it is an IPv4 fragment, which af_packet lets the kernel reassemble."""
    return one[12:14] == b"\x08\0" and int.from_bytes(one[20:22]) & 0x3FFF > 0
