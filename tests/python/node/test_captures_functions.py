# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Other people's traffic through each function, and through a chain of all: packets are conserved,
and a function does the same inline, behind another stage of a pipeline, and to packets in convoys.

All captures are one here: a node per function and way, not per capture.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.functions import FUNCTIONS
from convoy.frame.checksum import checksum

from .conftest import captures, read_capture, write_capture
from .test_convoys import run

CAPTURES = [path for path in captures() if path.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"]
pytestmark = pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)

# Of each type at least one, which lets some packets pass and has something to do with them.
ROUTER = (
    "router: {addresses: {in: [10.99.0.1/24], out: [192.0.2.1/24]}, "
    "routes: [default via 192.0.2.2, '::/0 via fe80::2 dev out'], "
    "neighbours: {192.0.2.2: '02:00:00:00:00:0b', 'fe80::2': '02:00:00:00:00:0b'}}"
)
OF: dict[str, str] = {
    "balancer": "balancer: {services: [{address: 192.168.0.0}], backends: [{address: 10.0.0.1, "
    "mac: '02:00:00:00:00:0b'}]}",
    "bridge": "bridge: {}",
    "cache": "cache: {outside: [out]}",
    "classifier": "classifier: {rules: [{match: {proto: tcp}, dscp: 10}]}",
    "firewall": "firewall: {default: allow, rules: [{deny: {proto: udp, dport: 53}}]}",
    "firewall, stateful": "firewall: {stateful: true, tcp-loose: true, default: deny, rules: "
    "[{allow: {src: 192.168.0.0/16}}, {allow: {src: 10.0.0.0/8}}, {allow: {src: '::/0'}}]}",
    "ids": "ids: {rules-file: rules}",
    "ids, stateful": "ids: {rules-file: rules, stateful: true}",
    "l2fwd": "l2fwd: {mode: swap}",
    "nat": "nat: {outside: [out], inside: [192.168.0.0/16, 10.0.0.0/8], pool: [203.0.113.0/28], "
    "mapping: endpoint-independent}",
    "nat64": "nat64: {prefix: '2001:db8:64::/96', hosts: [10.0.0.0/8, 192.168.0.0/16], "
    "source: 192.0.2.1, source-ipv6: '2001:db8::1', ipv6-mtu: 65535}",
    "nsh": "nsh: {not-nsh: pass, paths: [{path: 1, index: 255, action: decapsulate}]}",
    "nsh-encap": "nsh-encap: {rules: [{path: 1, mac: '02:00:00:00:00:0b'}]}",
    "policer": "policer: {cir-bps: 400000000000}",
    "router": ROUTER,
    "srv6": "srv6: {sids: [{sid: '2001:db8:a::1'}]}",
    "srv6-encap": "srv6-encap: {source: '2001:db8:a::1', rules: [{segments: ['2001:db8:b::1']}]}",
    "ttl-limit": "ttl-limit: {min: 10}",
    "vpn": "vpn: {outside: [out], policies: [{name: all}], sa-file: sas}",
}
SAS = f"out 300 policy all local 192.0.2.1 peer 192.0.2.2 key {bytes(20).hex()}\n"
RULES = """drop udp any any -> any 53 (content:"|03|www"; sid:1;)
drop tcp any any -> any any (content:"GET "; content:"HTTP/1."; distance:0; sid:2;)
alert ip any any -> any any (pcre:"/[a-z]{8}/"; sid:3;)
"""
ALL = ("firewall, stateful", "policer", "classifier", "ttl-limit", "l2fwd", "nsh-encap")
# A flow's answers have its external address where they meet both, and its internal one where a
# firewall is a stage of its own. These come to where the flow began, so that a pipeline differs.
ONE_LOOK_UP = ("firewall, stateful", "nat", "policer", "classifier")
# What it writes is drawn by chance: its packets are counted, not compared.
BY_CHANCE = ("nat", "vpn")

