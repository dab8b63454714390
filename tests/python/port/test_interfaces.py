# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports on the kernel's interfaces: frames cross a veth pair in a network namespace unchanged."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.node import Node
from convoy.host.process import wait_for

from .captures import read_capture, write_capture
from .plans import joined

DEADLINE_S = 60.0
NAMESPACE = f"convoy-test-{os.getpid()}"
INSIDE = ("ip", "netns", "exec", NAMESPACE)

# VLAN tag 10; two tags, 10 and 20; IPv4, IPv6, ARP and something unknown.
TYPES = ["8100000a0800", "8100000a810000140800", "0800", "86dd", "0806", "88b5"]


def _frames() -> list[bytes]:
    """Return 240 frames of every length class, each with bytes of its own."""
    frames = []
    for i in range(240):
        head = bytes.fromhex("020000000002" + "020000000001" + TYPES[i % len(TYPES)])
        size = (60, 61, 128, 700, 1514)[i % 5]
        frames.append((head + i.to_bytes(2) + bytes([i]) * size)[:size])
    return frames


def _run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stderr.strip() if result.returncode != 0 else ""


@pytest.fixture(scope="module", autouse=True)
def namespace() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces: sudo make check")
    why = _run("ip", "netns", "add", NAMESPACE)
    if why:
        pytest.skip(f"no network namespace here: {why}")
    try:
        for command in (
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
            "ip link add left type veth peer name right",
            "ip link set left up",
            "ip link set right up",
            "ip link add asleep type veth peer name asleep2",
        ):
            why = _run(*INSIDE, *command.split())
            if why and command.startswith("ip"):
                pytest.skip(f"no veth here: {why}")
        yield
    finally:
        _run("ip", "netns", "delete", NAMESPACE)


@pytest.mark.parametrize("kind", ["af_packet", "af_xdp"])
def test_frames_cross_unchanged(kind: str, tmp_path: Path) -> None:
    frames = _frames()
    source = write_capture(tmp_path / "in.pcap", frames)
    out = tmp_path / "out.pcap"
    receiver = joined(
        {
            "wire": {"kind": kind, "interface": "right"},
            "file": {"kind": "pcap", "write": str(out)},
        },
        [("wire", "file")],
    )
    sender = joined(
        {
            "file": {"kind": "pcap", "read": str(source)},
            "wire": {"kind": kind, "interface": "left"},
        },
        [("file", "wire")],
    )
    with Node(receiver, wrapper=INSIDE) as receives:
        with Node(sender, wrapper=INSIDE) as sends:
            sent = sends.finish()
        assert sent["ports"]["wire"]["tx_packets"] == len(frames)
        wait_for(
            lambda: receives.counts()["ports"]["wire"]["rx_packets"] >= len(frames),
            DEADLINE_S,
            "every frame has come",
        )
        assert receives.stop()["accounting"]["conserved"]
    assert read_capture(out) == frames


@pytest.mark.parametrize(
    ("keys", "wrapper", "words"),
    [
        ({"kind": "af_packet", "interface": "asleep"}, (), "interface: asleep: is down"),
        ({"kind": "af_xdp", "interface": "asleep"}, (), "ip link set asleep up"),
        ({"kind": "af_packet", "interface": "nosuch"}, (), "interface: nosuch: there is none"),
        (
            {"kind": "af_packet", "interface": "left"},
            ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"),
            "setcap cap_net_raw+ep",
        ),
        (
            {"kind": "af_xdp", "interface": "left"},
            ("setpriv", "--bounding-set=-bpf,-net_admin", "--inh-caps=-bpf,-net_admin"),
            "setcap cap_net_admin,cap_bpf+ep",
        ),
    ],
)
def test_says_what_is_wrong(keys: dict[str, Any], wrapper: tuple[str, ...], words: str) -> None:
    plan = joined({"wire": keys, "none": {"kind": "null"}}, [("wire", "none")])
    with (
        pytest.raises(ConvoyError, match=words.replace("+", r"\+")),
        Node(plan, wrapper=(*INSIDE, *wrapper)),
    ):
        pass


def test_all_of_a_burst_leaves_a_slow_interface(slow_wire: tuple[str, str], tmp_path: Path):
    # A ring holds as many. By default the kernel takes some 250 of them at a time, and the driver
    # shows it the others only when more are to be sent, which is never.
    frames = [_frames()[i % 240][:60].ljust(60, b"\0") for i in range(1000)]
    read = write_capture(tmp_path / "in.pcap", frames)
    ports = {
        "in": {"kind": "pcap", "read": str(read)},
        "out": {"kind": "af_packet", "interface": slow_wire[0]},
    }
    arrived = Path(f"/sys/class/net/{slow_wire[1]}/statistics/rx_packets")
    with Node(joined(ports, [("in", "out")])):
        wait_for(lambda: int(arrived.read_text()) >= 1000, DEADLINE_S, "all frames")
    assert int(arrived.read_text()) == 1000
