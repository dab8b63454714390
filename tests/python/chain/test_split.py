# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Descriptors whose functions are placed in several parts: how they are cut, and what cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.machine import Machine
from convoy.chain.plan import make_plan
from convoy.chain.split import is_split, split
from convoy.cli.main import app
from convoy.errors import InputError

MACHINE = Machine(nodes={n: 0 for n in range(8)}, runtime_dir=Path("/run/x"))
FOLDER = Path("/run/x/split-1")
PORTS = {"left": {"memif": "l.sock"}, "right": {"memif": "r.sock"}}
FIREWALL = {"firewall": {"rules": [{"deny": {"proto": "tcp", "dport": 23}}]}}
STATEFUL = {"firewall": {"stateful": True}}
ROUTER = {
    "router": {
        "routes": ["10.0.0.0/8 via 192.0.2.1 dev left", "default via 192.0.2.2 dev right"],
        "neighbours": {"192.0.2.1": "02:00:00:00:00:01", "192.0.2.2": "02:00:00:00:00:02"},
    }
}
NAT = {"nat": {"outside": ["right"], "inside": ["10.0.0.0/8"], "pool": ["192.0.2.9"]}}
L2 = {"l2fwd": {"mode": "rewrite", "dst": "02:00:00:00:00:03"}}


def document(functions: dict[str, Any], **more: Any) -> dict[str, Any]:
    chain = {"from": "left", "to": "right", "path": list(functions), **more.pop("chain", {})}
    return {"ports": PORTS, "functions": functions, "chains": {"all": chain}, **more}


def loaded(of: dict[str, Any]) -> Any:
    return loads(yaml.safe_dump(of, sort_keys=False), MACHINE, Path("/"), "chain.yaml")


def cut(of: dict[str, Any]) -> Any:
    return split(loaded(of), MACHINE, FOLDER)


def at(place: str, function: dict[str, Any]) -> dict[str, Any]:
    return {**function, "place": place}


def test_what_is_inline_is_no_split_and_costs_nothing():
    plain, explicit = document({"fw": FIREWALL}), document({"fw": at("inline", FIREWALL)})
    assert not is_split(loaded(explicit).descriptor)
    assert make_plan(loaded(plain), MACHINE).data == make_plan(loaded(explicit), MACHINE).data


def test_neighbours_in_one_place_are_one_segment():
    parts = cut(document({"a": at("switch", FIREWALL), "b": at("switch", L2), "c": L2})).parts
    assert [(part.name, part.functions) for part in parts] == [
        ("node", ("c",)),
        ("switch", ("a", "b")),
    ]


def test_each_process_is_a_part_but_those_that_share_flows_are_one():
    processes = {name: at("process", function) for name, function in
                 {"a": FIREWALL, "b": STATEFUL, "c": STATEFUL, "d": L2}.items()}  # fmt: skip
    parts = cut(document(processes)).parts
    assert [(part.name, part.functions) for part in parts] == [
        ("node", ()), ("a", ("a",)), ("b", ("b", "c")), ("d", ("d",)),
    ]  # fmt: skip
    assert [part.plan.data["workers"][0]["core"] for part in parts] == [1, 2, 3, 4]


def test_guests_have_devices_of_virtio_and_the_node_between_them():
    functions = {"a": at("vm", FIREWALL), "b": at("vm", L2), "c": at("process", L2)}
    one = cut(document({**functions, "d": at("switch", FIREWALL), "e": at("vm", L2)}))
    places = {part.name: part.place for part in one.parts}
    assert places == {"node": "inline", "a": "vm", "b": "vm", "c": "process", "switch": "switch",
                      "e": "vm"}  # fmt: skip
    assert [(pair.maker, pair.other, pair.kind) for pair in one.pairs] == [
        ("node", "a", "vhost-user"), ("node", "a", "vhost-user"), ("node", "b", "vhost-user"),
        ("c", "b", "vhost-user"), ("c", "switch", "vhost-user"), ("e", "switch", "vhost-user"),
        ("node", "e", "vhost-user"),
    ]  # fmt: skip
    guest = one.parts[1]
    assert guest.plan.data["workers"] == [{"core": 0, "idle": "poll"}]
    assert guest.cores == (2,)
    devices = [port["devargs"] for port in guest.plan.data["ports"]]
    assert devices == ["0000:00:04.0", "0000:00:05.0"]
    assert [device.pair.name for device in guest.devices] == ["link1", "link2"]
    assert guest.plan.data["eal"]["hugepages"]
    assert {port["kind"] for port in one.parts[0].plan.data["ports"]} == {"memif", "vhost-user"}


