# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An SC-ID with several next hops: each flow goes to one of them, whole and in order."""

import itertools
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.errors import InputError
from convoy.frame import decode
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import read_capture, write_capture
from .test_convoys import LIVE, SENDER, live_plan, run

FLOWS, PACKETS = 400, 4000
MACS = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
UDP, ICMP = 17, 1


def hops(count: int, **more: str) -> str:
    """Return so many next hops for everything, NFI-IDs from 1; more: what they add, by name."""
    each = (
        f'h{i}: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: {i}, encapsulate: true'
        f"{more.get(f'h{i}', '')}{more.get('all', '')}}}"
        for i in range(1, count + 1)
    )
    return f"{{{', '.join(each)}}}"


def ipv4(source: int, target: int, proto: int, payload: bytes, fragment: int = 0) -> bytes:
    ends = (0x0A000000 + source).to_bytes(4) + (0x0A000000 + target).to_bytes(4)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, fragment, 64, proto, 0)
    return MACS + b"\x08\0" + head + ends + payload


def udp(sport: int, dport: int, number: int) -> bytes:
    return struct.pack("!HHHH", sport, dport, 12, 0) + number.to_bytes(4)


def of_flow(number: int) -> bytes:
    """Return the packet of that number, of one of FLOWS flows, in either direction."""
    client, port = number % FLOWS + 1, 1024 + number % FLOWS
    if number % 3 == 0:
        return ipv4(99999, client, UDP, udp(53, port, number))
    return ipv4(client, 99999, UDP, udp(port, 53, number))


def number_of(packet: bytes) -> int:
    return int.from_bytes(packet[-4:])


def sent(
    folder: Path, frames: list[bytes], next_hops: str, **values: str
) -> tuple[dict[int, list[bytes]], dict[str, Any]]:
    """Send frames; return what each NFI-ID gets, and the counts."""
    write_capture(folder / "in.pcap", frames)
    values = {"deployment": "inline", "path": "[]", **values}
    counts = run(
        SENDER, folder, read=folder / "in.pcap", write=folder / "out.pcap", hops=next_hops, **values
    )
    got = defaultdict(list)
    for convoy in map(decode, read_capture(folder / "out.pcap")):
        got[convoy.nfi] += map(bytes, convoy.packets)
    return got, counts


@pytest.mark.parametrize("deployment", ["inline", "pipeline"])
def test_flows_are_spread_by_weight(tmp_path: Path, deployment: str) -> None:
    frames = [of_flow(number) for number in range(PACKETS)]
    got, counts = sent(
        tmp_path, frames, hops(3, h3=", weight: 2"), deployment=deployment, path="[mac, again]"
    )
    assert Counter(itertools.chain(*got.values())) == Counter(frames)
    of: dict[int, int] = {}
    last: dict[int, int] = {}
    for nfi, packets in got.items():
        for number in map(number_of, packets):
            assert of.setdefault(number % FLOWS, nfi) == nfi
            assert last.get(number % FLOWS, -1) < number
            last[number % FLOWS] = number
    shares = Counter(of.values())
    assert set(shares) == {1, 2, 3}
    for nfi, weight in ((1, 1), (2, 1), (3, 2)):
        expected = FLOWS * weight / 4
        assert abs(shares[nfi] - expected) < 6 * expected**0.5 + 0.15 * expected
        assert counts["next_hops"][f"h{nfi}"]["packets"] == len(got[nfi])
        assert counts["next_hops"][f"h{nfi}"]["weight"] == weight


@pytest.mark.parametrize("spread", ["flow", "addresses"])
def test_fragments_and_errors_go_where_their_flow_goes(tmp_path: Path, spread: str) -> None:
    flows, frames = range(1, 200), []
    for client in flows:
        whole = ipv4(client, 99999, UDP, udp(client, 53, client))
        error = struct.pack("!BBHI", 3, 4, 0, 1400) + whole[14:]
        frames += [
            whole,
            ipv4(77777, client, ICMP, error),
            ipv4(client, 99999, UDP, udp(client, 53, client), fragment=0x2000),
            ipv4(client, 99999, UDP, bytes(20) + client.to_bytes(4), fragment=3),
        ]
    got, _ = sent(tmp_path, frames, hops(4, all=f", spread: {spread}"))
    ways: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for nfi, packets in got.items():
        for packet in packets:
            ways[number_of(packet)].append((nfi, packet))
    apart = 0
    for client in flows:
        of = {packet: nfi for nfi, packet in ways[client]}
        whole, error, first, second = (of[one] for one in frames[4 * client - 4 : 4 * client])
        assert whole == error
        assert first == second
        apart += whole != first
    assert apart == 0 if spread == "addresses" else apart > 0


