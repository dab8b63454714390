# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions that devices have beside firewall, router and l2fwd do what the referee asks for.

What it asks of them, and that it finds what is wrong, is tested without devices too.
"""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from convoy.dut import functions
from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.payload_functions import nat64, seal, unseal
from convoy.errors import ConvoyError
from convoy.host.programs import find
from convoy.results.trial_result import PacketCounts, TrialResult
from convoy.run import rehearsal
from convoy.run.referee import compare_output, comparison, meanings
from convoy.run.rehearsal import compare_policed, compare_sealed, rehearsals
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .wire import interfaces

PATHS = {
    "balancer": (functions.balancer(10),),
    "policer": (functions.policer(),),
    "translation": (nat64(), nat64()),
    "tunnel": (seal(), unseal()),
}
KINDS = {"convoy": "vhost-user", "ovs-dpdk": "vhost-user", "linux": "af_packet",
         "vm": "virtio-user"}  # fmt: skip
PAIRS = [
    (name, path)
    for name in KINDS
    for path, chain in PATHS.items()
    if {function.type for function in chain} <= device(name).ability.functions
]


def _setup(name: str, folder: Path, path: str) -> Setup:
    kind = KINDS[name]
    addresses = interfaces() if kind == "af_packet" else (str(folder / "l"), str(folder / "r"))
    left, right = (PortAt(kind, address) for address in addresses)
    return Setup(PATHS[path], left, right, (CORES[-1],), folder)


@pytest.mark.alone
@pytest.mark.skipif(find("convoy-gen") is None, reason="convoy-gen is not built: make build")
@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
@pytest.mark.parametrize(("name", "path"), PAIRS, ids=str)
def test_what_comes_out_is_what_the_function_means(name, path, tmp_path: Path):
    if name == "vm" and "CONVOY_GUESTS" not in os.environ:
        pytest.skip("guests boot for minutes: CONVOY_GUESTS=1")
    dut = device(name)
    if dut.presence().missing:
        pytest.skip(dut.presence().missing)
    setup = _setup(name, tmp_path, path)
    if dut.cannot(setup):
        pytest.skip(dut.cannot(setup))
    chain = meanings(setup.functions)
    assert chain is not None
    alone = [(each.functions, each.check) for each in rehearsals(setup.functions)]
    whole = partial(_compare, comparison(chain))
    for number, (functions_of_it, check) in enumerate([*alone, (setup.functions, whole)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        setup = replace(_setup(name, folder, path), functions=functions_of_it)
        with dut.start(setup) as running, _tester(name, setup) as tester:
            running.ready(60)
            check(tester, name, folder / "x.pcap", 0)


def _compare(wanted, tester, what, file, convoys):
    compare_output(tester, what, wanted, file, convoys)


def _tester(name: str, setup: Setup) -> ConvoyGen:
    ends = enumerate((setup.left, setup.right))
    return ConvoyGen([device(name).tester_port(port, i) for i, port in ends], CORES[0])


def test_what_is_measured_as_it_is_has_no_rehearsal():
    count = {path: len(rehearsals(chain)) for path, chain in PATHS.items()}
    assert count == {"balancer": 0, "policer": 1, "translation": 1, "tunnel": 1}
    policed = rehearsals(PATHS["policer"])[0].functions
    assert policed == (functions.policer(rehearsal.POLICED_BPS),)


class Letting:
    """A tester behind which a device lets some of what is sent pass, and in what state."""

    def __init__(self, share: float, foreign: float = 0.0, **more: int) -> None:
        self._share, self._foreign, self._more = share, foreign, more

    def trial(self, specification):
        sent = round(specification["rate_pps"] * specification["duration_s"])
        total = PacketCounts(sent_pkts=sent, received_pkts=round(sent * self._share), **self._more)
        return TrialResult(ok=True, total=total, foreign_pkts=round(sent * self._foreign))


@pytest.mark.parametrize(
    ("tester", "words"),
    [
        (Letting(1.0), "Mbit/s pass a policer of 20 Mbit/s"),
        (Letting(0.25, corrupt_pkts=1), "changes packets"),
        (Letting(0.0), "0.0 Mbit/s pass a policer"),
    ],
)
def test_a_policer_that_does_not_police_is_found(tester, words, tmp_path: Path, monkeypatch):
    clock = map(float, range(1000))  # each trial takes as long as it says
    monkeypatch.setattr(rehearsal, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(ConvoyError, match=f"wrong output, so no rate counts: .*{words}"):
        compare_policed(tester, "stub", tmp_path / "x")
    compare_policed(Letting(0.25), "stub", tmp_path / "x")


@pytest.mark.parametrize(
    ("tester", "words"),
    [
        (Letting(1.0), "1000 packets came out of a tunnel unsealed"),
        (Letting(0.0), "1000 packets came out of a tunnel as 0"),
        (Letting(0.0, 2.0), "1000 packets came out of a tunnel as 2000"),
    ],
)
def test_a_tunnel_that_does_not_seal_is_found(tester, words, tmp_path: Path):
    with pytest.raises(ConvoyError, match=words):
        compare_sealed(tester, "stub", tmp_path / "x")
    compare_sealed(Letting(0.0, 1.0), "stub", tmp_path / "x")


def test_a_translator_that_passes_packets_as_they_are_is_found():
    chain = meanings((nat64(),))
    assert chain is not None
    wanted = comparison(chain)
    assert all(due[0][12:14] == b"\x86\xdd" for due in wanted.due)
    assert "bytes came out instead of" in wanted.wrong([wanted.sent[0].hex()], {})
    six = bytearray(wanted.due[0][0])
    assert wanted.wrong([six.hex()], {}) == ""
    six[60] ^= 1  # in the checksum of UDP
    assert "byte 60 is" in wanted.wrong([six.hex()], {})


def test_of_a_translator_only_the_identification_is_left_open():
    chain = meanings((nat64(), nat64()))
    assert chain is not None
    wanted = comparison(chain)
    came = bytearray(wanted.due[0][0])
    assert came[22] == 62  # the TTL, less a hop in each
    assert wanted.wrong([came.hex()], {}) == ""
    came[18:22] = b"\x12\x34\x40\x00"
    assert "IPv4 identification" in wanted.wrong([came.hex()], {})  # and its checksum is wrong
    came[24:26] = (0xFFFF - sum(came[i] << 8 | came[i + 1] for i in range(14, 34, 2) if i != 24)
                   % 0xFFFF).to_bytes(2, "big")  # fmt: skip
    assert wanted.wrong([came.hex()], {}) == ""
