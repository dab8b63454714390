# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The golden vectors, packets of any kind, and the C side of the frame."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from convoy.frame import PORT, Outer, Vlan

# How long one example takes is no matter of a test.
settings.register_profile("frame", deadline=None)
settings.load_profile("frame")

ROOT = Path(__file__).resolve().parents[3]
VECTORS_FILE = ROOT / "tests/vectors/convoy-frame.json"
VECTORS: list[dict[str, Any]] = json.loads(VECTORS_FILE.read_text())["vectors"]
# For a receiver that expands compressed frames.
EXPANDED: list[dict[str, Any]] = json.loads(VECTORS_FILE.read_text())["expanded"]
# For a receiver that reassembles.
FRAGMENTS: list[dict[str, Any]] = json.loads(VECTORS_FILE.read_text())["fragments"]
GOOD = [vector for vector in VECTORS if vector["reason"] == "ok"]
NAMES = {"ids": lambda vector: vector["name"]}


def packets_of(vector: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(packet) for packet in vector["packets"]]


MTUS = st.sampled_from([128, 576, 1500, 9000])


def nexthops(mtus: st.SearchStrategy[int] = MTUS) -> st.SearchStrategy[Outer]:
    """Any next hop: both IP versions, tags, MTUs."""
    macs = st.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":"))
    ends = st.one_of(
        *[
            st.fixed_dictionaries({"src": st.ip_addresses(v=v), "dst": st.ip_addresses(v=v)})
            for v in (4, 6)
        ]
    )
    vlan = st.builds(Vlan, type=st.sampled_from([0x8100, 0x88A8]), tci=st.integers(0, 65535))
    rest = st.fixed_dictionaries(
        {
            "dst_mac": macs,
            "src_mac": macs,
            "vlans": st.lists(vlan, max_size=2).map(tuple),
            "tos": st.integers(0, 255),
            "ttl": st.integers(1, 255),
            "port": st.one_of(st.just(PORT), st.integers(1, 65535)),
            "source_port": st.integers(1, 65535),
            "mtu": mtus,
        }
    )
    return st.tuples(ends, rest).map(lambda parts: Outer(**parts[0], **parts[1]))


def lots_of_packets(min_bytes: int = 0, max_bytes: int = 200) -> st.SearchStrategy[list[bytes]]:
    """Packets of mixed sizes, and often many of one size."""
    mixed = st.lists(st.binary(min_size=min_bytes, max_size=max_bytes), max_size=60)
    equal = st.tuples(st.binary(min_size=min_bytes, max_size=max_bytes), st.integers(0, 300)).map(
        lambda drawn: [drawn[0]] * drawn[1]
    )
    return st.one_of(mixed, equal)


def lookalikes() -> st.SearchStrategy[list[bytes]]:
    """Packets of which many look like convoys: whole frames of the vectors, good and refused."""
    frames = st.sampled_from([bytes.fromhex(vector["frame"]) for vector in VECTORS])
    return st.lists(st.one_of(frames, st.binary(max_size=200)), max_size=8)


class CSide:
    """Questions to tests/frame/frame_tool.c, and its answers."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"frame-tool ended, asked {question}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def walk(self, frame: bytes, port: int) -> dict[str, Any]:
        return self.ask({"frame": frame.hex(), "port": port})

    def send(self, packets: list[bytes], outer: Outer, nfi: int) -> list[bytes]:
        question = {
            "outer": outer.model_dump(mode="json", exclude_none=True),
            "nfi": nfi,
            "packets": [packet.hex() for packet in packets],
        }
        return [bytes.fromhex(sent) for sent in self.ask(question)["sent"]]


@pytest.fixture(scope="session")
def c_side() -> Iterator[CSide]:
    tool = ROOT / "build/tests/frame/frame-tool"
    assert tool.exists(), f"{tool} is not there: run 'make build'"
    pipe = subprocess.PIPE
    with subprocess.Popen([tool], stdin=pipe, stdout=pipe, text=True) as process:
        yield CSide(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(timeout=60) == 0
