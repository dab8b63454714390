# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""`spread: round-robin`: bursts of a port go to the workers in turn, whatever their flows."""

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from convoy.chain.load import loads
from convoy.chain.plan import Plan, make_plan
from convoy.cli.run import run
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node_check import check_plan
from convoy.host.programs import need
from cores import CORES

from .conftest import read_capture, write_capture

TEXT = """
ports:
  a: {pcap: {read: in.pcap}}
  b: {pcap: {write: out.pcap}}
functions:
  f: {FUNCTION}
chains:
  web: {from: a, to: b, path: [f], spread: SPREAD}
workers: {cores: [CORES]}
memory: {hugepages: never}
"""
PACKETS = 2000


def plan_of(folder: Path, spread: str, function: str = "l2fwd: {mode: swap}") -> Plan:
    """Return a plan of a chain from one queue, with two workers where it is dealt out."""
    if CORES[0] == CORES[-1]:
        pytest.skip("needs two cores")
    machine = this_machine()
    text = TEXT.replace("CORES", f"{CORES[0]}, {CORES[-1]}").replace("SPREAD", spread)
    return make_plan(loads(text.replace("FUNCTION", function), machine, folder), machine)


@pytest.mark.parametrize(("spread", "workers"), [("rss", 1), ("round-robin", 2)])
def test_workers_share_one_flow_and_nothing_is_lost(tmp_path: Path, spread: str, workers: int):
    head = Ether() / IP(src="10.0.0.1", dst="198.51.100.7") / UDP(sport=1, dport=2)
    sent = [bytes(head / number.to_bytes(4, "big")) for number in range(PACKETS)]
    write_capture(tmp_path / "in.pcap", sent)
    counts = run(tmp_path, plan_of(tmp_path, spread)).counts
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0
    assert counts["functions"]["f"]["packets"] == PACKETS
    assert [one["busy_cycles"] > 0 for one in counts["workers"]] == [True] * workers
    went = read_capture(tmp_path / "out.pcap")
    assert sorted(data[12:] for data in went) == sorted(data[12:] for data in sent)
    if spread == "rss":  # else the workers pass each other
        assert [data[12:] for data in went] == [data[12:] for data in sent]


REMEMBER: list[dict[str, Any]] = [
    {"type": "firewall", "config": {"stateful": True, "default": "allow"}},
    {"type": "policer", "config": {"cir_bps": 1_000_000}},
    {"type": "bridge", "config": {"sides": ["a", "b"]}},
]


@pytest.mark.parametrize("function", REMEMBER, ids=lambda function: function["type"])
def test_convoyd_itself_refuses_to_deal_out_what_is_remembered(
    tmp_path: Path, function: dict[str, Any]
):
    write_capture(tmp_path / "in.pcap", [])
    plan = dict(plan_of(tmp_path, "round-robin").data)
    plan["functions"] = [{"name": "f", **function}]
    with pytest.raises(
        InputError, match=r"spread: round-robin: function \"f\" remembers"
    ) as caught:
        check_plan(need("convoyd"), plan)
    assert "\n" not in str(caught.value)
