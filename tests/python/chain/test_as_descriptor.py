# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A plan as the descriptor that it could have been made from."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.as_descriptor import NotADescriptorError, as_descriptor
from convoy.chain.load import load, loads
from convoy.chain.machine import Machine
from convoy.chain.plan import make_plan
from convoy.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
Plan = dict[str, Any]


def again(plan: Plan, machine: Machine, file: Path | None = None) -> Plan:
    """Return the plan of a plan's descriptor, made by itself."""
    text = as_descriptor(plan, machine, file)
    return make_plan(loads(text, machine, Path("/nowhere")), machine).data


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_come_back(path: Path, machine: Machine, tmp_path: Path) -> None:
    plan = make_plan(load(path, machine), machine).data
    assert again(plan, machine, tmp_path / "node.yaml") == plan


def test_a_person_could_have_written_it(good: str, machine: Machine) -> None:
    plan = make_plan(loads(good, machine, Path("/")), machine).data
    text = as_descriptor(plan, machine, None)
    assert text == (
        "ports:\n"
        "  left: {vhost-user: /tmp/left.sock}\n"
        "  right: {af_packet: eth1}\n"
        "functions:\n"
        "  fw:\n"
        "    firewall:\n"
        "      rules:\n"
        "      - allow: {dst: 10.0.0.0/8, proto: udp, dport: 53}\n"
        "  rtr:\n"
        "    router:\n"
        "      routes:\n"
        "      - 10.0.0.0/8 via 192.0.2.1 dev right\n"
        "      neighbours: {192.0.2.1: '02:00:00:00:00:01'}\n"
        "  br:\n"
        "    bridge:\n"
        "      sides: [left, right]\n"
        "chains:\n"
        "  web:\n"
        "    match: {vlan: 10}\n"
        "    from: left\n"
        "    to: right\n"
        "    path: [fw, rtr]\n"
        "workers:\n"
        "  cores: [1]\n"
        "memory: {hugepages: never}\n"
    )


ROUTES = [
    "blackhole 10.1.0.0/16",
    "unreachable 2001:db8:1::/48",
    "10.2.0.0/16 dev left",
    "2001:db8::/32 via fe80::1 dev left",
    "0.0.0.0/0 nexthop via 192.0.2.1 dev left nexthop via 192.0.2.2 dev right",
]

MORE = """\
ports:
  left: {vhost-user: left.sock, queues: 2, mtu: 9000, socket-mode: "0660", packed: false}
  right: {memif: right.sock, role: client, id: 3, slots: 256}
  file_1: {pcap: {read: in.pcap, write: out.pcap}}
  nothing: {"null": }
functions:
  rtr:
    router:
      addresses: {left: [192.0.2.254/24, "2001:db8:2::1/64"]}
      routes: ROUTES
      neighbours: {192.0.2.2: "02:00:00:00:00:02"}
  split: {classifier: {rules: [{match: {sport: 1-9, vlan: 3}, output: a}], outputs: {a: side_1}}}
  pol: {policer: {cir-bps: 1000000, red: {dscp: 3}, per: host, yellow: drop}}
chains:
  all: {from: left, to: right, path: [split, rtr], both-ways: true}
  side_1: {to: file_1, path: [pol]}
  tail: {match: {vni: 7}, from: file_1, to: nothing, deployment: pipeline, path: [pol]}
  dealt: {match: {vni: 8}, from: file_1, to: nothing, spread: round-robin}
flows: {}
workers: {cores: [1, 3], idle: sleep}
memory: {hugepages: never, mb: 300}
telemetry: {socket-mode: "0666"}
run-as: nobody
"""


def more(machine: Machine, tmp_path: Path) -> Plan:
    text = MORE.replace("ROUTES", json.dumps(ROUTES))
    (tmp_path / "in.pcap").write_bytes((ROOT / "examples/packets.pcap").read_bytes())
    return make_plan(loads(text, machine, tmp_path), machine).data


def test_what_examples_do_not_have_comes_back(machine: Machine, tmp_path: Path) -> None:
    plan = more(machine, tmp_path)
    assert again(plan, machine) == plan
    text = as_descriptor(plan, machine, None)
    for route in ROUTES:
        assert f"- {route}\n" in text


def test_who_scales_comes_back(machine: Machine) -> None:
    text = "ports: {a: {null: }, b: {null: }}\nchains: {w: {from: a, to: b, both-ways: true}}\n"
    plan = make_plan(
        loads(text + "workers: {scale: auto}", machine, Path("/nowhere")), machine
    ).data
    assert "scale: auto" in as_descriptor(plan, machine, None)
    assert again(plan, machine) == plan


def test_dictionaries_are_files_beside_it(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "a.dict").write_bytes(b"what all packets have" * 4)
    text = """\
ports:
  left: {vhost-user: left.sock}
  right:
    vhost-user: right.sock
    convoys: {ip: 192.0.2.1, expand: lz4, dictionaries: [a.dict]}
next-hops:
  far:
    {port: right, mac: "02:00:00:00:00:01", ip: 192.0.2.2, compress: lz4, dictionary: a.dict,
     wait: 2.5us, for: []}
chains: {all: {from: left, to: right, both-ways: true}}
"""
    plan = make_plan(loads(text, machine, tmp_path), machine).data
    with pytest.raises(InputError, match="convoy show --descriptor FILE"):
        as_descriptor(plan, machine, None)
    assert again(plan, machine, tmp_path / "node.yaml") == plan
    (written,) = tmp_path.glob("node.lz4-dictionary-*")  # each is written once
    assert written.read_bytes() == (tmp_path / "a.dict").read_bytes()


def _change(plan: Plan, change: Callable[[Plan], object]) -> Plan:
    changed = copy.deepcopy(plan)
    change(changed)
    return changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p["workers"][0].update(idle="yield"), "idle in several ways"),
        (lambda p: p["chains"][0].update(match={"vlan": 4}), r"both|chains\[1\]\.match"),
        (lambda p: p["stages"][0].update(worker=1), "would be otherwise"),
        (lambda p: p["ports"][0].update(kind="carrier-pigeon"), "no kind 'carrier-pigeon'"),
        (lambda p: p["functions"][0]["config"].update(colour=3), "colour"),
        (lambda p: p.pop("stages"), "lacks 'stages'"),
        (lambda p: p["stages"].clear(), "no stage that begins it"),
        (lambda p: p.update(ports=7), "lacks"),
    ],
)
def test_a_plan_that_no_descriptor_says(
    change: Callable[[Plan], object], says: str, machine: Machine, tmp_path: Path
) -> None:
    plan = _change(more(machine, tmp_path), change)
    with pytest.raises(NotADescriptorError, match=says) as refused:
        as_descriptor(plan, machine, None)
    assert "\n" not in str(refused.value)
