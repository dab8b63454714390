# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Bytes out are the same wherever a chain's functions are placed."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.chain.split import is_split, split
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.open_vswitch import presence
from convoy.host.programs import CHECKOUT, find
from convoy.hybrid import guest
from convoy.hybrid.published import folder_of
from convoy.hybrid.supervisor import Supervisor
from dut.packets import (
    arp,
    esp,
    ether,
    fragments,
    icmp,
    ip,
    ipv6,
    options,
    other,
    tagged,
    tcp,
    udp,
)
from dut.test_conformance import RULE_ROWS

from .wires import Came, wires

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes veth and namespaces"),
]

PORTS = {
    "inside": {"memif": "inside.sock", "mac": "02:00:00:00:0c:01"},
    "outside": {"memif": "outside.sock", "mac": "02:00:00:00:0c:02"},
}
RULES = {
    "default": "deny",
    "rules": [
        {"deny": {"src": "198.18.0.66", "proto": "udp"}},
        {"allow": {"src": "198.18.0.0/24", "proto": "udp", "sport": 7, "dport": 4000}},
        {"allow": {"dst": "198.19.0.0/16", "proto": "udp", "dport": "4096-4102"}},
        {"allow": {"dst": "198.18.0.0/16", "proto": "udp"}},
        {"deny": {"proto": "tcp", "dport": 4096}},
        {"deny": {"proto": "udp", "sport": "0-9"}},
        {"allow": {"src": "198.18.0.0/15", "proto": "tcp"}},
        {"allow": {"proto": "icmp"}},
        {"allow": {"proto": "udp"}},
    ],
}
ROUTES = {
    "routes": [
        "198.19.0.0/16 via 192.0.2.1 dev outside",
        "198.19.4.0/22 via 192.0.2.2 dev outside",
        "198.19.5.7/32 via 192.0.2.1 dev outside",
        "198.18.0.0/16 via 192.0.2.3 dev inside",
        "0.0.0.0/0 via 192.0.2.2 dev outside",
    ],
    "neighbours": {f"192.0.2.{i}": f"02:00:00:00:01:{i:02x}" for i in (1, 2, 3)},
}
# What comes from inside, and the answers to it.
STATEFUL = {"rules": [{"allow": {"src": "198.18.0.0/16"}}, {"deny": {"src": "198.19.0.0/16"}}]}
L2 = {"mode": "rewrite", "dst": "02:00:00:00:02:01"}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "fw": {"firewall": RULES},
    "rtr": {"router": ROUTES},
    "mac": {"l2fwd": L2},
    "swap": {"l2fwd": {"mode": "swap"}},
    "state": {"firewall": {"stateful": True, "tcp-loose": True, **STATEFUL}},
    "limit": {"ttl-limit": {"min": 3, "non-ip": "pass"}},
    "rtr2": {"router": {**ROUTES, "routes": [*ROUTES["routes"][:2], *ROUTES["routes"][3:4]]}},
}


def ipv6_frames() -> list[bytes]:
    head = IPv6(src="2001:db8::1", dst="2001:db8::2")
    return [
        ether(head / TCP(sport=1024, dport=4096)),
        ether(head / TCP(sport=1024, dport=80)),
        ether(head / UDP(sport=5, dport=80) / b"short port"),
        ether(head / UDP(sport=500, dport=80) / b"long port"),
        ether(head / IPv6ExtHdrFragment(offset=0, m=1, id=7) / UDP(sport=5) / bytes(24)),
        ether(head / IPv6ExtHdrFragment(offset=4, m=0, nh=17, id=7) / bytes(24)),
        ether(head / IPv6ExtHdrFragment(offset=4, m=0, nh=6, id=7) / bytes(24)),
    ]


def all_frames() -> list[bytes]:
    frames = [row.frame for row in RULE_ROWS]
    frames += [udp(ttl=ttl) for ttl in (0, 1, 2, 3, 255)]
    frames += [udp(dst=dst) for dst in (
        "198.19.4.0", "198.19.5.7", "198.19.255.255", "198.18.7.7", "127.0.0.1", "0.1.2.3",
        "224.0.0.5", "240.0.0.1", "255.255.255.255", "8.8.8.8",
    )]  # fmt: skip
    frames += [udp(src=src) for src in ("127.0.0.1", "0.0.0.1", "224.0.0.1", "250.0.0.1")]
    frames += [*fragments(), *fragments(tcp), *fragments(icmp), *fragments(sport=5)]
    frames += [arp(), other(), esp(), icmp(), ipv6(), options(), tcp(), tcp(dport=80)]
    frames += [tagged(frame) for frame in (udp(), ipv6(), arp(), tcp(), other())]
    frames += [tagged(tagged(frame), 7) for frame in (udp(), tcp(), ipv6(), other())]
    frames += [ether(ip() / UDP(sport=1, dport=4096) / b"x", dst=mac) for mac in (
        "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01",
    )]  # fmt: skip
    frames += [udp(id=0xBEEF, ttl=33), *ipv6_frames()]
    captured = [bytes(packet) for packet in rdpcap(str(CHECKOUT / "examples/packets.pcap"))]
    frames += random.Random(16).sample([f for f in captured if len(f) <= 1514], 400)
    return [frame + bytes(max(0, 60 - len(frame))) for frame in frames]