def test_parts_of_one_pool_meet_at_the_node_which_owns_it():
    functions = {"a": at("shared", FIREWALL), "b": at("shared", L2), "c": at("process", FIREWALL)}
    one = cut(document(functions))
    assert [(pair.maker, pair.other, pair.kind) for pair in one.pairs] == [
        ("node", "a", "shared"), ("a", "b", "shared"), ("b", "c", "memif"), ("c", "node", "memif"),
    ]  # fmt: skip
    ports = [
        (part.name, port["role"], port["link"], port["path"])
        for part in one.parts
        for port in part.plan.data["ports"]
        if port["kind"] == "shared"
    ]
    path = str(FOLDER / "pool.sock")
    assert ports == [
        ("node", "server", "link1", path), ("a", "client", "link1", path),
        ("a", "client", "link2", path), ("b", "client", "link2", path),
    ]  # fmt: skip
    # Without a link of the node's there is nobody who would own the buffers.
    apart = {"c": at("process", FIREWALL), "a": at("shared", FIREWALL), "b": at("shared", L2),
             "d": at("switch", FIREWALL)}  # fmt: skip
    assert [pair.kind for pair in cut(document(apart)).pairs] == [
        "memif", "memif", "memif", "vhost-user", "vhost-user",
    ]  # fmt: skip


def test_two_directions_share_links_but_what_turns_round_has_its_own():
    both = {"both-ways": True}
    one = cut(document({"fw": at("process", FIREWALL), "x": L2}, chain=both))
    assert [pair.stands_for for pair in one.pairs] == [
        {"node": "right", "fw": "left"},
        {"fw": "right", "node": "left"},
    ]
    routed = cut(document({"rtr": at("process", ROUTER)}, chain=both))
    # Both directions, and back to where a packet came from, on either side.
    assert sorted(tuple(pair.stands_for.values()) for pair in routed.pairs) == [
        ("left", "left"), ("right", "left"), ("right", "left"), ("right", "right"),
    ]  # fmt: skip
    names = [function["name"] for function in routed.parts[1].plan.data["functions"]]
    assert names == ["rtr", "rtr-2"]  # ports mean other links on the way back
    assert set(routed.parts[1].names.values()) == {"rtr"}


def test_a_chain_that_is_not_cut_stays_as_it_is():
    of = document({"rtr": ROUTER, "a": at("process", L2)}, flows={"max": 1000})
    of["chains"]["whole"] = {"match": {"vlan": 7}, "from": "left", "to": "right", "path": ["rtr"]}
    one = cut(of)
    node = one.parts[0].plan.data
    devs = {
        function["name"]: {route["dev"] for route in function["config"]["routes"]}
        for function in node["functions"]
    }
    assert devs == {"rtr": {"left", "right"}, "rtr-2": {"link1", "link3"}}
    paths = {stage["chain"]: stage["path"] for stage in node["stages"] if stage["path"]}
    assert paths == {"whole": ["rtr"], "all": ["rtr-2"]}
    assert [title for title, _ in one.pictures] == ["all: everything", "whole: vlan 7"]


def test_a_function_in_no_chain_is_only_checked():
    of = document({"a": L2})
    of["functions"]["b"] = at("process", L2)
    assert [part.name for part in cut(of).parts] == ["node"]


def test_a_part_knows_the_addresses_of_the_nodes_ports():
    parts = cut(document({"rtr": at("process", ROUTER), "x": L2})).parts
    macs = {port["name"]: port.get("mac") for port in parts[1].plan.data["ports"]}
    assert set(macs.values()) == {"02:c0:17:00:00:00", "02:c0:17:00:00:01"}


def test_rules_of_the_switch_are_exact():
    part = cut(document({"fw": at("switch", FIREWALL), "x": L2})).parts[1]
    assert list(part.rules) == [
        "table=0,priority=1,in_port=1,actions=goto_table:1",
        "table=1,priority=60000,tcp,tp_dst=23,ip_frag=not_later,actions=drop",
        "table=1,priority=60000,tcp,ip_frag=later,actions=drop",
        "table=1,priority=60000,tcp6,tp_dst=23,ip_frag=not_later,actions=drop",
        "table=1,priority=60000,tcp6,ip_frag=later,actions=drop",
        "table=1,priority=2,ip,actions=drop",
        "table=1,priority=2,ipv6,actions=drop",
        "table=1,priority=1,actions=goto_table:2",
        "table=2,priority=1,in_port=1,actions=output:2",
    ]
    assert part.tables == {1: "fw"}


def with_ports(**ports: Any) -> dict[str, Any]:
    return {"ports": {**PORTS, **ports}}


def of_many_chains(number: int) -> dict[str, Any]:
    """Return a descriptor of so many chains through one virtual machine."""
    chain = {"from": "left", "to": "right", "path": ["a"]}
    many = {f"c{vlan}": {**chain, "match": {"vlan": vlan}} for vlan in range(1, number + 1)}
    return {**document({"a": at("vm", L2)}), "chains": many}


