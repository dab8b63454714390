# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/convoy.lua in tshark, on the golden vectors."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapWriter

from convoy.frame import FrameError, decode

from .conftest import EXPANDED, FRAGMENTS, NAMES, ROOT, VECTORS

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: run 'make setup'"
)
FIELDS = ["frame.number", "convoy.reason", "convoy.nfi", "convoy.count", "convoy.packet.length"]
FIELDS += ["udp.port", "_ws.lua.error", "_ws.col.Info"]

# From Wireshark 4.4 on, root has no scripts.
NOT_ROOT: dict[str, Any] = (
    {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
)


def tshark(capture: Path, *options: str) -> list[dict[str, str]]:
    """Return each frame's fields, as tshark prints them."""
    with tempfile.TemporaryDirectory() as folder, capture.open("rb") as frames:
        script = shutil.copy(ROOT / "tools/convoy.lua", folder)
        Path(folder).chmod(0o755)
        command = ["tshark", "-n", "-X", f"lua_script:{script}", "-r", "-", "-T", "fields"]
        command += [*options, *(part for field in FIELDS for part in ("-e", field))]
        done = subprocess.run(
            command,
            stdin=frames, capture_output=True, text=True, timeout=120, check=True,
            env={**os.environ, "HOME": folder}, **NOT_ROOT,
        )  # fmt: skip
    assert "Lua" not in done.stderr and "bug" not in done.stderr, done.stderr
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("dissector") / "vectors.pcap"
    writer = RawPcapWriter(str(path), linktype=1)
    writer.write_header(None)
    for vector in VECTORS:
        writer.write_packet(bytes.fromhex(vector["frame"]))
    writer.close()
    return path


@pytest.fixture(scope="module")
def rows(capture):
    result = tshark(capture)
    assert [int(row["frame.number"]) for row in result] == list(range(1, len(VECTORS) + 1))
    return result


def refused_for_its_payload(vector) -> bool:
    """Whether the convoy itself is refused: outer headers are other dissectors' work."""
    try:
        decode(bytes.fromhex(vector["frame"]))
    except FrameError as error:
        return re.search(r"packet \d|packets|must be", str(error)) is not None
    return False


@pytest.mark.parametrize("vector", [v for v in VECTORS if "port" not in v], **NAMES)
def test_a_vector_is_shown_as_what_it_is(rows, vector):
    row = rows[VECTORS.index(vector)]
    assert not row["_ws.lua.error"]
    if vector["name"] == "first byte 0x11":  # a compressed frame, which it does not expand
        assert row["convoy.reason"] == "bad_codec"
        return
    if vector["reason"] == "ok":
        lengths = [str(len(packet) // 2) for packet in vector["packets"]]
        assert row["convoy.packet.length"].split(",") == lengths
        assert row["convoy.reason"] == ""
        assert row["_ws.col.Info"] == f"Convoy of {len(lengths)} to NFI-ID {vector['nfi']}"
    elif "destination port" in vector["name"] or vector["name"] in ("TCP", "ARP"):
        assert row["convoy.count"] == row["convoy.reason"] == ""
    elif refused_for_its_payload(vector):
        assert row["convoy.reason"] == vector["reason"]
        assert row["convoy.packet.length"] == ""


def test_refusals_of_the_payload_are_all_there():
    reasons = {vector["reason"] for vector in VECTORS if refused_for_its_payload(vector)}
    assert reasons == {
        *("bad_version", "bad_type", "bad_count", "bad_length"),
        *("runt_packet", "trailing_bytes"),
    }


def test_embedded_packets_are_dissected(rows):
    row = rows[0]
    assert VECTORS[0]["name"] == "two packets over IPv4"
    assert row["udp.port"].split(",") == ["49152", "51966", "1001", "53", "1002", "53"]


def test_the_port_is_a_preference(capture):
    rows = tshark(capture, "-o", "convoy.port:4000")
    for vector, row in zip(VECTORS, rows, strict=True):
        to_4000 = vector.get("port") == 4000 and vector["reason"] == "ok"
        assert (row["convoy.count"] != "") == to_4000


def test_fragments_are_shown_as_what_they_are(tmp_path):
    path = tmp_path / "fragments.pcap"
    writer = RawPcapWriter(str(path), linktype=1)
    writer.write_header(None)
    for vector in FRAGMENTS:
        writer.write_packet(bytes.fromhex(vector["frame"]))
    writer.close()
    for vector, row in zip(FRAGMENTS, tshark(path), strict=True):
        assert not row["_ws.lua.error"]
        if vector["name"] == "a rest that is longer than the frame":
            continue
        assert row["convoy.reason"] == ("" if vector["reason"] == "ok" else vector["reason"])
        if vector["reason"] == "ok":
            lengths = ",".join(str(len(packet) // 2) for packet in vector["packets"])
            assert row["convoy.packet.length"] == lengths
            assert row["_ws.col.Info"].endswith("to NFI-ID 7, some cut")


def test_compressed_frames_are_shown_as_far_as_they_can_be(tmp_path):
    path = tmp_path / "compressed.pcap"
    writer = RawPcapWriter(str(path), linktype=1)
    writer.write_header(None)
    for vector in EXPANDED:
        writer.write_packet(bytes.fromhex(vector["frame"]))
    writer.close()
    seen = ("bad_codec", "bad_version", "bad_type")
    for vector, row in zip(EXPANDED, tshark(path), strict=True):
        assert not row["_ws.lua.error"]
        assert row["convoy.packet.length"] == ""
        if vector["reason"] == "ok":
            assert row["convoy.reason"] == ""
            assert row["_ws.col.Info"] == "Convoy of 2 to NFI-ID 7, compressed"
        elif vector["reason"] in seen or vector["name"] in ("no packets", "no compression header"):
            assert row["convoy.reason"] == vector["reason"]