def descriptor(path: list[str], places: dict[str, str], both_ways: bool = True) -> dict[str, Any]:
    return {
        "ports": PORTS,
        "functions": {
            name: {**FUNCTIONS[name], **({"place": places[name]} if name in places else {})}
            for name in path
        },
        "chains": {
            "all": {"from": "inside", "to": "outside", "path": path, "both-ways": both_ways}
        },
        "memory": {"hugepages": "never", "mb": 512},
        "workers": {"idle": "sleep"},
    }


# Frames that come out: to the right, and, where a router decides, to the left.
RIGHT = udp(src="198.18.3.3", dst="198.19.9.9", ttl=64)
LEFT = udp(src="198.18.3.3", dst="198.18.9.9", ttl=64)


def outputs(document: dict[str, Any], folder: Path) -> list[Came]:
    """Return what comes out for all frames, from either side."""
    machine = this_machine()
    loaded = loads(yaml.safe_dump(document, sort_keys=False), machine, folder)
    routed = any(name.startswith("rtr") for name in document["functions"])
    ends = [RIGHT, LEFT] if routed else [RIGHT]
    if is_split(loaded.descriptor):
        chain: Any = Supervisor(split(loaded, machine, folder_of(os.getpid())), "test")
    else:
        chain = Node(make_plan(loaded, machine).data)
    with chain, wires(folder) as wired:
        result = []
        for side in ("inside", "outside"):
            wired.until_it_forwards(side, ends)
            result.append(wired.through(side, all_frames(), ends))
        return result


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # sockets' paths must be short
        (Path(name) / "convoy").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name) / "convoy"


_inline: dict[str, list[Came]] = {}


def of_node(path: list[str], folder: Path) -> list[Came]:
    """Return what a node alone does with the path."""
    key = " ".join(path)
    if key not in _inline:
        _inline[key] = outputs(descriptor(path, {}), folder)
        assert all(len(came) > 20 for came in _inline[key])
    return _inline[key]


def lengths_of(came: Came) -> list[tuple[str, int]]:
    return [(side, len(frame)) for side, frame in came]


SPLITS = [
    (["fw"], {"fw": "switch"}),
    (["swap"], {"swap": "switch"}),
    (["rtr"], {"rtr": "switch"}),
    (["fw", "rtr", "mac"], {"fw": "process", "rtr": "process", "mac": "process"}),
    (["fw", "rtr", "mac"], {"fw": "switch", "rtr": "switch", "mac": "switch"}),
    (["fw", "rtr", "mac"], {"fw": "switch", "rtr": "process"}),
    (["fw", "rtr", "mac"], {"fw": "process", "rtr": "switch"}),
    (["fw", "rtr", "mac"], {"fw": "switch", "mac": "switch"}),
    (["state", "mac"], {"state": "process", "mac": "switch"}),
    (["limit", "rtr", "fw", "rtr2"], {"rtr": "process", "fw": "switch", "rtr2": "switch"}),
    pytest.param(["state", "rtr"], {"state": "vm", "rtr": "switch"}, marks=pytest.mark.emulated),
    (["fw", "rtr", "mac"], {"fw": "switch", "rtr": "container", "mac": "container"}),
    (["fw", "rtr", "mac"], {"fw": "shared", "rtr": "shared", "mac": "shared"}),
    (["limit", "rtr", "fw", "swap"], {"limit": "process", "rtr": "shared", "swap": "shared"}),
    (["limit", "rtr", "fw", "mac"], {"limit": "shared", "rtr": "process", "fw": "switch"}),
]


def named(value: Any) -> str:
    places = value if isinstance(value, dict) else {}
    return "-".join(f"{name}.{place}" for name, place in places.items()) or "-".join(value)


@pytest.mark.parametrize(("path", "places"), SPLITS, ids=named)
def test_the_same_bytes_come_out(
    path, places, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    if "container" in places.values():
        monkeypatch.setenv("CONVOY_IMAGE", request.getfixturevalue("image"))
    if "switch" in places.values() and presence()[1]:
        pytest.skip(presence()[1])
    if "vm" in places.values() and guest.missing():
        pytest.skip(guest.missing())
    expected = of_node(path, folder)
    came = outputs(descriptor(path, places), folder)
    for side, ours, theirs in zip(("inside", "outside"), came, expected, strict=True):
        more = [Ether(frame[1]).summary() for frame in ours if frame not in theirs]
        less = [Ether(frame[1]).summary() for frame in theirs if frame not in ours]
        assert ours == theirs, f"from {side}: more {more}, less {less}"
    assert not list(folder.glob("split-*"))
