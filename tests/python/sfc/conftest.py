# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The real node over captures: packets in, packets out."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader, RawPcapWriter

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.run import run
from convoy.host.machine import this_machine
from convoy.host.programs import find

IN_MAC, OUT_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


@pytest.fixture(scope="session", autouse=True)
def convoyd() -> None:
    if find("convoyd") is None:
        pytest.skip("convoyd is not built: make build")


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets of a test lie in a folder of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def write_capture(path: Path, frames: Sequence[bytes]) -> Path:
    """Write frames as a pcap file."""
    with RawPcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for i, frame in enumerate(frames):
            writer.write_packet(frame, sec=0, usec=i)
    return path


def read_capture(path: Path) -> list[bytes]:
    """Return the frames of a pcap file."""
    with RawPcapReader(str(path)) as reader:
        return [frame for frame, _ in reader]


@dataclass(frozen=True)
class Ran:
    """What a node did."""

    out: list[bytes]
    back: list[bytes]  # by the port that frames came in by
    counts: Any

    def drops(self, function: str) -> dict[str, int]:
        """Return a function's drops by reason, without those that there are none of."""
        drops: dict[str, int] = self.counts["functions"][function]["drops"]
        return {reason: n for reason, n in drops.items() if n}


def through(
    folder: Path,
    frames: Sequence[bytes],
    functions: str,
    path: Sequence[str],
    more: str = "",
    convoys: bool = False,
    deployment: str = "inline",
) -> Ran:
    """Run frames through a chain of functions. more: chains that outputs lead to.

    convoys: they come in aggregated, by another node.
    """
    folder.mkdir(exist_ok=True)
    machine = this_machine()

    def forward(text: str) -> Any:
        done = run(folder, make_plan(loads(text, machine, folder), machine))
        assert done.counts["accounting"]["conserved"]
        return done.counts

    write_capture(folder / "in.pcap", frames)
    if convoys:
        forward(
            f"""
ports:
  in: {{pcap: {{read: {folder}/in.pcap}}}}
  out: {{pcap: {{write: {folder}/convoys.pcap}}, convoys: {{ip: 192.0.2.1}}}}
next-hops: {{b: {{port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.2, mtu: 9000}}}}
chains: {{all: {{from: in, to: out}}}}
"""
        )
    read = "convoys.pcap" if convoys else "in.pcap"
    counts = forward(
        f"""
ports:
  in: {{pcap: {{read: {folder}/{read}, write: {folder}/back.pcap}}, mac: "{IN_MAC}"\
{", convoys: {}" if convoys else ""}}}
  out: {{pcap: {{write: {folder}/out.pcap}}, mac: "{OUT_MAC}"}}
functions:
{textwrap.indent(textwrap.dedent(functions), "  ")}
chains:
  all: {{from: in, to: out, path: [{", ".join(path)}], deployment: {deployment}}}
{textwrap.indent(textwrap.dedent(more), "  ")}
"""
    )
    return Ran(read_capture(folder / "out.pcap"), read_capture(folder / "back.pcap"), counts)
