# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Stateful functions in the node: both directions of a flow, limits, counters, what is refused."""

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from convoy.chain.load import loads
from convoy.chain.plan import Plan, make_plan
from convoy.cli.run import run
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node_check import check_plan
from convoy.host.programs import need

from .conftest import read_capture, write_capture

TEXT = """
ports:
  inside: {pcap: {read: inside.pcap, write: to-inside.pcap}}
  outside: {pcap: {read: outside.pcap, write: to-outside.pcap}}
functions:
  fw: {firewall: {stateful: true, rules: [{allow: {src: 10.0.0.0/8}}]}}
  ttl: {ttl-limit: {min: 2}}
chains:
  web: {from: inside, to: outside, path: PATH, both-ways: true, deployment: DEPLOYMENT}
workers: {cores: [0]}
"""


def out(payload: Packet, host: int = 1) -> bytes:
    return bytes(Ether() / IP(src=f"10.0.0.{host}", dst="198.51.100.7") / payload)


def back(payload: Packet, host: int = 1) -> bytes:
    return bytes(Ether() / IP(src="198.51.100.7", dst=f"10.0.0.{host}") / payload)


def through(
    folder: Path,
    inside: list[bytes],
    outside: list[bytes],
    path: str = "[fw]",
    deployment: str = "inline",
    more: str = "",
    functions: str = "",
) -> tuple[list[bytes], list[bytes], dict[str, Any]]:
    """Return what left to the outside and to the inside, and the counts.

    One worker takes the whole of what comes from inside, 64 packets at most, first.
    """
    write_capture(folder / "inside.pcap", inside)
    write_capture(folder / "outside.pcap", outside)
    machine = this_machine()
    text = TEXT.replace("PATH", path).replace("DEPLOYMENT", deployment) + more
    text = text.replace("\nchains:", f"\n  {functions}\nchains:")
    counts = run(folder, make_plan(loads(text, machine, folder), machine)).counts
    assert counts["accounting"]["conserved"]
    assert counts["ports"]["inside"]["rx_packets"] == len(inside)
    return (
        read_capture(folder / "to-outside.pcap"),
        read_capture(folder / "to-inside.pcap"),
        counts,
    )


@pytest.mark.parametrize("path", ["[fw]", "[fw, ttl]", "[ttl, fw]"])
def test_answers_come_back_by_the_reversed_chain(tmp_path: Path, path: str):
    arp = bytes(Ether() / ARP())
    quoted = IP(src="10.0.0.1", dst="198.51.100.7") / UDP(sport=9, dport=53) / b"hi"
    error = Ether() / IP(src="203.0.113.9", dst="10.0.0.1") / ICMP(type=3, code=1) / quoted
    sent = [
        out(UDP(sport=9, dport=53) / b"hi"),
        out(TCP(sport=8, dport=80, flags="S")),
        out(TCP(sport=7, dport=80, flags="A")),
        out(ICMP(type=8, id=5) / b"ping"),
        arp,
    ]
    answers = [
        back(UDP(sport=53, dport=9) / b"yes"),
        back(TCP(sport=80, dport=8, flags="SA")),
        back(ICMP(type=0, id=5) / b"ping"),
        bytes(error),
    ]
    others = [
        back(UDP(sport=53, dport=10)),
        back(TCP(sport=80, dport=8000, flags="S")),
        back(TCP(sport=80, dport=7, flags="A")),
        back(ICMP(type=0, id=6) / b"ping"),
        back(UDP(sport=53, dport=9) / b"yes", host=2),
    ]
    went, came, counts = through(tmp_path, sent, [*answers, *others], path)
    assert went == [sent[0], sent[1], sent[3], arp]
    assert came == answers
    assert counts["functions"]["fw"]["packets"] == len(sent) + len(answers) + len(others)
    drops = counts["functions"]["fw"]["drops"]
    assert drops["default_denied"] == 4
    assert drops["invalid"] == 2
    flows = counts["flows"]["fw"]
    assert (flows["flows_ipv4"], flows["created"], flows["denied"]) == (7, 3, 4)
    assert counts["functions"]["fw"]["busy_cycles"] > 0


def test_a_pipeline_has_one_worker_for_both_ways(tmp_path: Path):
    sent = [out(UDP(sport=9, dport=53) / b"hi")]
    went, _, counts = through(tmp_path, sent, [], path="[fw, ttl]", deployment="pipeline")
    assert went == sent
    assert counts["flows"]["fw"]["workers"] == 1