def test_an_scid_may_have_several_and_others_one(tmp_path: Path) -> None:
    def tagged(vlan: int, number: int) -> bytes:
        packet = of_flow(number)
        return packet[:12] + b"\x81\0" + vlan.to_bytes(2) + packet[12:]

    frames = [tagged(vlan, number) for number in range(400) for vlan in (5, 6, 7)]
    mapping = {"h1": "{vlan: 5}, {vlan: 6}", "h2": "{vlan: 5}", "h3": "{}"}
    got, _ = sent(
        tmp_path, frames, hops(3, **{name: f", for: [{for_}]" for name, for_ in mapping.items()})
    )
    vlans = {nfi: Counter(packet[15] for packet in packets) for nfi, packets in got.items()}
    assert vlans[1].keys() == {5, 6}
    assert vlans[2].keys() == {5}
    assert vlans[3] == {7: 400}
    assert vlans[1][6] == 400
    assert vlans[1][5] + vlans[2][5] == 400


def test_they_change_while_packets_flow(tmp_path: Path) -> None:
    hop = {"port": "out", "mac": "02:00:00:00:00:0c", "ip": "192.0.2.3", "match": [{}]}
    with Node(live_plan(tmp_path).data) as node, Client(node.running.control, 30) as client:

        def packets(*names: str) -> int:
            return sum(client.next_hops()[name]["packets"] for name in names)

        wait_for(lambda: packets("b") > 1000, 20, "packets to b")
        for turn in range(40):
            client.put_next_hop({**hop, "name": f"c{turn % 5}", "nfi": 20 + turn % 5})
            client.put_next_hop({**hop, "name": "d", "nfi": 9, "weight": 1 + turn})
        assert client.next_hops()["d"]["weight"] == 40
        for words, change in (
            ("share SC-IDs and are one instance", {"nfi": 9}),
            ("share SC-IDs; give them the same spread", {"nfi": 10, "spread": "addresses"}),
            ("weight: 0: must be a whole number from 1 to 256", {"nfi": 10, "weight": 0}),
            ("weight: 257: must be a whole number from 1 to 256", {"nfi": 10, "weight": 257}),
            ("spread: ", {"nfi": 10, "spread": "ports"}),
        ):
            with pytest.raises(InputError, match=words):
                client.put_next_hop({**hop, "name": "e", **change})
        for name in ("b", *(f"c{i}" for i in range(5))):
            client.remove_next_hop(name)
        before = packets("d")
        wait_for(lambda: packets("d") > before + 1000, 20, "packets to d")
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("nfi: 7", "'b' is the same instance and is for these packets already"),
        ("nfi: 8, spread: addresses", "'b' is for the same packets and has spread: flow"),
        ("nfi: 8, weight: 0", "weight: 0"),
        ("nfi: 8, for: [{vlan: 1}, {vlan: 1}]", "is there twice"),
    ],
)
def test_mistakes(tmp_path: Path, second: str, message: str) -> None:
    again = f'  c: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, {second}}}\nchains'
    text = LIVE.replace("chains", again)
    with pytest.raises(DescriptorError) as refused:
        loads(text, this_machine(), tmp_path)
    assert message in str(refused.value)


def test_too_many(tmp_path: Path) -> None:
    more = "".join(
        f'  c{i}: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: {i + 100}}}\n'
        for i in range(64)
    )
    with pytest.raises(DescriptorError, match="has too many next hops"):
        loads(LIVE.replace("chains", f"{more}chains"), this_machine(), tmp_path)


def test_the_plan_has_what_is_not_the_default(tmp_path: Path) -> None:
    text = LIVE.replace("nfi: 7", "nfi: 7, weight: 3, spread: addresses")
    machine = this_machine()
    (hop,) = make_plan(loads(text, machine, tmp_path), machine).data["next_hops"]
    assert (hop["weight"], hop["spread"]) == (3, "addresses")
    (hop,) = live_plan(tmp_path).data["next_hops"]
    assert not {"weight", "spread"} & set(hop)


def test_the_check_notes_who_shares(tmp_path: Path) -> None:
    more = '  other: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 9}\n'
    machine = this_machine()
    plan = make_plan(loads(LIVE.replace("chains", f"{more}chains"), machine, tmp_path), machine)
    assert [note for note in plan.notes if "share" in note] == [
        "next hops b, other share everything out of out: each flow goes to one of them"
    ]
    assert not any("share" in note for note in live_plan(tmp_path).notes)
