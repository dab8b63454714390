# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ways to lose a packet in a node, as data: a function that does, a packet, and the reason.

Each place is a chain of its own with the functions below, f first. Packets are written without the
VLAN tag that leads to it; the injector gives it to them.
"""

import struct
from dataclasses import dataclass, field

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_LSRR
from scapy.layers.inet6 import (
    ICMPv6ND_NS,
    IPv6,
    IPv6ExtHdrRouting,
    IPv6ExtHdrSegmentRouting,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from convoy.frame import Outer, encode
from convoy.frame.fragments import REST
from convoy.frame.model import FRAGMENTS, PORT, VERSION
from vpn.aggfrag import AGGFRAG, payload
from vpn.esp import Association

NODE = None  # who drops what no function does
FLOWS = "flows"  # the table of stateful functions
IN, OUT = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
PEER = "02:00:00:00:00:01"
GROUP = "01:00:5e:01:01:01"


class Answer(bytes):
    """A packet that comes from the other end."""


@dataclass(frozen=True)
class Kind:
    """A packet that is lost, and what is sent before it so that it is."""

    what: str
    reason: str
    lost: bytes
    before: tuple[bytes, ...] = ()
    by: str | None = "f"
    port: str = "in"  # that it comes in by; "in" is that of its place


@dataclass(frozen=True)
class Place:
    """A chain both ways between the ports in and out, and what is lost there."""

    functions: str  # empty: there is no such chain
    kinds: tuple[Kind, ...]
    to: str = "out"
    port: str = "in"
    tagged: bool = True  # False: its chain takes what this matches, or what no other one takes
    match: str = ""
    files: dict[str, str] = field(default_factory=dict)


def frame(*layers: Packet | bytes, to: str = IN, source: str = PEER, type_: int = 0) -> bytes:
    """Return an Ethernet frame of at least 60 bytes."""
    packet = Ether(dst=to, src=source, **({"type": type_} if type_ else {}))
    for layer in layers:
        packet = packet / (Raw(layer) if isinstance(layer, bytes) else layer)
    return bytes(packet).ljust(60, b"\0")


def ip(source: str = "10.0.0.2", target: str = "198.51.100.1", **fields: object) -> IP:
    return IP(src=source, dst=target, **fields)


def ip6(source: str = "2001:db8::2", target: str = "2001:db8:9::1", **fields: object) -> IPv6:
    return IPv6(src=source, dst=target, **fields)


def udp(source: int = 1000, target: int = 53, size: int = 20) -> Packet:
    return UDP(sport=source, dport=target) / Raw(bytes(size))


def tcp(flags: str = "S", seq: int = 0, data: bytes = b"", **fields: int) -> Packet:
    given = {"sport": 1000, "dport": 80, **fields}
    return TCP(flags=flags, seq=seq, **given) / Raw(data)


def short(packet: bytes, size: int) -> bytes:
    return packet[:size]


A = frame(ip() / udp())
LONG = frame(ip(flags="DF") / udp(size=1440))
BAD_LENGTH = frame(ip(len=900) / udp())
BAD_LENGTH6 = frame(ip6(plen=900) / udp())
UNRELATED = frame(
    IP(src="8.8.8.8", dst="10.0.0.2") / ICMP(type=3, code=1) / IP(src="10.0.0.2", dst="9.9.9.9")
    / UDP(sport=7, dport=7)
)  # fmt: skip


def flows(count: int, **fields: str) -> tuple[bytes, ...]:
    """Return the first packets of so many flows of a host."""
    one = frame(ip(**fields) / UDP(sport=0, dport=53, chksum=0) / Raw(bytes(20)))
    return tuple(one[:34] + struct.pack("!H", 2000 + i) + one[36:] for i in range(count))


# Who drops what, function by function.

NODES = Place(
    "f: {ttl-limit: {}}",
    (
        Kind("longer than its port's MTU", "too_big", LONG, by=NODE),
        Kind("a TTL that ends here", "ttl_below_min", frame(ip(ttl=1) / udp())),
        Kind("a hop limit that ends here", "ttl_below_min", frame(ip6(hlim=0) / udp())),
        Kind("IPv4 without its TTL", "bad_header", short(A, 20)),
        Kind("IPv6 without its hop limit", "bad_header", short(frame(ip6() / udp()), 20)),
    ),
)
NO_CHAIN = Place("", (Kind("where no chain begins", "no_chain", A, by=NODE),))
NO_IP = Place(
    "f: {ttl-limit: {non-ip: drop}}", (Kind("ARP", "non_ip", frame(ARP())),)
)  # fmt: skip
DEAF = Place(
    "f: {l2fwd: {}}",
    (Kind("to a guest that takes nothing", "tx_full", A, by=NODE),),
    to="deaf",
)
BRIDGE = Place(
    "f: {bridge: {}}",
    (
        Kind("to somebody on its own side", "same_side", frame(ip() / udp(), to=PEER)),
        Kind("from a group", "bad_source", frame(ip() / udp(), source=GROUP)),
    ),
)
FIREWALL = Place(
    "f: {firewall: {non-ip: drop, rules: [{deny: {src: 10.0.0.66}}, "
    "{allow: {proto: tcp, dport: 80}}, {allow: {src: 10.0.0.0/24, proto: udp}}]}}",
    (
        Kind("a rule", "denied", frame(ip("10.0.0.66") / udp())),
        Kind("no rule", "default_denied", frame(ip("10.0.1.1") / udp())),
        Kind("more bytes than there are", "bad_header", BAD_LENGTH),
        Kind("IPv6 with more bytes than there are", "bad_header", BAD_LENGTH6),
        Kind("ports hidden in a tiny fragment", "fragment",
             frame(ip(flags="MF", proto=6) / Raw(b"\0\0"))),
        Kind("not IP", "non_ip", frame(ARP())),
    ),
)  # fmt: skip
STATEFUL = Place(
    "f: {firewall: {stateful: true, tcp-window: all, rules: [{deny: {dport: 666}}, "
    "{allow: {proto: udp}}, {allow: {proto: tcp}}]}}",
    (
        Kind("a rule, of flows", "denied", frame(ip() / udp(target=666))),
        Kind("no rule, of flows", "default_denied", frame(ip(proto=200) / Raw(bytes(20)))),
        Kind("TCP out of the blue", "invalid", frame(ip("10.0.0.3") / tcp("A"))),
        Kind("an error about nothing", "invalid", UNRELATED),
        Kind("a flow's header cut", "bad_header", BAD_LENGTH),
        Kind("the rest of a packet", "no_first_fragment",
             frame(ip(proto=17, frag=8) / Raw(bytes(40))), by=FLOWS),
        Kind("what TCP would not accept", "tcp_out_of_window",
             frame(ip("10.0.0.4") / tcp("A", 1 << 30, b"far", ack=900)),
             (frame(ip("10.0.0.4") / tcp("S", 100)),
              Answer(frame(ip("198.51.100.1", "10.0.0.4")
                           / TCP(sport=80, dport=1000, flags="SA", seq=899, ack=101)))), by=FLOWS),
    ),
)  # fmt: skip
FULL = Place(
    "f: {firewall: {stateful: true, rules: [{allow: {proto: udp}}]}}",
    (
        Kind("one flow too many", "flow_table_full", frame(ip("10.9.9.9") / udp(7)), tuple(
            one for i in range(24) for one in flows(50, source=f"10.8.0.{i}")), by=FLOWS),
    ),
)  # fmt: skip
GREEDY = Place(
    "f: {firewall: {stateful: true, rules: [{allow: {proto: udp}}]}}",
    (
        Kind("a host's last flow but one", "flow_host_limit", frame(ip() / udp(7)), flows(100),
             by=FLOWS),
    ),
)  # fmt: skip
ROUTER = Place(
    'f: {router: {routes: [198.51.100.0/24 via 192.0.2.9 dev out, 203.0.113.0/24 dev out, '
    '{prefix: 198.18.0.0/15, type: blackhole}, "2001:db8:9::/48 via 2001:db8::9 dev out"], '
    'neighbours: {192.0.2.9: "02:00:00:00:00:09", "2001:db8::9": "02:00:00:00:00:09"}}}',
    (
        Kind("ARP where none lives", "not_ip", frame(ARP())),
        Kind("a third tag", "not_ip", frame(Dot1Q(vlan=2) / Dot1Q(vlan=3) / ip() / udp())),
        Kind("a wrong checksum", "bad_header", frame(ip(chksum=1) / udp())),
        Kind("a version that is none", "bad_header", frame(ip(version=5) / udp())),
        Kind("a header that is too short", "bad_header", frame(ip(ihl=4) / udp())),
        Kind("longer than its frame", "bad_header", BAD_LENGTH),
        Kind("IPv6 longer than its frame", "bad_header", BAD_LENGTH6),
        Kind("to a group of Ethernet's", "multicast", frame(ip() / udp(), to=GROUP)),
        Kind("to a group", "multicast", frame(ip(target="224.1.1.1") / udp())),
        Kind("from itself", "martian", frame(ip("127.0.0.1") / udp())),
        Kind("to nobody", "martian", frame(ip(target="240.0.0.1") / udp())),
        Kind("from a group", "martian", frame(ip("224.0.0.5") / udp())),
        Kind("IPv6 from itself", "martian", frame(ip6("::1") / udp())),
        Kind("IPv6 from its link", "martian", frame(ip6("fe80::1") / udp())),
        Kind("the last hop", "ttl_expired", frame(ip(ttl=1) / udp())),
        Kind("IPv6's last hop", "ttl_expired", frame(ip6(hlim=1) / udp())),
        Kind("no route", "no_route", frame(ip(target="8.8.8.8") / udp())),
        Kind("no route of IPv6", "no_route", frame(ip6(target="2001:db9::1") / udp())),
        Kind("a black hole", "no_route", frame(ip(target="198.18.0.1") / udp())),
        Kind("a neighbour that is not known", "no_neighbour",
             frame(ip(target="203.0.113.7") / udp())),
    ),
)  # fmt: skip
HOME = Place(
    "f: {router: {addresses: {in: [10.0.0.1/24], out: [192.0.2.1/24]}, "
    "routes: [198.51.100.0/24 via 192.0.2.9], "
    'neighbours: {192.0.2.9: "02:00:00:00:00:09"}}}',
    (
        Kind("to another MAC address", "other_mac", frame(ip() / udp(), to="02:00:00:00:00:77")),
        Kind("longer than the way on", "too_big", LONG),
        Kind("a fragment to the router itself", "not_served",
             frame(ip(target="10.0.0.1", proto=17, flags="MF") / udp())),
        Kind("one that waits in vain", "wait_full", frame(ip(target="192.0.2.50") / udp()),
             tuple(frame(ip(target="192.0.2.50", id=i) / udp()) for i in range(1, 70))),
    ),
)  # fmt: skip
NAT = Place(
    "f: {nat: {outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.1], mappings: 4096, "
    "hairpinning: false}}",
    (
        Kind("to a port that nobody has", "no_mapping",
             frame(ip("8.8.8.8", "203.0.113.1") / udp(53, 5)), port="out"),
        Kind("from outside, by an inside address", "not_external",
             frame(ip("8.8.8.8", "10.0.0.2") / udp()), port="out"),
        Kind("to itself by its outside", "hairpin",
             frame(ip("10.0.0.3", "203.0.113.1") / udp(target=1024)),
             (frame(ip("10.0.0.4") / udp(1024)),)),
        Kind("an ICMP answer that nobody asked for", "unsupported",
             frame(ip("10.0.0.5") / ICMP(type=0))),
        Kind("to a group through NAT", "unsupported",
             frame(ip("10.0.0.6", "224.1.1.1") / udp())),
        Kind("an error about no mapping", "unrelated_error", UNRELATED, port="out"),
        Kind("NAT's header cut", "bad_header", BAD_LENGTH),
    ),
)  # fmt: skip
NAT_SMALL = Place(
    "f: {nat: {outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.2], ports: 2048-2111, "
    "block-size: 64, blocks-per-subscriber: 1}}",
    (
        Kind("a second subscriber of one block", "no_port", frame(ip("10.0.0.3") / udp()),
             (frame(ip() / udp()),)),
    ),
)  # fmt: skip
NAT_LIMIT = Place(
    "f: {nat: {outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.3], block-size: 64, "
    "blocks-per-subscriber: 1}}",
    (
        Kind("a subscriber's next port", "subscriber_limit", frame(ip() / udp(7)), flows(64)),
    ),
)  # fmt: skip
NAT_FULL = Place(
    "f: {nat: {outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.4], mappings: 64}}",
    (Kind("one mapping too many", "mappings_full", frame(ip() / udp(7)), flows(70)),),
)
NAT_FILTER = Place(
    "f: {nat: {outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.5], ports: 4096-4159, "
    "block-size: 64, filtering: address-and-port-dependent}}",
    (
        Kind("from somebody whom it never asked", "filtered",
             frame(ip("8.8.8.8", "203.0.113.5") / udp(53, 4100)),
             tuple(frame(ip() / udp(i)) for i in range(4096, 4160)), port="out"),
    ),
)  # fmt: skip
FROM6 = {"source": "2001:db8:a::5", "target": "2001:db8:64::808:808"}
NAT64 = Place(
    'f: {nat64: {prefix: "2001:db8:64::/96", eam: [{ipv4: 192.0.2.0/24, '
    'ipv6: "2001:db8:a::/120"}], source: 203.0.113.9, source-ipv6: "2001:db8:ffff::1", '
    "zero-checksum: drop, icmp-rate: 0}}",
    (
        Kind("to loopback by its prefix", "bad_address",
             frame(ip6(FROM6["source"], "2001:db8:64::7f00:1") / udp())),
        Kind("whom no address stands for", "no_mapping",
             frame(ip6("2001:db8:b::1", FROM6["target"]) / udp())),
        Kind("the translator's hop", "ttl_expired", frame(ip6(**FROM6, hlim=1) / udp())),
        Kind("neighbours of IPv6", "untranslatable",
             frame(ip6(**FROM6) / ICMPv6ND_NS(tgt="2001:db8::1"))),
        Kind("not as long as it says, translated", "bad_header",
             frame(ip6(**FROM6, plen=900) / udp())),
        Kind("a source route", "source_route", frame(
            IP(src="8.8.8.8", dst="192.0.2.5", options=[IPOption_LSRR(routers=["192.0.2.6"])])
            / udp())),
        Kind("UDP without a checksum", "zero_checksum",
             frame(IP(src="8.8.8.8", dst="192.0.2.5") / UDP(sport=1, dport=2, chksum=0))),
        Kind("longer than the way on, translated", "too_big",
             frame(IP(src="8.8.8.8", dst="192.0.2.5", flags="DF") / udp(size=1390))),
    ),
)  # fmt: skip
NAT64_CLIENTS = Place(
    'f: {nat64: {prefix: "2001:db8:65::/96", clients: 100.64.0.0/30, source: 203.0.113.8, '
    'source-ipv6: "2001:db8:ffff::2"}}',
    (
        Kind("a client too many", "no_address",
             frame(ip6("2001:db8:c::99", "2001:db8:65::808:808") / udp()),
             tuple(frame(ip6(f"2001:db8:c::{i}", "2001:db8:65::808:808") / udp())
                   for i in range(1, 6))),
    ),
)  # fmt: skip


def nsh(  # RFC 8300 section 2
    path: int = 42, index: int = 255, ttl: int = 63, kind: int = 1, oam: bool = False,
    version: int = 0, next_: int = 3, metadata: bytes = bytes(16),
    inner: bytes = A,
) -> bytes:  # fmt: skip
    first = version << 30 | oam << 29 | ttl << 22 | (2 + len(metadata) // 4) << 16 | kind << 8
    head = struct.pack(">II", first | next_, path << 8 | index) + metadata
    return frame(head + inner, type_=0x894F)


NSH = Place(
    'f: {nsh: {paths: [{path: 42, index: 255, mac: "02:00:00:00:00:99"}, '
    "{path: 42, index: 254, action: proxy}, {path: 42, index: 0, action: proxy}, "
    "{path: 42, index: 253, action: decapsulate}]}}",
    (
        Kind("no header of a path", "not_nsh", A),
        Kind("a version of NSH that is none", "bad_header", nsh(version=1)),
        Kind("metadata of no type", "metadata_type", nsh(kind=3)),
        Kind("a path that nobody knows", "no_path", nsh(path=43)),
        Kind("for operators", "oam", nsh(oam=True)),
        Kind("its last forwarder", "ttl_expired", nsh(ttl=1)),
        Kind("IPv4 for a proxy", "next_protocol", nsh(index=254, next_=1, inner=A[14:])),
        Kind("its last function", "index_expired", nsh(index=0)),
        Kind("more than is kept before it", "too_long",
             nsh(index=254, kind=2, metadata=struct.pack(">HBB", 1, 7, 124) + bytes(124)
                 + struct.pack(">HBB", 1, 7, 112) + bytes(112))),
    ),
)  # fmt: skip
SRV6 = Place(
    'f: {srv6: {icmp-rate: 0, sids: [{sid: "2001:db8:5::1"}, '
    '{sid: "2001:db8:5::4", behaviour: end-dt4}]}}',
    (
        Kind("segments longer than the packet", "bad_header",
             frame(ip6(target="2001:db8:5::1", nh=43) / Raw(bytes([17, 200, 4, 1, 0, 0, 0, 0])))),
        Kind("more segments left than there are", "bad_segments",
             frame(ip6(target="2001:db8:5::1") / IPv6ExtHdrSegmentRouting(
                 addresses=["2001:db8:9::1"], segleft=7, lastentry=0) / udp())),
        Kind("a route header of old", "bad_segments",
             frame(ip6(target="2001:db8:5::1") / IPv6ExtHdrRouting(
                 type=0, addresses=["2001:db8:9::1"], segleft=1) / udp())),
        Kind("nothing that it takes inside", "upper_layer",
             frame(ip6(target="2001:db8:5::4") / udp())),
        Kind("a segment's last hop", "ttl_expired",
             frame(ip6(target="2001:db8:5::1", hlim=1) / IPv6ExtHdrSegmentRouting(
                 addresses=["2001:db8:9::1", "2001:db8:5::1"], segleft=1, lastentry=1) / udp())),
    ),
)  # fmt: skip
SRV6_INTO = Place(
    'f: {srv6-encap: {icmp-rate: 0, source: "2001:db8:5::9", rules: '
    '[{segments: ["2001:db8:7::1"]}]}}',
    (
        Kind("a wrong length, before segments", "bad_header", BAD_LENGTH),
        Kind("a last hop, before segments", "ttl_expired", frame(ip(ttl=1) / udp())),
        Kind("too long with its segments", "too_big", frame(ip(flags="DF") / udp(size=1360))),
    ),
)  # fmt: skip


def policer(more: str, *kinds: Kind) -> Place:
    return Place(f"f: {{policer: {{cir-bps: 8000, cbs-bytes: 100, {more}}}}}", kinds)


BIG = frame(ip() / udp(size=400))
RED = policer("ebs-bytes: 100, non-ip: drop",
              Kind("more than both buckets have", "policed_red", BIG),
              Kind("what no meter measures", "non_ip", frame(ARP())),
              Kind("a wrong length, metered", "bad_header", BAD_LENGTH))  # fmt: skip
YELLOW = policer("ebs-bytes: 100000, yellow: drop",
                 Kind("more than is committed", "policed_yellow", BIG))  # fmt: skip
GREEN = policer("ebs-bytes: 100000, green: drop",
                Kind("within what is committed", "policed_green",
                     frame(ip() / udp(size=4))))  # fmt: skip
HOSTS = Place(
    "f: {policer: {cir-bps: 8000, cbs-bytes: 1000, per: host, entries: 64}}",
    (
        Kind("of a host too many", "table_full", frame(ip("10.7.7.7") / udp()),
             tuple(frame(ip(f"10.6.{i >> 6}.{i & 63}") / udp(size=400)) for i in range(256))),
    ),
)  # fmt: skip
BALANCER = Place(
    "f: {balancer: {mode: ipip, source: 192.0.2.1, services: [{address: 203.0.113.20}, "
    '{address: "2001:db8:20::1"}], table-size: 251, backends: [{address: 192.0.2.20}]}}',
    (
        Kind("too long for its tunnel", "too_big",
             frame(ip(target="203.0.113.20", flags="DF") / udp(size=1360))),
        Kind("a service's header cut", "bad_header", BAD_LENGTH),
    ),
)  # fmt: skip
BALANCER_EMPTY = Place(
    "f: {balancer: {mode: nat, services: [{address: 203.0.113.21}, "
    '{address: "2001:db8:21::1"}], table-size: 251, backends: '
    '[{address: 192.0.2.20, drain: true}, {address: "2001:db8:22::1"}]}}',
    (
        Kind("nobody who serves it", "no_backend", frame(ip(target="203.0.113.21") / udp())),
    ),
)  # fmt: skip
BALANCER_ONE = Place(
    "f: {balancer: {mode: nat, services: [{address: 203.0.113.22}, {address: 203.0.113.23}], "
    "table-size: 251, backends: [{address: 192.0.2.20}]}}",
    (
        Kind("whose answers would be another's", "flow_conflict",
             frame(ip(target="203.0.113.23") / udp()), (frame(ip(target="203.0.113.22") / udp()),),
             by=FLOWS),
    ),
)  # fmt: skip
BALANCER_PORT = Place(
    "f: {balancer: {mode: nat, services: [{address: 203.0.113.24, proto: sctp, port: 80}], "
    "table-size: 251, backends: [{address: 192.0.2.20, port: 8080}]}}",
    (
        Kind("a port that may not change", "flow_not_rewritable",
             frame(ip(target="203.0.113.24", proto=132)
                   / Raw(struct.pack("!HH", 9, 80) + bytes(20))),
             by=FLOWS),
    ),
)  # fmt: skip
IDS = Place(
    "f: {ids: {rules-file: RULES, fragments: drop, budget: 1}}",
    (
        Kind("a pattern", "rule", frame(ip() / UDP(sport=1, dport=2) / Raw(b"an evil word"))),
        Kind("a wrong length, searched", "bad_header", BAD_LENGTH),
        Kind("a fragment, searched", "fragment", frame(ip(proto=17, frag=8) / Raw(bytes(40)))),
        Kind("bytes that make rules costly", "over_budget",
             frame(ip() / UDP(sport=1, dport=2) / Raw(b"a" * 1400))),
    ),
    files={"RULES": "".join((
        'drop ip any any -> any any (msg:"bad"; content:"evil"; sid:1;)\n',
        *(f'alert ip any any -> any any (msg:"x"; content:"aaa"; content:"z"; sid:{i};)\n'
          for i in range(2, 9)),
    ))},
)  # fmt: skip
STREAMS = Place(
    "f: {ids: {rules-file: RULES, stateful: true, segments: 4}}",
    (
        Kind("a pattern in two pieces", "rule",
             frame(ip("10.0.0.7") / tcp("A", 103, b"il word")),
             (frame(ip("10.0.0.7") / tcp("S", 99)), frame(ip("10.0.0.7") / tcp("A", 100, b" ev")))),
        Kind("other bytes than before", "tcp_overlap",
             frame(ip("10.0.0.8") / tcp("A", 100, b"other words")),
             (frame(ip("10.0.0.8") / tcp("S", 99)),
              frame(ip("10.0.0.8") / tcp("A", 100, b"these words")))),
        Kind("too much that is early", "reassembly_full",
             frame(ip("10.0.0.9") / tcp("A", 900, b"late")),
             (frame(ip("10.0.0.9") / tcp("S", 99)),
              *(frame(ip("10.0.0.9") / tcp("A", 200 + 10 * i, b"later")) for i in range(12)))),
    ),
    files={"RULES": 'drop tcp any any -> any any (msg:"bad"; content:"evil"; sid:1;)\n'},
)  # fmt: skip

KEY = bytes(range(20))


def sealed(
    spi: int, number: int, inner: bytes, next_: int | None = None, **fields: object
) -> bytes:
    """Return ESP from the peer outside. What must be odd is said by fields of the outer header."""
    esp = Association(spi, KEY).seal(inner, number, next_header=next_)
    return frame(IP(src="192.0.2.7", dst="192.0.2.1", proto=50, **fields) / Raw(esp))


def damaged(packet: bytes) -> bytes:
    return packet[:-1] + bytes([packet[-1] ^ 1])


INSIDE = bytes(IP(src="10.2.0.1", dst="10.1.0.1") / udp())
STRANGE = bytes(IP(src="10.9.0.1", dst="10.1.0.1") / udp())
PLAIN_ECT0 = bytes(IP(src="10.2.0.1", dst="10.1.0.1", tos=0) / udp())


def outward(target: str = "10.2.0.1", **fields: object) -> IP:
    return ip("10.1.0.1", target, **fields)


VPN = Place(
    "f: {vpn: {outside: [out], sa-file: SAS, icmp-rate: 0, policies: ["
    "{name: all, match: {src: 10.1.0.0/16, dst: 10.2.0.0/16}}, "
    "{name: none, match: {src: 10.1.0.0/16, dst: 10.3.0.0/16}}, "
    "{name: once, match: {src: 10.1.0.0/16, dst: 10.4.0.0/16}}, "
    "{match: {src: 10.1.0.0/16, dst: 10.5.0.0/16}, action: discard}]}}",
    (
        Kind("a policy says so", "discarded", frame(outward("10.5.0.1") / udp())),
        Kind("no policy", "discarded", frame(outward("10.6.0.1") / udp())),
        Kind("no association out", "no_sa", frame(outward("10.3.0.1") / udp())),
        Kind("a last hop, before a tunnel", "ttl_expired", frame(outward(ttl=1) / udp())),
        Kind("too long for a tunnel", "too_big", frame(outward(flags="DF") / udp(size=1360))),
        Kind("a wrong checksum, before a tunnel", "bad_header", frame(outward(chksum=1) / udp())),
        Kind("a key that is used up", "expired", frame(outward("10.4.0.1") / udp()),
             (frame(outward("10.4.0.1", id=7) / udp()),)),
        Kind("in the clear", "unprotected", frame(Raw(INSIDE), type_=0x800), port="out"),
        Kind("an SPI that nobody has", "no_sa", sealed(0x999, 1, INSIDE), port="out"),
        Kind("half an ESP packet", "fragment", sealed(0x100, 1, INSIDE, flags="MF"), port="out"),
        Kind("ESP of no length that may be", "bad_esp",
             frame(IP(src="192.0.2.7", dst="192.0.2.1", proto=50, len=33)
                   / Raw(struct.pack("!II", 0x100, 1) + bytes(5))), port="out"),
        Kind("a forged one", "bad_tag", damaged(sealed(0x100, 2, INSIDE * 3)), port="out"),
        Kind("one that came before", "replayed", sealed(0x100, 3, INSIDE),
             (Answer(sealed(0x100, 3, INSIDE, id=9)),), port="out"),
        Kind("of another policy", "wrong_policy",
             sealed(0x100, 4, bytes(IP(src="10.3.0.1", dst="10.1.0.1") / udp())), port="out"),
        Kind("a broken one inside", "bad_header",
             sealed(0x100, 5, bytes(IP(src="10.2.0.1", dst="10.1.0.1", len=999) / udp())),
             port="out"),
        Kind("marked, and cannot say so", "congested", sealed(0x100, 6, PLAIN_ECT0, tos=3),
             port="out"),
        Kind("AGGFRAG by another key", "bad_esp",
             sealed(0x100, 7, payload(INSIDE, 0), AGGFRAG), port="out"),
        Kind("AGGFRAG of a kind that is not known", "unknown_subtype",
             sealed(0x200, 1, b"\1" + payload(INSIDE, 0)[1:], AGGFRAG), port="out"),
        Kind("AGGFRAG with a block that cannot be", "bad_block",
             sealed(0x200, 2, payload(b"\x45\0\0\1" + bytes(60), 0), AGGFRAG), port="out"),
        Kind("the rest of what never began", "out_of_sequence",
             sealed(0x200, 9, payload(bytes(10) + INSIDE, 10), AGGFRAG), port="out"),
    ),
    files={"SAS": (
        f"out 0x101 policy all local 192.0.2.1 peer 192.0.2.7 key {KEY.hex()}\n"
        f"out 0x102 policy once local 192.0.2.1 peer 192.0.2.7 key {KEY[::-1].hex()} "
        "hard-packets 1\n"
        f"in 0x100 policy all local 192.0.2.1 key {KEY.hex()}\n"
        f"in 0x200 policy all local 192.0.2.1 key {KEY.hex()} aggregate yes\n"
    )},
)  # fmt: skip

CONVOY = encode([A, A], Outer(dst_mac=IN, src_mac=PEER, src="192.0.2.7", dst="192.0.2.1"), 0)
# One packet, which is the rest of one whose beginning never came: a stream's first frame.
ORPHANED_REST = bytes(
    Ether(dst=IN, src=PEER) / IP(src="192.0.2.7", dst="192.0.2.1") / UDP(
        sport=49152, dport=PORT, chksum=0
    ) / (struct.pack("!BBHIIHHH", VERSION << 4 | FRAGMENTS, 1, 7, 5, 0, REST, 0, len(A)) + A)
)  # fmt: skip
CONVOYS = Place(
    "f: {l2fwd: {}}",
    (
        Kind("the rest of a packet that never began", "lost_fragment", ORPHANED_REST, by=NODE),
        Kind("half a convoy", "bad_convoy", CONVOY[:90], by=NODE),
        Kind("a convoy of a checksum that is wrong", "bad_convoy",
             CONVOY[:24] + b"\0\0" + CONVOY[26:], by=NODE),
        Kind("a convoy to another node", "others_convoy",
             encode([A, A], Outer(dst_mac=IN, src_mac=PEER, src="192.0.2.7", dst="192.0.2.2"), 0),
             by=NODE),
        Kind("a convoy from elsewhere", "unknown_sender",
             encode([A, A], Outer(dst_mac=IN, src_mac=PEER, src="192.0.2.8", dst="192.0.2.1"), 0),
             by=NODE),
        Kind("a convoy to an instance that is none", "unknown_nfi",
             encode([A, A], Outer(dst_mac=IN, src_mac=PEER, src="192.0.2.7", dst="192.0.2.1"), 9),
             by=NODE),
    ),
    port="wire", tagged=False, match="match: {nfi: 7}, ",
)  # fmt: skip
LOOKALIKE = Place(
    "f: {l2fwd: {}}", (Kind("what looks like a convoy", "looks_like_convoy", CONVOY, by=NODE),),
    to="wire",
)  # fmt: skip

PLACES = {
    "node": NODES, "nochain": NO_CHAIN, "noip": NO_IP, "deaf": DEAF, "convoys": CONVOYS,
    "lookalike": LOOKALIKE, "bridge": BRIDGE, "firewall": FIREWALL, "stateful": STATEFUL,
    "full": FULL, "greedy": GREEDY, "router": ROUTER, "home": HOME, "nat": NAT,
    "natsmall": NAT_SMALL, "natlimit": NAT_LIMIT, "natfull": NAT_FULL, "natfilter": NAT_FILTER,
    "nat64": NAT64, "clients": NAT64_CLIENTS, "nsh": NSH, "srv6": SRV6, "segments": SRV6_INTO,
    "red": RED, "yellow": YELLOW, "green": GREEN, "hosts": HOSTS, "balancer": BALANCER,
    "empty": BALANCER_EMPTY, "one": BALANCER_ONE, "port": BALANCER_PORT, "ids": IDS,
    "streams": STREAMS, "vpn": VPN,
}  # fmt: skip

# The reasons that no packet of a guest provokes here, by type.
NO_BUFFER = {"no_buffer"}  # all of the node's are in use
NOT_PROVOKED: dict[str, set[str]] = {
    "balancer": NO_BUFFER,
    "bridge": {"bad_header", "not_a_side"},  # a guest's frame has a header; chains are checked
    "flows": {"flow_restoring"},  # after kill -9 (node/test_flow_store.py)
    "l2fwd": {"bad_header"},
    "nat64": NO_BUFFER,
    "node": NO_BUFFER | {"ring_full", "segmented"},  # a worker behind; a network card
    "nsh": {"no_room"},
    "router": NO_BUFFER | {"punt_full"},  # the kernel behind
    "srv6_encap": {"no_room"},
    "vpn": {"no_room", "sequence_overflow"},  # 4,294,967,295 packets
}