# description, descriptor, what the message has
REFUSED = [
    ("vm", of_many_chains(14), ["functions.a.place: 'vm'", "28 network devices", "has 26"]),
    (
        "no flow rules",
        document({"a": at("switch", {"ttl-limit": {}})}),
        ["functions.a.place: 'switch'", "ttl-limit has no form", "firewall, router, l2fwd"],
    ),
    (
        "rules that OpenFlow lacks",
        document({"a": at("switch", {"firewall": {"rules": [{"deny": {"dport": 80}}]}})}),
        ["functions.a.place", "needs a protocol", "process or inline"],
    ),
    (
        "IPv6 in the switch",
        document({"a": at("switch", {"firewall": {"rules": [{"deny": {"src": "::1"}}]}})}),
        ["::1", "IPv4", "process or inline"],
    ),
    (
        "state in the switch",
        document({"a": at("switch", STATEFUL)}),
        ["stateful firewall has no form as flow rules"],
    ),
    (
        "state that is cut",
        document({"a": at("process", STATEFUL), "b": STATEFUL}),
        ["chains.all.path[1]: 'b'", "shares its flows with a", "place both alike"],
    ),
    ("of ports", document({"n": at("process", NAT)}), ["nat works on ports of the node"]),
    (
        "in the middle",
        document({"n": NAT, "a": at("process", L2)}),
        ["chains.all.path[0]: 'n'", "works on ports of the node", "(a)"],
    ),
    (
        "with addresses",
        document({"r": at("process", {"router": {"addresses": {"left": ["10.0.0.1/8"]}}})}),
        ["a router with addresses lives on ports of the node"],
    ),
    (
        "outputs",
        {
            **document({"c": at("process", {"classifier": {"outputs": {"o": "b"}}})}),
            "chains": {
                "all": {"from": "left", "to": "right", "path": ["c"]},
                "b": {"to": "left"},
            },
        },
        ["functions.c.place", "it has outputs"],
    ),
    (
        "led to by outputs",
        {
            **document({"c": {"classifier": {"outputs": {"o": "b"}}}, "x": at("process", L2)}),
            "chains": {
                "all": {"from": "left", "to": "right", "path": ["c"]},
                "b": {"to": "left", "path": ["x"]},
            },
        },
        ["chains.b.path", "outputs lead here"],
    ),
    (
        "a chain that is dealt out",
        document({"a": at("process", L2)}, chain={"spread": "round-robin"}),
        ["chains.all.spread: 'round-robin'", "is not dealt out"],
    ),
    (
        "a pipeline",
        document({"a": at("process", L2)}, chain={"deployment": "pipeline"}),
        ["chains.all.deployment: 'pipeline'", "is no pipeline"],
    ),
    (
        "tunnels in the switch",
        document({"a": at("switch", L2)}, chain={"match": {"vni": 7}}),
        ["chains.all.match.vni: 7", "rules see the outer one"],
    ),
    (
        "an unknown address",
        document({"r": at("process", ROUTER), "x": L2}, **with_ports(right={"af_packet": "eth9"})),
        ["ports.right", "r, which is not behind all others, writes its MAC address", "give it"],
    ),
    (
        "captures",
        document({"a": at("process", L2)}, **with_ports(left={"pcap": {"read": "/dev/null"}})),
        ["ports.left.pcap", "faster than parts"],
    ),
    (
        "another user",
        document({"a": at("process", L2)}, **{"run-as": "nobody"}),
        ["run-as: 'nobody'", "could not reach each other's sockets"],
    ),
    ("a name", document({"node": at("process", L2)}), ["called as another one"]),
]  # fmt: skip


@pytest.mark.parametrize(("of", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_is_refused_with_line_value_and_fix(of, words):
    with pytest.raises(DescriptorError) as refused:
        cut(of)
    line = next(line for line in refused.value.lines if words[0] in line)
    assert line.startswith("chain.yaml:")
    assert ";" in line  # before the fix
    for word in words:
        assert word in line


def test_a_nat_at_its_port_stays_in_the_node():
    parts = cut(document({"a": at("process", L2), "n": NAT}, chain={"both-ways": True})).parts
    assert parts[0].functions == ("n",)


def test_only_run_and_check_know_other_places(tmp_path: Path):
    of = loaded(document({"a": at("process", L2)}))
    with pytest.raises(DescriptorError, match=r"chain.yaml:\d+: functions.a.place: 'process'"):
        make_plan(of, MACHINE)


def test_check_draws_the_parts(tmp_path: Path):
    file = tmp_path / "chain.yaml"
    file.write_text(yaml.safe_dump(document({"a": at("process", FIREWALL), "b": L2})))
    ran = CliRunner().invoke(app, ["check", str(file)])
    assert ran.exit_code == 0, ran.output
    assert "left (memif) ──▶ [node: wire] ──▶ [process: a (firewall)] ──▶ " in ran.stdout
    ran = CliRunner().invoke(app, ["check", "--json", str(file)])
    parts = json.loads(ran.stdout)["parts"]
    assert [(part["name"], part["joined_to"]) for part in parts] == [
        ("node", {"a": "memif"}),
        ("a", {"node": "memif"}),
    ]
    for option in ("--read", "--state"):
        ran = CliRunner().invoke(app, ["run", str(file), option, str(tmp_path)])
        assert isinstance(ran.exception, InputError)
        assert "not of a chain in parts" in str(ran.exception)
