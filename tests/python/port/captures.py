# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Frames in and out of capture files, by scapy: not by the code that is tested."""

from collections.abc import Sequence
from pathlib import Path

from scapy.utils import RawPcapReader, RawPcapWriter


def write_capture(path: Path, frames: Sequence[bytes]) -> Path:
    """Write frames as a pcap file."""
    with RawPcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for i, frame in enumerate(frames):
            writer.write_packet(frame, sec=0, usec=i)
    return path


def read_capture(path: Path) -> list[bytes]:
    """Return the frames of a pcap or pcapng file."""
    with RawPcapReader(str(path)) as reader:
        return [frame for frame, _ in reader]
