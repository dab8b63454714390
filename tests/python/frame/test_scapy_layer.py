# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The scapy layer takes the vectors apart and makes them again."""

import subprocess
import sys

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from convoy.frame import Outer, Vlan, decode
from convoy.frame.scapy_layer import Convoy, Embedded, bind

from .conftest import EXPANDED, FRAGMENTS, GOOD, NAMES, packets_of


@pytest.mark.parametrize("vector", GOOD, **NAMES)
def test_a_vector_is_taken_apart_and_made_again(vector):
    bind(vector.get("port", 51966))
    frame = Ether(bytes.fromhex(vector["frame"]))
    convoy = frame[Convoy]
    assert (convoy.version, convoy.type, convoy.nfi) == (1, 0, vector["nfi"])
    assert [bytes(embedded.packet) for embedded in convoy.packets] == packets_of(vector)
    assert f"Convoy of {len(vector['packets'])} to" in convoy.mysummary()
    # Counts and lengths are filled in.
    packets = [Embedded(packet=Ether(packet)) for packet in packets_of(vector)]
    frame[UDP].payload = Convoy(nfi=vector["nfi"], packets=packets)
    assert bytes(frame).hex() == vector["frame"]
    bind()


@pytest.mark.parametrize("vector", [v for v in EXPANDED if v["reason"] == "ok"], **NAMES)
def test_a_compressed_vector_is_taken_apart_and_made_again(vector):
    frame = Ether(bytes.fromhex(vector["frame"]))
    convoy = frame[Convoy]
    assert (convoy.type, convoy.count, convoy.codec, convoy.reserved) == (1, 2, 1, 0)
    assert convoy.bytes == sum(2 + len(packet) for packet in packets_of(vector))
    assert convoy.mysummary() == "Convoy of 2, compressed, to NFI-ID 7"
    names = ("count", "bytes", "dictionary", "block")
    fields = {name: getattr(convoy, name) for name in names}
    frame[UDP].payload = Convoy(type=1, nfi=vector["nfi"], **fields)
    assert bytes(frame).hex() == vector["frame"]


@pytest.mark.parametrize("vector", [v for v in FRAGMENTS if v["reason"] == "ok"], **NAMES)
def test_a_vector_of_fragments_is_taken_apart_and_made_again(vector):
    frame = Ether(bytes.fromhex(vector["frame"]))
    convoy = frame[Convoy]
    rest = bytes.fromhex(vector["rest"])
    whole = convoy.packets[1:] if rest else convoy.packets
    assert [bytes(embedded.packet) for embedded in whole] == packets_of(vector)
    assert convoy.beginning.hex() == vector["beginning"]
    names = ("stream", "sequence", "total")
    assert {name: getattr(convoy, name) for name in names} == {name: vector[name] for name in names}
    packets = [
        Embedded(packet=Raw(part)) for part in [*([rest] if rest else []), *packets_of(vector)]
    ]
    frame[UDP].payload = Convoy(
        type=2, nfi=7, flags=convoy.flags, packets=packets, beginning=convoy.beginning,
        **{name: vector[name] for name in names},
    )  # fmt: skip
    assert bytes(frame).hex() == vector["frame"]


def test_what_scapy_makes_is_a_convoy():
    inner = Ether(dst="02:00:00:00:01:02", src="02:00:00:00:01:01", type=0x88CC) / bytes(46)
    from scapy.layers.inet import IP

    ends = {"dst": "02:00:00:00:00:02", "src": "02:00:00:00:00:01"}
    ip = IP(src="192.0.2.1", dst="192.0.2.2")
    frame = Ether(**ends) / ip / UDP() / Convoy(nfi=9, packets=[Embedded(packet=inner)] * 3)
    convoy = decode(bytes(frame))
    assert convoy.packets == (bytes(inner),) * 3
    assert convoy.nfi == 9
    assert convoy.outer.vlans == ()
    assert isinstance(convoy.outer, Outer) and not isinstance(convoy.outer, Vlan)


def test_without_scapy_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['scapy.fields'] = None\n"
        "import convoy.frame\n"
        "from convoy.errors import InputError\n"
        "try:\n    import convoy.frame.scapy_layer\n"
        "except InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install scapy" in done.stdout