NODE = """
ports:
  in: {{pcap: {{read: {read}}}{convoys}, mac: "02:00:00:00:00:0a"}}
  out: {{pcap: {{write: {write}}}, mac: "02:00:00:00:00:0c"}}
functions: {{first: {{firewall: {{default: allow}}}}, {functions}}}
chains: {{all: {{from: in, to: out, deployment: {deployment}, path: [first, {path}]}}}}
flows: {{max: 65536, max-ipv6: 65536}}
workers: {{idle: sleep}}
"""
AGGREGATES = """
ports:
  in: {{pcap: {{read: {read}}}}}
  out: {{pcap: {{write: {write}}}, convoys: {{ip: 192.0.2.1}}, mac: "02:00:00:00:00:0a"}}
next-hops: {{b: {{port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}}}
chains: {{all: {{from: in, to: out}}}}
workers: {{idle: sleep}}
"""


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One capture of all."""
    frames = [frame for path in CAPTURES for frame in read_capture(path)]
    assert len(frames) > 5000
    return write_capture(tmp_path_factory.mktemp("captures") / "all.pcap", frames)


@pytest.fixture(scope="module")
def in_convoys(traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in convoys, as a node sends them."""
    folder = tmp_path_factory.mktemp("convoys")
    counts = run(AGGREGATES, folder, read=traffic, write=folder / "convoys.pcap")
    assert counts["accounting"]["dropped"] == 0
    convoys = len(read_capture(folder / "convoys.pcap"))
    assert convoys < len(read_capture(traffic)) / 2
    return folder / "convoys.pcap"


def through(
    names: tuple[str, ...], read: Path, folder: Path, **more: Any
) -> tuple[Any, list[bytes]]:
    """Return a node's counts, and the frames that left it."""
    sas = folder / "sas"
    sas.touch(0o600)
    sas.write_text(SAS)
    (folder / "rules").write_text(RULES)
    functions = ", ".join(f"f{i}: {{{OF[name]}}}" for i, name in enumerate(names))
    values = {"deployment": "inline", "convoys": "", **more}
    counts = run(
        NODE, folder, read=read, write=folder / "out.pcap", functions=functions,
        path=", ".join(f"f{i}" for i in range(len(names))), **values,
    )  # fmt: skip
    accounting, frames = counts["accounting"], read_capture(folder / "out.pcap")
    assert accounting["received"] + accounting["originated"] == (
        accounting["sent"] + accounting["dropped"] + accounting["absorbed"]
    )
    assert counts["ports"]["out"]["tx_packets"] == len(frames)
    return counts, frames


def drops(counts: dict[str, Any]) -> Counter[str]:
    """Return what was dropped, by function and reason."""
    return Counter(
        {
            f"{name} {reason}": count
            for name, function in counts["functions"].items()
            for reason, count in function["drops"].items()
            if count
        }
    )


def wrong_checksums(frames: list[bytes]) -> int:
    """Return how many IPv4 headers have a wrong checksum: hosts left it to their network cards."""
    heads = [f[14:34] for f in frames if f[12:15] == b"\x08\0\x45" and len(f) >= 34]
    return sum(checksum(head) != 0 for head in heads)


def test_no_function_is_forgotten():
    assert {name.partition(",")[0] for name in OF} == set(FUNCTIONS)


@pytest.mark.parametrize("names", [*((name,) for name in OF), ALL, ONE_LOOK_UP], ids=" ".join)
def test_a_function_does_the_same_however_it_meets_them(names, traffic, in_convoys, tmp_path):
    counts, frames = through(names, traffic, tmp_path)
    assert counts["accounting"]["received"] == len(read_capture(traffic))
    assert frames
    assert wrong_checksums(frames) <= wrong_checksums(read_capture(traffic))
    for way, read, more in (
        ("pipelined", traffic, {"deployment": "pipeline"}),
        ("in convoys", in_convoys, {"convoys": ", convoys: {ip: 192.0.2.2}"}),
    ):
        if names == ONE_LOOK_UP and way == "pipelined":
            continue
        other, others = through(names, read, tmp_path, **more)
        assert drops(other) == drops(counts), way
        if set(names) & set(BY_CHANCE):
            assert list(map(len, others)) == list(map(len, frames)), way
        else:
            assert others == frames, way
