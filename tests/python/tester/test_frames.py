# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is on the wire: every frame that the tester sent, read back from a capture by scapy."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap, wrpcap

from convoy.frame import decode, may_be_convoy
from convoy.host.programs import CHECKOUT, need

STAMP = 14


def sent(folder: Path, **specification: Any) -> tuple[list[Packet], dict[str, Any]]:
    """Send one trial into a capture file; return the frames and the result."""
    path = folder / "sent.pcap"
    specification = {"tolerance": 1, "drain_s": 0, "rate_pps": 1000} | specification
    done = subprocess.run(
        [need("convoy-gen"), "--port", f"dev:net_pcap0,tx_pcap={path}"],
        input=json.dumps(specification) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    frames = list(rdpcap(str(path)))
    assert len(frames) == result["total"]["sent_pkts"]
    return frames, result


def assert_checksums(frame: Packet) -> None:
    """Let scapy compute every checksum and length again: nothing changes."""
    original = bytes(frame)
    again = Ether(original)
    for layer in (IP, UDP, TCP, ICMP):
        if layer in again:
            for field in ("chksum", "len"):
                if hasattr(again[layer], field):
                    delattr(again[layer], field)
    rebuilt = bytes(again)
    # UDP's 0xffff and 0 mean the same sum; the tester writes 0xffff.
    assert rebuilt == original


@pytest.mark.alone  # what cannot be sent in time is not sent
@pytest.mark.parametrize(
    ("flows", "size"),
    [
        ({}, 64),
        ({"vlan": "100-102", "count": 3}, 64),
        ({"protocol": "tcp"}, 73),
        ({"ip": 6}, 80),
        ({"ip": 6, "protocol": "tcp", "vlan": 7}, 1518),
    ],
    ids=str,
)
def test_frames_are_valid(tmp_path: Path, flows: dict, size: int):
    frames, _ = sent(tmp_path, duration_s=0.1, flows=flows, size=size)
    assert len(frames) == 100
    for frame in frames:
        assert len(frame) == size - 4
        assert_checksums(frame)
        assert (Dot1Q in frame) == ("vlan" in flows)
        assert (IPv6 in frame) == (flows.get("ip") == 6)
        assert (TCP in frame) == (flows.get("protocol") == "tcp")
    if "count" in flows:
        assert [frame[Dot1Q].vlan for frame in frames[:4]] == [100, 101, 102, 100]


def test_flows_walk_ranges_in_order(tmp_path: Path):
    flows = {"count": 6, "src_ip": "10.0.0.0/31", "dst_ip": "10.9.0.1", "dst_port": "80-82"}
    frames, _ = sent(tmp_path, duration_s=0.012, flows=flows)
    assert [(f[IP].src, f[IP].dst, f[UDP].dport) for f in frames[:6]] == [
        ("10.0.0.0", "10.9.0.1", 80),
        ("10.0.0.1", "10.9.0.1", 81),
        ("10.0.0.0", "10.9.0.1", 82),
        ("10.0.0.1", "10.9.0.1", 80),
        ("10.0.0.0", "10.9.0.1", 81),
        ("10.0.0.1", "10.9.0.1", 82),
    ]
    assert bytes(frames[6])[:42] == bytes(frames[0])[:42]


def test_the_seed_makes_the_order(tmp_path: Path):
    def ports(seed: int) -> list[int]:
        flows = {"count": 50, "order": "shuffle"}
        frames, _ = sent(tmp_path, duration_s=0.05, flows=flows, seed=seed)
        return [frame[UDP].sport for frame in frames]

    first = ports(1)
    assert sorted(first) == list(range(1024, 1074))
    assert first == ports(1) != ports(2) != sorted(first)


def test_imix_has_its_shares(tmp_path: Path):
    frames, result = sent(tmp_path, duration_s=0.48, rate_pps=10_000, size="imix")
    assert Counter(len(frame) + 4 for frame in frames) == {64: 2800, 570: 1600, 1518: 400}
    assert result["total"]["mean_frame_bytes"] == pytest.approx(
        (28 * 64 + 16 * 570 + 4 * 1518) / 48
    )


def test_the_shipped_distribution_is_what_it_says(tmp_path: Path):
    path = CHECKOUT / "scenarios" / "traffic" / "facebook-like.csv"
    frames, _ = sent(tmp_path, duration_s=0.48, rate_pps=10_000, size={"file": str(path)})
    sizes = sorted(len(frame) + 4 for frame in frames)
    assert sizes[len(sizes) // 2] == 120
    assert sum(size < 256 for size in sizes) > 0.95 * len(sizes)
    assert "fit to a description" in path.read_text()


def capture(path: Path) -> list[Packet]:
    """Packets of all kinds of lengths, 1 ms apart."""
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    packets = [
        ether / ip / UDP(sport=1, dport=2) / Raw(b"x" * 100),
        ether / ip / UDP(sport=1, dport=2) / Raw(b"odd" * 33),
        ether / ip / TCP(sport=1, dport=2, flags="A"),
        ether / ip / TCP(sport=1, dport=2, flags="A") / Raw(b"short"),
        Ether(bytes(ether / ip / TCP(sport=1, dport=2, flags="A")) + bytes(6)),  # padded
        ether / ARP(pdst="10.0.0.2"),
        ether / Dot1Q(vlan=5) / ip / ICMP() / Raw(b"ping" * 20),
        ether / IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=1, dport=2) / Raw(b"6" * 64),
        ether / IP(src="10.0.0.1", dst="10.0.0.2", flags="MF") / UDP(sport=1) / Raw(b"f" * 64),
        ether / IP(src="10.0.0.1", dst="10.0.0.2", frag=9, proto=17) / Raw(b"f" * 64),
        Ether(src=ether.src, dst=ether.dst, type=0x88CC) / Raw(b"lldp" * 10),
    ]
    packets = [Ether(bytes(packet)) for packet in packets]
    for i, packet in enumerate(packets):
        packet.time = 1_000_000 + i / 1000
    wrpcap(str(path), packets)
    return packets


def test_a_capture_is_replayed_as_it_was(tmp_path: Path):
    packets = capture(tmp_path / "in.pcap")
    replay = {"file": str(tmp_path / "in.pcap"), "loops": 2}
    frames, result = sent(tmp_path, duration_s=10, capture=replay)
    assert len(frames) == 2 * len(packets)
    for packet, frame in zip(packets * 2, frames, strict=True):
        before, after = bytes(packet), bytes(frame)
        if len(after) == len(before):
            # In the payload: only the stamp changed, and the checksums still hold.
            stamp = (len(after) - STAMP) & ~1
            assert after[:stamp] == before[:stamp]
            assert after[stamp + STAMP :] == before[stamp + STAMP :]
            assert stamp >= 42
            if frame.haslayer(IP) and frame[IP].frag == 0 and not frame[IP].flags.MF:
                assert_checksums(frame)
        else:
            # Behind the packet, which is untouched.
            assert after[: len(before)] == before
            assert len(after) - len(before) in (STAMP, STAMP + 1)
    grown = [len(bytes(f)) != len(bytes(p)) for p, f in zip(packets, frames[:11], strict=True)]
    assert grown == [False, False, True, True, True, True, False, False, False, False, True]
    # 21 gaps of 1 ms; the last packet is sent when its time has come.
    assert 20.9e6 <= result["duration_ns"] < 9e9


def test_replay_at_a_rate_and_at_a_speed(tmp_path: Path):
    capture(tmp_path / "in.pcap")
    replay = {"file": str(tmp_path / "in.pcap"), "timing": "rate"}
    frames, _ = sent(tmp_path, duration_s=0.01, rate_pps=10_000, capture=replay)
    assert len(frames) == 100
    replay = {"file": str(tmp_path / "in.pcap"), "speed": 10}
    _, result = sent(tmp_path, duration_s=0.01095, capture=replay)
    assert result["total"]["offered_pkts"] == 110


def test_a_capture_is_replayed_in_convoys(tmp_path: Path):
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    packets = [
        bytes(ether / ip / UDP(sport=1, dport=i) / Raw(bytes([i]) * size))
        for i, size in enumerate((40, 700, 1472, 64, 40, 40, 40))
    ]
    wrpcap(str(tmp_path / "in.pcap"), [Ether(packet) for packet in packets])
    trial = {
        "capture": {"file": str(tmp_path / "in.pcap"), "timing": "rate"},
        "convoys": 4,
        "packets": 21,
        "rate_pps": "max",
    }
    path = tmp_path / "sent.pcap"
    done = subprocess.run(
        [need("convoy-gen"), "--port", f"dev:net_pcap0,tx_pcap={path}"],
        input=json.dumps(trial | {"drain_s": 0}) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    frames = [bytes(frame) for frame in rdpcap(str(path))]
    convoys = [decode(frame).packets if may_be_convoy(frame) else (frame,) for frame in frames]
    # The longest packet goes by itself; no convoy is fuller than asked for, nor than a frame.
    assert [len(convoy) for convoy in convoys[:3]] == [2, 1, 4]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["convoys"]["sent_frames"] == sum(len(convoy) > 1 for convoy in convoys)
    sent = [packet for convoy in convoys for packet in convoy]
    assert len(sent) == result["total"]["sent_pkts"] == 21
    for before, after in zip(packets * 3, sent, strict=True):
        stamp = (len(before) - STAMP) & ~1
        assert len(after) == len(before)
        assert after[:stamp] == before[:stamp] and after[stamp:] != before[stamp:]
        assert_checksums(Ether(after))


@pytest.mark.parametrize(
    ("name", "content", "fix"),
    [
        ("none.pcap", None, "none.pcap"),
        ("text.pcap", b"not a capture at all", "text.pcap"),
        ("empty.pcap", b"", "empty.pcap"),
        ("cut.pcap", "cut", "cut.pcap"),
        ("snapped.pcap", "snap", "snap length 0"),
        ("large.pcap", "large", "frame=BYTES"),
        ("still.pcap", "still", "rate_pps"),
        ("wifi.pcap", "wifi", "wifi.pcap"),
    ],
)
def test_captures_that_cannot_be_replayed(
    tmp_path: Path, name: str, content: bytes | str | None, fix: str
):
    path = tmp_path / name
    packets = capture(path if content is not None else tmp_path / "other.pcap")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "cut":
        path.write_bytes(path.read_bytes()[:-7])
    elif content == "snap":
        data = bytearray(path.read_bytes())
        data[24 + 12 : 24 + 16] = (2000).to_bytes(4, "little")
        path.write_bytes(data)
    elif content == "large":
        wrpcap(str(path), [packets[0] / Raw(b"x" * 3000)])
    elif content == "still":
        for packet in packets:
            packet.time = 5
        wrpcap(str(path), packets)
    elif content == "wifi":
        wrpcap(str(path), packets, linktype=105)
    done = subprocess.run(
        [need("convoy-gen"), "--port", "dev:net_ring0"],
        input=json.dumps({"capture": {"file": str(path)}}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "capture" in done.stderr and fix in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["reason_code"] == "bad_spec"
