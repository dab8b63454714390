# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The golden vectors, read and written by Python; their script still makes them."""

import subprocess
import sys

import pytest

from convoy.frame import FrameError, NotAConvoyError, Outer, Reason, decode, encode
from convoy.frame.fragments import Reassembly, read_fragments

from .conftest import EXPANDED, FRAGMENTS, GOOD, NAMES, ROOT, VECTORS, VECTORS_FILE, packets_of


@pytest.mark.parametrize("vector", VECTORS, **NAMES)
def test_a_frame_is_what_the_vector_says(vector):
    frame = bytes.fromhex(vector["frame"])
    port = vector.get("port", 51966)
    if vector["reason"] != "ok":
        with pytest.raises(FrameError) as caught:
            decode(frame, port)
        assert caught.value.reason == vector["reason"]
        assert str(caught.value).startswith(f"{vector['reason']}: ")
        assert isinstance(caught.value, NotAConvoyError) == (vector["reason"] == "not_a_convoy")
        return
    convoy = decode(frame, port)
    assert list(convoy.packets) == packets_of(vector)
    assert convoy.nfi == vector["nfi"]
    # The MTU is the sender's: it is not in the frame.
    output = Outer(**{**vector["outer"], "mtu": 1500})
    assert convoy.outer.model_dump() == output.model_dump()


@pytest.mark.parametrize("vector", [v for v in GOOD if v["packed"]], **NAMES)
def test_a_frame_is_made_as_the_vector_has_it(vector):
    outer = Outer(**vector["outer"])
    assert encode(packets_of(vector), outer, vector["nfi"]).hex() == vector["frame"]


def test_every_reason_has_a_vector():
    assert {vector["reason"] for vector in [*VECTORS, *EXPANDED, *FRAGMENTS]} == set(Reason)


@pytest.mark.parametrize("vector", EXPANDED, **NAMES)
def test_a_compressed_frame_is_what_the_vector_says(vector):
    frame = bytes.fromhex(vector["frame"])
    dictionaries = [b"", *([bytes.fromhex(vector["dictionary"])] if "dictionary" in vector else [])]
    if vector["reason"] != "ok":
        with pytest.raises(FrameError) as caught:
            decode(frame, dictionaries=dictionaries)
        assert caught.value.reason == vector["reason"]
    else:
        convoy = decode(frame, dictionaries=dictionaries)
        assert list(convoy.packets) == packets_of(vector)
        assert convoy.nfi == vector["nfi"]
    before = ("bad_version", "truncated")
    with pytest.raises(FrameError) as caught:
        decode(frame)
    assert caught.value.reason == (vector["reason"] if vector["reason"] in before else "bad_type")


@pytest.mark.parametrize("vector", FRAGMENTS, **NAMES)
def test_a_frame_of_fragments_is_what_the_vector_says(vector):
    frame = bytes.fromhex(vector["frame"])
    if vector["reason"] != "ok":
        with pytest.raises(FrameError) as caught:
            read_fragments(frame)
        assert caught.value.reason == vector["reason"]
    else:
        read = read_fragments(frame)
        assert list(read.packets) == packets_of(vector)
        assert (read.rest or b"").hex() == vector["rest"]
        assert read.beginning.hex() == vector["beginning"]
        for name in ("nfi", "stream", "sequence", "total"):
            assert getattr(read, name) == vector[name]
    with pytest.raises(FrameError) as caught:
        decode(frame)
    assert caught.value.reason == "bad_type"


def test_a_packet_in_two_frames_is_put_together():
    first, then = (bytes.fromhex(vector["frame"]) for vector in FRAGMENTS[:2])
    reassembly = Reassembly()
    later = then[:46] + then[46:50] + bytes(4) + then[54:]  # the next number: 0
    assert len(reassembly.take(first)[0]) == 2
    packets, dropped = reassembly.take(later)
    assert dropped == 0
    whole = bytes.fromhex(FRAGMENTS[0]["beginning"] + FRAGMENTS[1]["rest"])
    assert list(packets) == [whole, *packets_of(FRAGMENTS[1])]
    assert reassembly.take(later)[1] == 1


def test_the_script_makes_the_file():
    script = ROOT / "tests/vectors/make_convoy_frame.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert made.stdout == VECTORS_FILE.read_text(), f"run {script.name} again"
