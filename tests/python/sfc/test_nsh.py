# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""NSH byte by byte beside Open vSwitch: encapsulation, forwarding, proxy, decapsulation."""

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scapy.contrib.nsh import NSH
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from .conftest import OUT_MAC, read_capture, through
from .ovs import Switch, present

NEXT = "02:00:00:00:00:99"
CONTEXT = bytes(range(16))
ETHERNET = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
RELIABLE = settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # one run takes too long to shrink
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def plain_frames(seed: int, count: int = 40) -> list[bytes]:
    """Return frames of all kinds and lengths."""
    rng = random.Random(seed)
    frames = []
    for i in range(count):
        layers: Packet = Ether(**ETHERNET)
        if rng.random() < 0.3:
            layers /= Dot1Q(vlan=rng.randrange(4096))
        layers /= rng.choice(
            (
                IP(src="10.0.0.1", dst="10.0.0.2", id=i) / TCP(dport=rng.randrange(65536)),
                IP(src="10.0.0.1", dst="10.0.0.2", id=i) / UDP(dport=rng.randrange(65536)),
                IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=i),
                ARP(),
            )
        )
        frames.append(bytes(layers / Raw(rng.randbytes(rng.choice((0, 1, 18, 200, 1300))))))
    return frames


def tlv(class_: int, data: bytes) -> bytes:
    """Return a piece of metadata of type 2 (RFC 8300 section 2.5.1)."""
    return struct.pack(">HBB", class_, 7, len(data)) + data + bytes(-len(data) % 4)


