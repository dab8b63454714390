# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The real node: convoyd as it was built here."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from convoy.host.programs import find

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session", autouse=True)
def convoyd() -> Path:
    path = find("convoyd")
    if path is None:
        pytest.skip("convoyd is not built: make build")
    return path


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sockets of a test lie in a folder of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "convoy"


def captures() -> list[Path]:
    """Return the captures of other people's traffic, where this machine has them."""
    folder = Path(os.environ.get("CONVOY_CAPTURES", ROOT.parent / "shared/captures"))
    return sorted(path for path in folder.glob("*") if path.suffix in (".pcap", ".pcapng"))


def write_capture(path: Path, frames: Iterable[bytes]) -> Path:
    """Write frames as a pcap file, a microsecond apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for i, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, i, len(frame), len(frame)) + frame)
    return path


def read_capture(path: Path) -> list[bytes]:
    """Return the frames of a little-endian pcap file."""
    data, frames, at = path.read_bytes(), [], 24
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    return frames