def test_limits_hold_and_are_counted(tmp_path: Path):
    sent = [out(UDP(sport=1000 + i, dport=53), host=1 + i // 8) for i in range(60)]
    went, _, counts = through(
        tmp_path, sent, [], more="flows: {max: 64, max-ipv6: 64, per-host: 3}\n"
    )
    assert went == [data for i, data in enumerate(sent) if i % 8 < 3]
    flows = counts["flows"]["fw"]
    assert flows["drops"]["flow_host_limit"] == len(sent) - len(went)
    assert flows["max"] == 64
    assert counts["accounting"]["dropped"] == len(sent) - len(went)


@pytest.mark.parametrize("path", ["[fw]", "[fw, nat]"])
def test_a_syn_flood_leaves_connections_alone(tmp_path: Path, path: str):
    """20,000 half-open connections against room for 256 flows: 32 clients go on."""
    clients, flood = range(1, 33), 20_000
    burst = [out(TCP(sport=9, dport=80, flags="A"), host=n) for n in clients]
    went = [out(TCP(sport=9, dport=80, flags="S"), host=n) for n in clients]
    template = bytearray(out(TCP(sport=9, dport=80, flags="S")))
    inside = went * 2  # a whole burst: the worker then looks at the other side
    for n in range(flood):
        template[26:30] = (0x0A640000 + n).to_bytes(4, "big")
        inside.append(bytes(template))
        if n % 640 == 639:
            inside += burst
    answers = [back(TCP(sport=80, dport=9, flags="SA"), host=n) for n in clients] * 2
    outside = answers * (len(inside) // 64) if path == "[fw]" else []
    nat = "nat: {nat: {outside: [outside], inside: [10.0.0.0/8], pool: [203.0.113.0/24]}}"
    left, came, counts = through(
        tmp_path,
        inside,
        outside,
        path,
        more="flows: {max: 256, max-ipv6: 64}\n",
        functions=nat if "nat" in path else "",
    )
    assert came == outside
    room = 256 - len(clients)
    assert len(left) == len(went) * 2 + room + flood // 640 * len(burst)
    (flows,) = counts["flows"].values()
    assert flows["drops"]["flow_table_full"] == flood - room
    assert (flows["flows_ipv4"], flows["created"]) == (256, 256)
    assert counts["accounting"]["dropped"] == flood - room


def plan_of(folder: Path, more: str = "") -> Plan:
    for name in ("inside", "outside"):
        write_capture(folder / f"{name}.pcap", [])
    machine = this_machine()
    text = TEXT.replace("PATH", "[fw]").replace("DEPLOYMENT", "inline")
    return make_plan(loads(text + more, machine, folder), machine)


def test_check_says_what_flows_take(tmp_path: Path):
    plan = plan_of(tmp_path, "flows: {max: 10000000}\n")
    (flows,) = check_plan(need("convoyd"), plan.data)
    assert (flows.functions, flows.max, flows.max_ipv6) == ("fw", 10_000_000, 16384)
    assert 64 * flows.max < flows.bytes < 128 * flows.max


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ({"max": 63}, "flows: max: 63: must be a whole number from 64 to 1073741824"),
        ({"timeouts": {"udp": 0}}, "timeouts: udp: 0: must be a whole number from 1 to 2592000"),
        ({"timeouts": {"tcp": 1}}, "timeouts: tcp: unknown"),
        ({"per_host": -1}, "per_host: -1: must be a whole number from 0"),
    ],
)
def test_bad_limits_are_refused(tmp_path: Path, flows: dict[str, Any], message: str):
    plan = plan_of(tmp_path).data | {"flows": flows}
    with pytest.raises(InputError) as caught:
        check_plan(need("convoyd"), plan)
    assert message in str(caught.value)


def shared_plan(folder: Path, sent: list[bytes], stateful: str = "true") -> dict[str, Any]:
    """Return a plan of two workers, each of which polls a port; they share the flows."""
    machine = this_machine()
    if len(machine.nodes) < 2:
        pytest.skip("needs two cores")
    write_capture(folder / "inside.pcap", sent)
    write_capture(folder / "outside.pcap", [])
    text = TEXT.replace("PATH", "[fw]").replace("DEPLOYMENT", "inline")
    text = text.replace("stateful: true", f"stateful: {stateful}")
    plan = make_plan(loads(text, machine, folder), machine).data
    polled = [{**stage, "worker": i} for i, stage in enumerate(plan["stages"])]
    handed = [
        {**stage, "worker": worker, "source": {"handoff": True}}
        for stage in polled
        for worker in (0, 1)
    ]
    cores = sorted(machine.nodes)[:2]
    return plan | {"stages": [*polled, *handed], "workers": [{"core": core} for core in cores]}


def without(plan: dict[str, Any], index: int) -> dict[str, Any]:
    """Return a plan without one of its stages from handoff."""
    handed = [stage for stage in plan["stages"] if "handoff" in stage["source"]]
    return plan | {"stages": [stage for stage in plan["stages"] if stage is not handed[index]]}


def test_two_workers_share_flows(tmp_path: Path):
    flows = 300
    sent = [
        out(UDP(sport=1000 + i, dport=53) / bytes([turn]), host=1 + i % 50)
        for turn in range(3)
        for i in range(flows)
    ]
    counts = run(tmp_path, Plan(shared_plan(tmp_path, sent))).counts
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0
    assert counts["flows"]["fw"]["workers"] == 2
    assert counts["flows"]["fw"]["created"] == flows
    went = read_capture(tmp_path / "to-outside.pcap")
    assert sorted(went) == sorted(sent)
    turns: dict[bytes, list[int]] = {}
    for data in went:  # in the order of its flow
        turns.setdefault(data[26:38], []).append(data[42])
    assert set(map(tuple, turns.values())) == {(0, 1, 2)}


@pytest.mark.parametrize("missing", range(4))
def test_a_worker_left_out_is_refused(tmp_path: Path, missing: int):
    plan = without(shared_plan(tmp_path, []), missing)
    with pytest.raises(InputError, match="remembers flows and runs on several workers") as caught:
        check_plan(need("convoyd"), plan)
    assert "\n" not in str(caught.value)


def test_flows_on_two_workers_without_handoff_are_refused(tmp_path: Path):
    plan = shared_plan(tmp_path, [])
    plan["stages"] = [stage for stage in plan["stages"] if "handoff" not in stage["source"]]
    with pytest.raises(InputError, match='give chain "web" a stage on worker') as caught:
        check_plan(need("convoyd"), plan)
    assert "\n" not in str(caught.value)


def test_handoff_of_nothing_is_refused(tmp_path: Path):
    plan = shared_plan(tmp_path, [], stateful="false")
    with pytest.raises(InputError, match="no function of it remembers flows"):
        check_plan(need("convoyd"), plan)
