# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Tunnels of the balancer, byte by byte against scapy's."""

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.run import run
from convoy.host.machine import this_machine
from node.conftest import read_capture, write_capture

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
TEXT = """
ports:
  clients: {pcap: {read: in.pcap, write: back.pcap}}
  servers: {pcap: {write: out.pcap}}
functions:
  lb:
    balancer:
      mode: MODE
      source: 192.0.2.1
      source-ipv6: 2001:db8::1
      mtu: 1500
      services: [{address: 203.0.113.10}, {address: "2001:db8::10"}]
      backends: [{address: "TO"}]
chains:
  web: {from: clients, to: servers, path: [lb]}
workers: {cores: [0]}
"""
BACKEND = {4: "10.0.0.1", 6: "2001:db8:9::1"}
SOURCE = {4: "192.0.2.1", 6: "2001:db8::1"}
PROTO = {4: 4, 6: 41}
HEADER = {4: 20, 6: 40}


def through(
    folder: Path, mode: str, outer: int, sent: list[Packet], backend: str = ""
) -> tuple[list[bytes], list[bytes], dict[str, Any]]:
    """Return what went to the servers and back to the clients, and the balancer's counters."""
    write_capture(folder / "in.pcap", [bytes(one) for one in sent])
    machine = this_machine()
    text = TEXT.replace("MODE", mode).replace('"TO"', f'"{BACKEND[outer]}"{backend}')
    counts = run(folder, make_plan(loads(text, machine, folder), machine)).counts
    assert counts["accounting"]["conserved"]
    return (
        read_capture(folder / "out.pcap"),
        read_capture(folder / "back.pcap"),
        counts["functions"]["lb"],
    )


def client(version: int) -> Packet:
    if version == 4:
        return IP(src="198.51.100.7", dst="203.0.113.10", tos=0xB9, id=77)
    return IPv6(src="2001:db8:7::7", dst="2001:db8::10", tc=0xB9)


def expected(mode: str, outer: int, inner: Packet, got: bytes) -> bytes:
    """Return the tunnel's packet; UDP's source port and an identification are as in what came."""
    whole = inner.version == 6 or "DF" in inner.flags
    is_it = Ether(got)
    if outer == 4:
        shell = IP(
            src=SOURCE[4],
            dst=BACKEND[4],
            tos=0xB9,
            ttl=64,
            flags="DF" if whole else 0,
            id=0 if whole else is_it[IP].id,
            proto=PROTO[inner.version],
        )
    else:
        shell = IPv6(src=SOURCE[6], dst=BACKEND[6], tc=0xB9, hlim=64, nh=PROTO[inner.version])
    if mode == "gue":
        shell /= UDP(sport=is_it[UDP].sport, dport=6080, chksum=0 if outer == 4 else None)
        if outer == 4:
            shell.proto = 17
        else:
            shell.nh = 17
    return bytes(shell / Raw(bytes(inner)))


@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("mode", ["ipip", "gue"])
def test_packets_are_in_tunnels(tmp_path: Path, mode: str, outer: int):
    whole = IP(src="198.51.100.7", dst="203.0.113.10", tos=0xB9, flags="DF")
    inners = [
        client(4) / TCP(sport=9, dport=80, flags="S"),
        client(6) / TCP(sport=9, dport=80, flags="S"),
        whole / UDP(sport=9, dport=53) / b"odd",
        client(6) / UDP(sport=9, dport=53) / b"odd",
        client(4) / ICMP(type=8, id=5) / b"ping",
    ]
    sent = [Ether(**MACS) / inner for inner in inners]
    sent[1] = Ether(**MACS) / Dot1Q(vlan=7, prio=3) / inners[1]
    sent[2] = Ether(bytes(sent[2]) + bytes(20))  # padding stays behind
    out, back, counters = through(tmp_path, mode, outer, sent)
    assert len(out) == len(sent) and not back and not any(counters["drops"].values())
    for i, (got, inner) in enumerate(zip(out, inners, strict=True)):
        # As scapy builds it: what it fills in of a packet is filled in when it is bytes.
        want = expected(mode, outer, inner.__class__(bytes(inner)), got)
        head = 18 if i == 1 else 14
        kind = b"\x08\x00" if outer == 4 else b"\x86\xdd"
        link = bytes(sent[i])[: head - 2] + kind
        assert got == link + want + bytes(20 if i == 2 else 0), (i, Ether(got).show(dump=True))
    if mode == "gue":
        ports = [Ether(got)[UDP].sport for got in out]
        assert min(ports) >= 0xC000 and len(set(ports)) > 1


@pytest.mark.parametrize("outer", [4, 6])
def test_fragments_take_one_way(tmp_path: Path, outer: int):
    head = IP(src="198.51.100.7", dst="203.0.113.10", id=9, proto=17, flags="MF")
    rest = IP(src="198.51.100.7", dst="203.0.113.10", id=9, proto=17, frag=2)
    sent = [
        Ether(**MACS) / head / Raw(bytes(UDP(sport=9, dport=53, len=24)) + bytes(8)),
        Ether(**MACS) / rest / Raw(bytes(8)),
    ]
    out, _, _ = through(tmp_path, "gue", outer, sent)
    assert len(out) == 2
    assert len({Ether(got)[UDP].sport for got in out}) == 1


@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("mode", ["ipip", "gue"])
@pytest.mark.parametrize("backend", ["", ", dev: servers, mac: 02:bb:00:00:00:01"])
def test_what_does_not_fit_is_told(tmp_path: Path, backend: str, mode: str, outer: int):
    most = 1500 - HEADER[outer] - (8 if mode == "gue" else 0)
    whole = IP(src="198.51.100.7", dst="203.0.113.10", flags="DF")

    def of(head: Packet, length: int) -> Packet:
        payload = length - len(head / UDP())
        return Ether(**MACS) / head / UDP(sport=9, dport=53) / bytes(payload)

    six = IPv6(src="2001:db8:7::7", dst="2001:db8::10")
    fits = [of(whole, most), of(six, most)]
    may_be_cut = of(client(4), 1500)
    long = [of(whole, most + 1), of(six, most + 1)]
    out, back, counters = through(tmp_path, mode, outer, [*fits, may_be_cut, *long], backend)
    assert [len(got) - 14 for got in out] == [1500, 1500, 1500 + 1500 - most]
    to = "02:bb:00:00:00:01" if backend else MACS["dst"]
    assert {Ether(got).dst for got in out} == {to}
    assert counters["drops"]["too_big"] == 2
    assert len(back) == 2
    four, other = (Ether(one) for one in back)
    assert (four.src, four.dst) == (MACS["dst"], MACS["src"])
    assert (four[IP].src, four[IP].dst) == ("203.0.113.10", "198.51.100.7")
    assert (four[ICMP].type, four[ICMP].code, four[ICMP].nexthopmtu) == (3, 4, most)
    assert bytes(long[0])[14 : 14 + 28] in bytes(back[0])
    assert (other[IPv6].src, other[IPv6].dst) == ("2001:db8::10", "2001:db8:7::7")
    assert other[ICMPv6PacketTooBig].mtu == most
    assert bytes(long[1])[14 : 14 + 100] in bytes(back[1])
