# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The firewall in the node, packet by packet, against a slow model and against the kernel's."""

import json
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from . import firewall_model as model
from .conftest import captures, read_capture, write_capture
from .firewall_kernel import Kernel, UnavailableError, kernel

DEADLINE_S = 60
REASONS = ("denied", "default_denied", "bad_header", "fragment", "non_ip", "invalid")


def plan(config: dict[str, Any], read: Path, write: Path) -> dict[str, Any]:
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": "in", "kind": "pcap", "read": str(read), "mtu": 9000},
            {"name": "out", "kind": "pcap", "write": str(write), "mtu": 9000},
        ],
        "functions": [{"name": "fw", "type": "firewall", "config": config}],
        "chains": [{"name": "all", "match": {}, "in": "in", "out": "out"}],
        "stages": [
            {
                "worker": 0,
                "chain": "all",
                "source": {"port": "in", "queue": 0},
                "path": ["fw"],
                "sink": {"port": "out"},
            }
        ],
        "workers": [{"core": 0, "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


class Node:
    """convoyd with one firewall between two captures."""

    def __init__(self, convoyd: Path, folder: Path) -> None:
        self.convoyd, self.folder = convoyd, folder

    def through(self, config: dict[str, Any], read: Path) -> tuple[list[bytes], dict[str, Any]]:
        """Return the frames that came through, and what the function counted."""
        out = self.folder / "out.pcap"
        done = subprocess.run(
            [self.convoyd, "-"],
            input=json.dumps(plan(config, read, out)),
            text=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        counts = json.loads(done.stdout.splitlines()[-1])
        assert counts["accounting"]["conserved"]
        return read_capture(out), counts["functions"]["fw"]


@pytest.fixture(scope="module")
def node(convoyd: Path, tmp_path_factory: pytest.TempPathFactory) -> Node:
    return Node(convoyd, tmp_path_factory.mktemp("firewall"))


@pytest.fixture(scope="module")
def nftables() -> Iterator[Kernel]:
    try:
        with kernel() as ready:
            yield ready
    except UnavailableError as reason:
        pytest.skip(f"no nftables in a namespace here: {reason}")


def compare_model(
    config: dict[str, Any], frames: list[bytes], passed: list[bytes], counts: dict[str, Any]
) -> None:
    firewall = model.Firewall(config)
    verdicts = [firewall.verdict(frame) for frame in frames]
    wanted = [frame for frame, (what, _) in zip(frames, verdicts, strict=True) if what == "pass"]
    assert passed == wanted
    reasons = Counter(what for what, _ in verdicts)
    assert counts["drops"] == {reason: reasons[reason] for reason in REASONS}
    hits = Counter(rule for _, rule in verdicts if rule is not None)
    listed = {rule["index"]: rule["packets"] for rule in counts["info"]["rules"]}
    assert listed == {i: hits[i] for i in range(len(config["rules"]))}


def kernel_understands(frame: bytes) -> bool:
    """Tell if the kernel's firewall sees in the frame what ours does, by its own definition.

    It does not validate packets that do not add up, looks behind one VLAN tag only, and takes an
    IPv6 authentication header for the packet's protocol.
    """
    try:
        packet = model.read(frame)
    except model.RefusedError:
        return False
    return packet is None or (packet.tags < 2 and not packet.authenticated)


def compare_kernel(
    config: dict[str, Any], frames: list[bytes], passed: list[bytes], nftables: Kernel
) -> None:
    understood = [frame for frame in frames if kernel_understands(frame)]
    theirs = nftables.through(config, understood)
    ours = [frame for frame in passed if kernel_understands(frame)]
    if theirs != ours:
        differ = Counter(theirs)
        differ.subtract(ours)
        lines = [
            f"{'kernel' if count > 0 else 'convoy'} alone passes {frame.hex()}: {model.read(frame)}"
            for frame, count in differ.items()
            if count != 0
        ]
        pytest.fail("\n".join(lines or ["another order"]) + f"\n{json.dumps(config)}")


# Random rules and packets. Numbers are drawn from few, so that rules overlap and packets hit
# their edges.

ADDRESSES = {
    4: ["10.0.0.1", "10.0.0.255", "10.0.1.0", "10.128.0.1", "192.0.2.1", "203.0.113.77"],
    6: ["2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1", "2001:dba::1", "fe80::1", "::1"],
}
LENGTHS = {4: [0, 1, 8, 9, 23, 24, 31, 32], 6: [0, 1, 31, 32, 33, 63, 64, 65, 127, 128]}
PORTS = [0, 1, 53, 79, 80, 81, 443, 1023, 1024, 40000, 65535]
NUMBERS = [1, 6, 17, 33, 47, 50, 58, 59, 132, 136, 255]


@st.composite
def port_ranges(draw):
    first, last = sorted((draw(st.sampled_from(PORTS)), draw(st.sampled_from(PORTS))))
    return draw(st.sampled_from([first, f"{first}-{last}"]))


@st.composite
def rules(draw):
    rule = {"action": draw(st.sampled_from(["allow", "deny"]))}
    version = draw(st.sampled_from([4, 6]))
    for key in ("src", "dst"):
        if draw(st.booleans()):
            address = draw(st.sampled_from(ADDRESSES[version]))
            length = draw(st.sampled_from(LENGTHS[version]))
            rule[key] = str(ip_network(f"{address}/{length}", strict=False))
    if draw(st.booleans()):
        rule["proto"] = draw(st.sampled_from([*NUMBERS, "tcp", "udp", "icmp", "icmpv6", "sctp"]))
    if rule.get("proto", 6) in (6, 17, 33, 132, 136, "tcp", "udp", "sctp"):
        for key in ("sport", "dport"):
            if draw(st.booleans()):
                rule[key] = draw(port_ranges())
    return rule


@st.composite
def asking(draw):
    """Draw a rule that may ask for more than the 5-tuple."""
    rule = draw(rules())
    if draw(st.integers(0, 2)) == 0:
        rule["proto"] = draw(st.sampled_from(["tcp", "icmp", "icmpv6"]))
        for key in ("sport", "dport"):
            if rule["proto"] != "tcp":
                rule.pop(key, None)
        if rule["proto"] == "tcp":
            rule["tcp_flags"] = draw(st.sampled_from(["syn,!ack", "ack", "!syn,!rst", "fin,cwr"]))
        else:
            rule["icmp_type"] = draw(st.sampled_from([0, 3, 156]))
            if draw(st.booleans()):
                rule["icmp_code"] = draw(st.sampled_from([0, 64, 255]))
    values = {
        "dscp": st.sampled_from([0, 46, 63]),
        "vlan": st.sampled_from(["none", 1, 7]),
        "length": st.sampled_from([40, "40-60", "60-100"]),
        "fragment": st.sampled_from(["none", "first", "any"]),
    }
    for key, value in values.items():
        if draw(st.integers(0, 4)) == 0:
            rule[key] = draw(value)
    if not {"sport", "dport", "tcp_flags", "icmp_type"} & {*rule} and draw(st.booleans()):
        rule["fragment"] = "later"
    return rule


def configs_of(rule: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "default": st.sampled_from(["allow", "deny"]),
            "non_ip": st.sampled_from(["pass", "drop"]),
            # Both lookups: few rules and, with the same one again and again, many.
            "rules": st.lists(rule, max_size=12).flatmap(
                lambda few: st.sampled_from([few, few * 4])
            ),
        }
    )


configs = configs_of(rules())


def ether(kind: int, payload: bytes, tags: list[tuple[int, int]]) -> bytes:
    head = bytes.fromhex("020000000002020000000001")
    for tpid, vlan in tags:
        head += tpid.to_bytes(2, "big") + vlan.to_bytes(2, "big")
    return head + kind.to_bytes(2, "big") + payload


def ipv4(src, dst, proto, payload, options, offset, more):
    header = bytearray(20 + 4 * options)
    header[0], header[8], header[9] = 0x45 + options, 64, proto
    header[2:4] = (len(header) + len(payload)).to_bytes(2, "big")
    header[6:8] = (offset | (0x2000 if more else 0)).to_bytes(2, "big")
    header[12:16], header[16:20] = src, dst
    header[20:] = b"\x01" * (4 * options)
    return bytes(header) + payload


def ipv6(src, dst, proto, payload, chain, offset, more, fragmented):
    """Build a packet: chain is extension headers (number, units of 8 bytes behind the first)."""
    headers = [(number, bytes([0, units]) + bytes(6 + 8 * units)) for number, units in chain]
    headers = [(n, h[:1] + bytes([2 * h[1]]) + h[2:] if n == 51 else h) for n, h in headers]
    if fragmented:
        field = (offset << 3 | int(more)).to_bytes(2, "big")
        headers.append((44, bytes(2) + field + bytes(4)))
    following = [number for number, _ in headers[1:]] + [proto]
    body = b"".join(bytes([n]) + h[1:] for n, (_, h) in zip(following, headers, strict=False))
    first = headers[0][0] if headers else proto
    length = len(body) + len(payload)
    return (
        b"\x60\0\0\0" + length.to_bytes(2, "big") + bytes([first, 64]) + src + dst + body + payload
    )


@st.composite
def frames(draw):
    version = draw(st.sampled_from([4, 6]))
    src, dst = (
        ip_network(draw(st.sampled_from(ADDRESSES[version]))).network_address.packed for _ in "12"
    )
    proto = draw(st.sampled_from(NUMBERS))
    sport, dport = (draw(st.sampled_from(PORTS)) for _ in "12")
    flags = draw(st.sampled_from([0, 0x02, 0x12, 0x10, 0x14, 0x81]))
    payload = sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes(9) + bytes([flags, 0, 0])
    payload += bytes(draw(st.sampled_from([0, 4, 30])))
    part = draw(st.sampled_from(["whole", "whole", "first", "later"]))
    offset = draw(st.sampled_from([1, 2, 185, 8191])) if part == "later" else 0
    more = part == "first" or (part == "later" and draw(st.booleans()))
    if version == 4:
        data = ipv4(src, dst, proto, payload, draw(st.sampled_from([0, 0, 1, 10])), offset, more)
    else:
        chain = draw(
            st.sampled_from([[], [], [(0, 0)], [(60, 1)], [(0, 0), (43, 2)], [(0, 1), (51, 1)]])
        )
        fragmented = part != "whole" or draw(st.booleans())
        data = ipv6(src, dst, proto, payload, chain, offset, more, fragmented)
    dscp = draw(st.sampled_from([0, 46, 63]))
    data = bytearray(data)
    data[0:2] = (
        bytes([data[0], dscp << 2 | 1])
        if version == 4
        else bytes([0x60 | dscp >> 2, (dscp & 3) << 6])
    )
    tags = draw(
        st.sampled_from([[], [], [], [(0x8100, 7)], [(0x88A8, 7)], [(0x88A8, 1), (0x8100, 2)]])
    )
    return ether(0x0800 if version == 4 else 0x86DD, bytes(data), tags)


@st.composite
def spoiled(draw):
    """Draw a frame with a few bytes changed, its end cut, or padding behind it."""
    frame = bytearray(draw(frames()))
    how = draw(st.sampled_from(["change", "cut", "pad", "not ip", "more tags"]))
    if how == "change":
        for _ in range(draw(st.integers(1, 3))):
            frame[draw(st.integers(12, len(frame) - 1))] = draw(st.integers(0, 255))
    elif how == "cut":
        del frame[draw(st.integers(0, len(frame))) :]
    elif how == "pad":
        frame += bytes(draw(st.integers(1, 20)))
    elif how == "not ip":
        frame[12:14] = draw(st.sampled_from([b"\x08\x06", b"\x88\xcc", b"\0\x26", b"\x88\x47"]))
    else:
        frame[12:12] = b"\x81\0\0\1" * draw(st.integers(1, 3))
    return bytes(frame)


batches = st.lists(st.one_of(frames(), frames(), spoiled()), min_size=30, max_size=120)
# Every try starts a node: a failing example is shown as it is, for making it small takes minutes.
relaxed = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)


@relaxed
@given(config=st.one_of(configs, configs_of(asking())), batch=batches)
def test_random_rules(node: Node, config: dict[str, Any], batch: list[bytes]) -> None:
    batch = [frame for frame in batch if frame]  # a capture's reader may skip empty ones
    passed, counts = node.through(config, write_capture(node.folder / "in.pcap", batch))
    compare_model(config, batch, passed, counts)


@relaxed
@given(config=configs, batch=batches)
def test_random_rules_like_the_kernel(
    node: Node, nftables: Kernel, config: dict[str, Any], batch: list[bytes]
) -> None:
    batch = [frame for frame in batch if frame]
    passed, counts = node.through(config, write_capture(node.folder / "in.pcap", batch))
    compare_model(config, batch, passed, counts)
    compare_kernel(config, batch, passed, nftables)


# Other people's traffic: rules made of what is in it, so that each decides something.


def rules_for(frames: list[bytes], count: int, seed: int) -> dict[str, Any]:
    drawn = random.Random(seed)
    packets = []
    for frame in frames:
        try:
            packets.append(model.read(frame))
        except model.RefusedError:
            continue
    packets = [packet for packet in packets if packet]
    made: list[dict[str, Any]] = []
    while packets and len(made) < count:
        packet = drawn.choice(packets)
        rule: dict[str, Any] = {"action": drawn.choice(["allow", "deny"])}
        for key in ("src", "dst"):
            if drawn.random() < 0.5:
                address = getattr(packet, key)
                length = drawn.choice([address.max_prefixlen, 16, 24, address.max_prefixlen])
                rule[key] = str(ip_network(f"{address}/{length}", strict=False))
        if drawn.random() < 0.5:
            rule["proto"] = packet.proto
        if packet.proto in model.PORTS.values():
            if drawn.random() < 0.3:
                rule["sport"] = packet.sport
            if drawn.random() < 0.3:
                low = drawn.randrange(packet.dport + 1)
                rule["dport"] = f"{low}-{drawn.randrange(packet.dport, 65536)}"
        if len(rule) > 2:  # not one that takes nearly everything
            made.append(rule)
    return {"default": drawn.choice(["allow", "deny"]), "rules": made}


CAPTURES = captures()


@pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)
# Few rules and many are looked up in different ways: half of the captures see one, half the other.
@pytest.mark.parametrize(
    ("path", "count"),
    [(path, (6, 60)[i % 2]) for i, path in enumerate(CAPTURES)],
    ids=lambda value: getattr(value, "stem", str(value)),
)
def test_capture(path: Path, count: int, node: Node, nftables_or_none: Kernel | None) -> None:
    frames = [packet[0] for packet in RawPcapReader(str(path))]
    config = rules_for(frames, count, seed=count)
    passed, counts = node.through(config, path)
    compare_model(config, frames, passed, counts)
    if nftables_or_none:
        compare_kernel(config, frames, passed, nftables_or_none)


@pytest.fixture(scope="module")
def nftables_or_none() -> Iterator[Kernel | None]:
    """The kernel where there is one; the test above has the model everywhere."""
    try:
        with kernel() as ready:
            yield ready
    except UnavailableError:
        yield None