def header(
    path: int = 42,
    index: int = 255,
    ttl: int = 63,
    metadata: bytes = CONTEXT,
    mdtype: int = 1,
    version: int = 0,
    oam: bool = False,
    unassigned: int = 0,
) -> bytes:
    """Return an NSH before an Ethernet frame (RFC 8300 section 2)."""
    first = version << 30 | oam << 29 | (unassigned & 1) << 28 | ttl << 22
    first |= (2 + len(metadata) // 4) << 16 | (unassigned >> 1) << 12 | mdtype << 8 | 3
    return struct.pack(">II", first, path << 8 | index) + metadata


def nsh(inner: bytes, index: int, ttl: int = 63, variable: bool = False) -> bytes:
    """Return a frame with NSH behind Ethernet."""
    more = {"mdtype": 2, "metadata": tlv(0x1000, b"\x12\x34\x56\x78")} if variable else {}
    head = header(index=index, ttl=ttl, **more)  # type: ignore[arg-type]
    return bytes(Ether(**ETHERNET, type=0x894F)) + head + inner


def test_headers_are_scapys():
    theirs = NSH(mdtype=1, spi=7, si=200, ttl=33, oam=1, context_header=CONTEXT)
    assert header(path=7, index=200, ttl=33, oam=True) == bytes(theirs)


def ran_switch(
    folder: Path, frames: Sequence[bytes], actions: str, match: str = "dl_type=0x894f"
) -> list[bytes]:
    """Return what Open vSwitch makes of the frames."""
    folder.mkdir()
    with Switch(folder, 2, [f"in_port=1 {match} actions={actions},output:2"]) as switch:
        for frame in frames:
            switch.receive(1, frame)
    return read_capture(switch.sent(2))


needs_ovs = pytest.mark.skipif(not present(), reason="Open vSwitch is not installed: make setup")
ENCAP = """
f:
  nsh-encap:
    rules: [{{path: 42, index: 255, mac: "{mac}", {metadata}}}]
"""
TO_NEXT = f"encap(ethernet),set_field:{NEXT}->eth_dst,set_field:{OUT_MAC}->eth_src"
PATH = "set_field:42->nsh_spi,set_field:255->nsh_si,set_field:63->nsh_ttl"
CONTEXTS = ",".join(
    f"set_field:0x{CONTEXT[4 * i : 4 * i + 4].hex()}->nsh_c{i + 1}" for i in range(4)
)


@needs_ovs
@pytest.mark.parametrize(
    ("metadata", "actions"),
    [
        (f'context: "{CONTEXT.hex()}"', f"encap(nsh(md_type=1)),{PATH},{CONTEXTS}"),
        (
            'tlvs: [{metadata-class: 0x1000, type: 7, value: "12345678"}]',
            f"encap(nsh(md_type=2,tlv(0x1000,7,0x12345678))),{PATH}",
        ),
    ],
    ids=["type 1", "type 2"],
)
def test_encapsulates_as_open_vswitch(tmp_path: Path, metadata: str, actions: str):
    frames = plain_frames(1)
    functions = ENCAP.format(mac=NEXT, metadata=metadata)
    ours = through(tmp_path / "convoy", frames, functions, ["f"])
    assert ours.out == ran_switch(tmp_path / "ovs", frames, f"{actions},{TO_NEXT}", "")
    assert len(ours.out) == len(frames)


FORWARD = f"""
f:
  nsh:
    paths: [{{path: 42, index: 254, mac: "{NEXT}"}}, {{path: 42, index: 253, action: decapsulate}}]
"""


@needs_ovs
@pytest.mark.parametrize("variable", [False, True], ids=["type 1", "type 2"])
def test_forwards_as_open_vswitch(tmp_path: Path, variable: bool):
    frames = [
        nsh(inner, 254, ttl=ttl, variable=variable)
        for inner in plain_frames(2, 8)
        for ttl in (63, 32, 2, 1)
    ]
    ours = through(tmp_path / "convoy", frames, FORWARD, ["f"])
    macs = f"set_field:{NEXT}->eth_dst,set_field:{OUT_MAC}->eth_src"
    assert ours.out == ran_switch(tmp_path / "ovs", frames, f"dec_nsh_ttl,{macs}")
    assert len(ours.out) == len(frames) * 3 // 4
    assert ours.drops("f") == {"ttl_expired": len(frames) // 4}


@needs_ovs
@pytest.mark.parametrize("variable", [False, True], ids=["type 1", "type 2"])
def test_decapsulates_as_open_vswitch(tmp_path: Path, variable: bool):
    inside = plain_frames(3)
    frames = [nsh(inner, 253, variable=variable) for inner in inside]
    ours = through(tmp_path / "convoy", frames, FORWARD, ["f"])
    assert ours.out == ran_switch(tmp_path / "ovs", frames, "decap(),decap()") == inside


ROLES = f"""
sff:
  nsh:
    paths:
      - {{path: 42, index: 255, action: proxy, output: inside}}
      - {{path: 42, index: 254, mac: "{NEXT}"}}
      - {{path: 42, index: 253, action: decapsulate}}
      - {{path: 42, index: 0, action: proxy, output: inside}}
    outputs: {{inside: inspect}}
fw: {{firewall: {{non-ip: drop, rules: [{{allow: {{proto: tcp}}}}]}}}}
onward: {{nsh: {{paths: [{{path: 42, index: 254, mac: "{NEXT}"}}]}}}}
"""
MORE = "inspect: {to: out, path: [fw, onward]}"

headers = st.fixed_dictionaries(
    {
        "version": st.sampled_from((0, 0, 0, 0, 0, 1)),
        "oam": st.sampled_from((False, False, False, False, False, True)),
        "unassigned": st.integers(0, 31),
        "ttl": st.sampled_from((63, 0, 1, 2)) | st.integers(0, 63),
        "mdtype": st.sampled_from((1, 1, 1, 2, 2, 2, 0, 15)),
        "path": st.sampled_from((42, 42, 42, 43)),
        "index": st.sampled_from((255, 255, 254, 254, 253, 252, 0)),
        "metadata": st.lists(
            st.builds(tlv, st.integers(0, 65535), st.binary(max_size=40)), max_size=3
        ),
    }
)
transports = st.sampled_from(("ethernet", "ethernet", "vlan", "vxlan", "vxlan6"))
INSIDE = plain_frames(4)


def transport(kind: str, nsh: bytes) -> bytes:
    """Return a frame with NSH in it, by scapy."""
    tunnel = UDP(dport=4790, sport=5) / VXLAN(flags=0x0C, NextProtocol=4, vni=9) / Raw(nsh)
    layers: dict[str, Packet] = {
        "ethernet": Ether(**ETHERNET, type=0x894F) / Raw(nsh),
        "vlan": Ether(**ETHERNET) / Dot1Q(vlan=7, type=0x894F) / Raw(nsh),
        "vxlan": Ether(**ETHERNET) / IP(src="10.0.0.1", dst="10.0.0.2") / tunnel,
        "vxlan6": Ether(**ETHERNET) / IPv6(src="::1", dst="::2") / tunnel,
    }
    return bytes(layers[kind])


def becomes(drawn: dict[str, Any], kind: str, inner: bytes) -> bytes | None:
    """Return what the node of test_roles makes of a frame; None: it is dropped."""
    path, index, ttl = drawn["path"], drawn["index"], drawn["ttl"]
    known = path == 42 and index in (255, 254, 253)
    if drawn["version"] or drawn["mdtype"] not in (1, 2) or not known or drawn["oam"]:
        return None
    if index == 253:
        return inner
    if ttl == 1 or (index == 255 and TCP not in Ether(inner)):
        return None
    tag = Dot1Q(vlan=7, type=0x894F) if kind == "vlan" else Raw()
    ethernet = Ether(src=OUT_MAC, dst=NEXT, type=0x8100 if kind == "vlan" else 0x894F) / tag
    return bytes(ethernet) + header(**drawn | {"index": 254, "ttl": (ttl - 1) % 64}) + inner


@RELIABLE
@given(
    drawn=st.lists(
        st.tuples(headers, transports, st.sampled_from(INSIDE)), min_size=40, max_size=60
    ),
    convoys=st.booleans(),
)
def test_roles(tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], convoys: bool):
    for head, _, _ in drawn:
        if head["mdtype"] == 1:
            head["metadata"] = CONTEXT
        elif isinstance(head["metadata"], list):
            head["metadata"] = b"".join(head["metadata"])
    frames = [transport(kind, header(**head) + inner) for head, kind, inner in drawn]
    folder = tmp_path_factory.mktemp("roles")
    ran = through(folder, frames, ROLES, ["sff"], more=MORE, convoys=convoys)
    want = [out for out in (becomes(*each) for each in drawn) if out is not None]
    assert sorted(ran.out) == sorted(want)


def test_a_proxy_in_a_pipeline(tmp_path: Path):
    inside = [frame for frame in plain_frames(7) if TCP in Ether(frame)]
    functions = ROLES.replace(", output: inside", "").replace(
        "    outputs: {inside: inspect}\n", ""
    )
    frames = [nsh(inner, 255) for inner in inside]
    ran = through(tmp_path, frames, functions, ["sff", "fw", "onward"], deployment="pipeline")
    ethernet = bytes(Ether(src=OUT_MAC, dst=NEXT, type=0x894F))
    assert ran.out == [ethernet + header(index=254, ttl=62) + inner for inner in inside]


def test_in_convoys_nothing_is_copied_but_what_grows(tmp_path: Path):
    frames = [nsh(inner, index) for inner in plain_frames(5) for index in (255, 254, 253)]
    ran = through(tmp_path / "in place", frames, ROLES, ["sff"], more=MORE, convoys=True)
    copied = [ran.counts["functions"][name]["copied_out"] for name in ("sff", "fw", "onward")]
    assert copied == [0, 0, 0]
    ran = through(tmp_path / "grown", frames, ENCAP.format(mac=NEXT, metadata="ttl: 9"), ["f"],
                  convoys=True)  # fmt: skip
    assert 0 < ran.counts["functions"]["f"]["copied_out"] <= len(frames)
    assert len(ran.out) == len(frames)
    assert sorted(out[14 + 24 :] for out in ran.out) == sorted(frames)


def test_what_a_tunnel_carries(tmp_path: Path):
    tunnel = "vxlan-gpe: {src: 192.0.2.1, dst: 192.0.2.2, vni: 77}"
    frames = plain_frames(6)
    ran = through(tmp_path, frames, ENCAP.format(mac=NEXT, metadata=tunnel), ["f"])
    for frame, out in zip(frames, ran.out, strict=True):
        packet = Ether(out)
        sum_, packet[IP].chksum = packet[IP].chksum, None
        assert Ether(bytes(packet))[IP].chksum == sum_
        assert (packet[IP].len, packet[UDP].len) == (len(out) - 14, len(out) - 34)
        assert (packet[VXLAN].vni, packet[VXLAN].flags, packet[UDP].dport) == (77, 0x0C, 4790)
        assert packet[NSH].spi == 42
        assert bytes(packet[NSH].payload) == frame
    assert len({Ether(out)[UDP].sport for out in ran.out}) > 10
