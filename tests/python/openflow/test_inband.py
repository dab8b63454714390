# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""FLOW_MODs in PACKET_OUT, which Open vSwitch forwards to the port behind which the node is."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.client import Client
from convoy.client.steering import seal
from convoy.errors import InputError
from convoy.host.node import Node
from convoy.host.process import wait_for
from node.conftest import read_capture
from sfc import ovs

from .conftest import ADD, BARRIER, DELETE, flow_mod, message, node_of
from .test_traffic import Wire, packet

NODE = """
ports:
  wire: {{af_packet: {interface}, convoys: {{ip: 192.0.2.1}}}}
  steering: {{openflow: openflow.key}}
next-hops:
  b: {{port: wire, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 1, for: []}}
  c: {{port: wire, mac: "02:00:00:00:00:0c", ip: 192.0.2.3, nfi: 2, for: []}}
chains:
  one: {{from: wire, to: wire, match: {{vni: 5000}}}}
  control: {{from: wire, to: steering}}
workers: {{idle: sleep}}
"""
KEY = bytes(range(32))


@pytest.fixture
def node(veth: tuple[str, str], tmp_path: Path) -> Iterator[Node]:
    (tmp_path / "openflow.key").write_text(KEY.hex() + "\n")
    (tmp_path / "openflow.key").chmod(0o600)
    with node_of(NODE.format(interface=veth[0]), tmp_path) as one:
        yield one
        assert one.stop()["accounting"]["conserved"]


@pytest.fixture
def wire(veth: tuple[str, str]) -> Iterator[Wire]:
    one = Wire(veth[1])
    yield one
    one.close()


def counts(client: Client) -> dict[str, Any]:
    return dict(client.counts()["openflow"])


def await_count(client: Client, name: str, count: int) -> None:
    wait_for(lambda: counts(client)[name] == count, 20, f"{count} {name}")


@pytest.mark.skipif(not ovs.present(), reason="no Open vSwitch")
def test_packet_out_by_open_vswitch(node: Node, wire: Wire, tmp_path: Path) -> None:
    folder = tmp_path / "ovs"
    folder.mkdir()
    frames = [
        seal(flow_mod(ADD, 2, vni=5000), KEY),
        seal(flow_mod(ADD, 1, vni=5000) + flow_mod(ADD, 2, vni=6), KEY),
    ]
    with ovs.Switch(folder, 1, []) as switch:
        for frame in frames:
            flow = f"in_port=CONTROLLER,packet={frame.hex()},actions=output:1"
            subprocess.run(
                ["ovs-ofctl", "-O", "OpenFlow15", "packet-out", f"unix:{folder}/br.mgmt", flow],
                check=True,
            )
    redirected = read_capture(switch.sent(1))
    assert redirected == frames
    with Client(node.running.control) as client:
        for number, frame in enumerate(redirected):
            wire.raw(frame)
            await_count(client, "frames", number + 1)
            wire.send(*range(20 * number, 20 * number + 20))
            wire.wait_for(20 * number + 20)
        assert client.next_hops()["c"]["packets"] == client.next_hops()["b"]["packets"] == 20
        assert counts(client)["entries"] == 2
        assert counts(client)["changes"] == 3


def test_what_is_not_authentic(node: Node, wire: Wire) -> None:
    now = time.time_ns()
    good = seal(flow_mod(ADD, 2, vni=5000), KEY, now_ns=now)
    minute = 61 * 10**9
    bad = [
        seal(flow_mod(ADD, 2, vni=1), bytes(32)),
        good[:30] + bytes([good[30] ^ 1]) + good[31:],
        good[:-1] + bytes([good[-1] ^ 1]),
        good[:-1],
        good[:40],
        good[:12] + b"\x88\xb6" + good[14:],
        seal(flow_mod(ADD, 2, vni=2), KEY, now_ns=now - minute),
        seal(flow_mod(ADD, 2, vni=2), KEY, now_ns=now + minute + 10**9),
        seal(message(BARRIER), KEY),
        seal(flow_mod(ADD, 2, vni=3)[:-1], KEY),
        packet(0, 77),
    ]
    with Client(node.running.control) as client:
        for number, frame in enumerate(bad):
            wire.raw(frame)
            await_count(client, "frames_refused", number + 1)
        assert counts(client)["entries"] == 0
        wire.raw(good)
        await_count(client, "entries", 1)
        wire.raw(good)  # again
        wire.raw(seal(flow_mod(DELETE, vni=5000), KEY, now_ns=now))  # not newer
        await_count(client, "frames_refused", len(bad) + 2)
        assert counts(client)["entries"] == 1
        wire.raw(tunnelled(seal(flow_mod(DELETE, vni=5000), KEY)))
        await_count(client, "entries", 0)
        assert counts(client)["frames"] == 2


def tunnelled(frame: bytes) -> bytes:
    """Put a frame into a tunnel of another id than the chain's."""
    outer = packet(0, 9)
    size = 20 + 8 + 8 + len(frame)
    ip = outer[14:16] + size.to_bytes(2) + outer[18:34]
    return outer[:14] + ip + outer[34:38] + (size - 20).to_bytes(2) + outer[40:50] + frame


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("", 0o600, "must have 64 hexadecimal digits"),
        ("zz" * 32, 0o600, "must have 64 hexadecimal digits"),
        ("00" * 33, 0o600, "must have 64 hexadecimal digits"),
        ("00" * 32, 0o644, "others may read or write it, and it has keys; chmod 600"),
        (None, 0o600, "no such file"),
    ],
)
def test_a_bad_key(tmp_path: Path, text: str | None, mode: int, message: str) -> None:
    if text is not None:
        (tmp_path / "openflow.key").write_text(text)
        (tmp_path / "openflow.key").chmod(mode)
    with (
        pytest.raises(InputError, match=message),
        node_of(NODE.format(interface="lo"), tmp_path),
    ):
        pass
