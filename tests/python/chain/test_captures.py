# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Captures in place of a chain's ends."""

from pathlib import Path

import pytest

from convoy.chain.captures import with_captures
from convoy.chain.load import loads
from convoy.chain.machine import Machine
from convoy.chain.plan import make_plan
from convoy.errors import InputError

TEXT = """
ports: {a: {af_packet: x, queues: 2}, b: {vhost-user: b.sock}, c: {vhost-user: c.sock}}
functions: {f: {l2fwd: {mode: swap}}, g: {l2fwd: {}}}
chains:
  one: {match: {vlan: 1}, from: a, to: b, path: [f, g], deployment: pipeline, both-ways: true}
  two: {match: {vlan: 2}, from: a, to: c, path: [g]}
"""
MACHINE = Machine(dict.fromkeys(range(8), 0), Path("/run/convoy"))


def changed(read=None, write=None, chain=None, text=TEXT):
    plan = make_plan(loads(text, MACHINE, Path("/nowhere")), MACHINE)
    return with_captures(plan, read, write, chain)


def test_both_ends():
    plan = changed(Path("/in.pcap"), Path("/out.pcap"), "one")
    assert plan.data["ports"] == [
        {"name": "a", "kind": "pcap", "read": "/in.pcap"},
        {"name": "b", "kind": "pcap", "write": "/out.pcap"},
        {"name": "c", "kind": "null"},
    ]
    assert [chain["name"] for chain in plan.data["chains"]] == ["one", "two"]
    assert all(stage["source"].get("queue", 0) == 0 for stage in plan.data["stages"])
    used = {stage["worker"] for stage in plan.data["stages"]}
    assert used == set(range(len(plan.data["workers"])))
    assert "not run, they come in by other ports: one.back" in plan.notes


def test_only_write_keeps_the_other_ports():
    plan = changed(write=Path("/out.pcap"), chain="two")
    assert [port["kind"] for port in plan.data["ports"]] == ["af_packet", "vhost-user", "pcap"]
    assert len(plan.data["chains"]) == 3


def test_the_way_back():
    plan = changed(read=Path("/in.pcap"), chain="one.back")
    assert [port["kind"] for port in plan.data["ports"]] == ["null", "pcap", "null"]
    assert [chain["name"] for chain in plan.data["chains"]] == ["one.back"]


def test_one_port_for_both():
    plan = changed(
        Path("/i"), Path("/o"), None, "ports: {a: {null: }}\nchains: {w: {from: a, to: a}}"
    )
    port = {"name": "a", "kind": "pcap", "read": "/i", "write": "/o"}
    assert plan.data["ports"] == [port]


def test_what_is_read_is_not_written_over(tmp_path):
    (tmp_path / "in.pcap").write_text("")
    (tmp_path / "link.pcap").symlink_to("in.pcap")
    with pytest.raises(InputError, match="is the capture that --read reads"):
        changed(tmp_path / "in.pcap", tmp_path / "link.pcap", "two")


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (None, "which chain do the captures belong to.*one, one.back, two"),
        ("tow", "--chain: 'tow': no chain is called so; did you mean 'two'"),
    ],
)
def test_which_chain(chain, message):
    with pytest.raises(InputError, match=message):
        changed(Path("/in.pcap"), chain=chain)
