# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network file: what it says to nodes, what is refused, and where chains go."""

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoy.base.problem import DescriptorError
from convoy.base.yaml_text import Text
from convoy.chain.load import check_text
from convoy.chain.load import load as load_descriptor
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.host.machine import this_machine
from convoy.network.descriptors import as_yaml, descriptor_of
from convoy.network.load import Loaded, load, loads
from convoy.network.simulate import open_topology
from convoy.network.steering import WHOLE, Steering, names

EXAMPLE = Path(__file__).parents[3] / "examples/network/pa-flow.yaml"
TEXT = EXAMPLE.read_text()
NODES = {"edge", "a", "b", "c", "d"}


@pytest.fixture
def network() -> Loaded:
    return load(EXAMPLE)


def test_each_node_gets_a_descriptor_that_convoyd_could_run(network: Loaded) -> None:
    machine = this_machine()
    for node in network.network.nodes:
        text = as_yaml(network, node, descriptor_of(network, node))
        again = Text.of_data(descriptor_of(network, node), node)
        plan = make_plan(check_text(again, EXAMPLE.parent, machine), machine).data
        assert "&" not in text
        assert plan["openflow"]["controllers"] == ["tcp:192.0.2.254"]
        assert all(next_hop["encapsulate"] for next_hop in plan["next_hops"])
    edge = descriptor_of(network, "edge")
    first, second = (next_hop["for"] for next_hop in edge["next-hops"].values())
    assert (first, second) == ([{"vlan": 100}, {"vlan": 101}], [])
    assert edge["chains"]["web"] == {"match": {"vlan": 100}, "from": "clients", "to": "fabric"}
    assert edge["chains"]["web-2"] == {"match": {"vlan": 100}, "from": "fabric", "to": "servers"}
    assert set(descriptor_of(network, "a")["next-hops"]) == {"rtr-c", "rtr-d"}
    assert set(descriptor_of(network, "d")["next-hops"]) == {"servers-edge"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  a: {functions: [fw]}", "  a: {functions: [fx]}", "11: nodes.a.functions[0]: 'fx'"),
        ("  b: {functions: [fw]}", "  b: {functions: [fw, rtr]}", "node b has its function fw and"),
        ("path: [fw, rtr]", "path: [fw, nat]", "chains.web.path[1]: 'nat': no such function"),
        ("from: edge/clients", "from: edge", "must be NODE/PORT, such as edge/clients"),
        ("to: edge/servers", "to: edge/outside", "edge has no such port"),
        ("{vlan: 101}", "{vlan: 100}", "vlan 100: is that of chain 'web'"),
        ("{vlan: 101}", "{}", "has no SC-ID; give it {vlan: …} or {vni: …}"),
        ('ip: 192.0.2.12, mac', 'ip: 192.0.2.11, mac', "192.0.2.11: is that of node 'a'"),
        ("      d: {ip", "      x: {ip", "'x': no such node"),
        ("  c: {functions: [rtr]}\n  d: {functions: [rtr]}", "  c: {}\n  d: {}", "runs on no node"),
        ("controller: tcp", "controller: udp", "ssl:ADDRESS[:PORT] or unix:PATH"),
        ("    path: [fw, rtr]", "    spread: all\n    path: [fw, rtr]", "values: chains, flows"),
    ],
)  # fmt: skip
def test_wrong_networks_are_refused(old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(DescriptorError) as caught:
        loads(TEXT.replace(old, new, 1), name="net.yaml")
    assert words in str(caught.value)
    assert all(line.startswith("net.yaml:") for line in caught.value.lines)


def test_nodes_without_a_common_link_are_refused() -> None:
    two = '  other:\n    nodes:\n      d: {ip: 10.0.0.1, mac: "02:00:00:00:01:01"}\n'
    two += '      edge: {ip: 10.0.0.2, mac: "02:00:00:00:01:02"}\n\nfunctions:'
    line = next(one for one in TEXT.splitlines() if one.startswith("      d: {ip"))
    text = TEXT.replace(line + "\n", "", 1).replace("functions:\n  fw", two + "\n  fw", 1)
    with pytest.raises(DescriptorError, match="no link joins a with all of: c, d"):
        loads(text)


def chosen(steering: Steering, network: Loaded, stage: int) -> list[str]:
    shares = [steering.chosen(way, stage) for way in network.ways]
    return ["+".join(one.node for one, _ in each) or "nobody" for each in shares]


def many(chains: int) -> Loaded:
    """Return the example with so many chains."""
    head, _, _ = TEXT.partition("chains:\n")
    text = "".join(
        f"  c{i}: {{match: {{vlan: {i}}}, from: edge/clients, path: [fw, rtr], to: edge/servers}}\n"
        for i in range(1, chains + 1)
    )
    return loads(f"{head}chains:\n{text}")


def test_chains_are_spread_over_instances() -> None:
    network = many(10)
    steering = Steering(network)
    assert Counter(chosen(steering, network, 0)) == {"a": 10}  # as the descriptors have it
    steering.spread(NODES, {})
    assert Counter(chosen(steering, network, 0)) == {"a": 5, "b": 5}
    assert Counter(chosen(steering, network, 1)) == {"c": 5, "d": 5}
    assert steering.spread(NODES, {}) == []


def test_only_what_went_to_a_node_that_is_gone_moves() -> None:
    network = many(10)
    steering = Steering(network)
    steering.spread(NODES, {})
    before = chosen(steering, network, 1)
    moves = steering.follow(NODES - {"a"}, {})
    assert len(moves) == 5
    assert Counter(chosen(steering, network, 0)) == {"b": 10}
    assert chosen(steering, network, 1) == before
    assert steering.follow(NODES - {"a"}, {}) == []
    gone = steering.follow(NODES - {"a", "b"}, {})
    assert [move.now for move in gone] == [()] * 10
    assert steering.follow(NODES - {"a", "b"}, {}) == []
    back = steering.follow(NODES - {"b"}, {})
    assert [move.why for move in back] == ["back"] * 10
    assert Counter(chosen(steering, network, 0)) == {"a": 10}


def test_chains_that_nobody_was_there_for_go_back_to_where_they_were() -> None:
    network = many(10)
    steering = Steering(network)
    steering.spread(NODES, {})
    before = chosen(steering, network, 0)
    entries = list(steering.entries("edge"))
    assert len(steering.follow({"edge"}, {})) == 20
    assert list(steering.entries("edge")) == entries  # they stay where they were
    first = steering.follow({"edge", "a"}, {})
    assert [(move.now[0][0].node, move.why) for move in first] == [("a", "back")] * 10
    second = steering.follow({"edge", "a", "b"}, {})
    assert [(move.now[0][0].node, move.why) for move in second] == [("b", "back")] * 5
    assert chosen(steering, network, 0) == before
    assert steering.follow({"edge", "a", "b"}, {}) == []
    # Also if they went one after the other, and chains from one to the other meanwhile.
    steering.follow({"edge", "a"}, {})
    assert Counter(chosen(steering, network, 0)) == {"a": 10}
    steering.follow({"edge"}, {})
    for there in ({"edge", "a"}, {"edge", "a", "b"}):
        steering.follow(there, {})
    assert chosen(steering, network, 0) == before
    # Where somebody was there all the time, they stay with who took them.
    steering.follow({"edge", "a"}, {})
    assert steering.follow({"edge", "a", "b"}, {}) == []
    steering.follow({"edge"}, {})
    steering.follow({"edge", "a", "b"}, {})
    assert Counter(chosen(steering, network, 0)) == {"a": 10}
    # What has moved for another reason since stays there.
    steering.spread({"edge", "a", "b"}, {})
    steering.follow({"edge"}, {})
    steering.follow({"edge", "a"}, {})
    steering.spread({"edge", "a"}, {})
    assert steering.follow({"edge", "a", "b"}, {}) == []


def test_a_busy_node_gives_one_chain_to_one_that_is_less_so() -> None:
    network = many(4)
    steering = Steering(network)
    steering.spread(NODES, {})
    assert steering.relieve(NODES, {"a": 0.7, "b": 0.1}) is None
    assert steering.relieve(NODES, {"a": 0.9, "b": 0.7}) is None
    assert steering.relieve(NODES - {"b"}, {"a": 0.9, "b": 0.1}) is None
    move = steering.relieve(NODES, {"a": 0.9, "b": 0.1})
    assert move is not None and names(move.now) == "fw-b"
    assert Counter(chosen(steering, network, 0)) == {"a": 1, "b": 3}
    # The last one stays: it would only be somebody else's load.
    assert steering.relieve(NODES, {"a": 0.9, "b": 0.1}) is None


BY_FLOW = "path: [fw, rtr]\n    spread: flows"


def test_flows_of_a_chain_are_spread_over_all_instances() -> None:
    network = loads(TEXT.replace("path: [fw, rtr]", BY_FLOW, 1))
    edge = descriptor_of(network, "edge")
    assert [hop["for"] for hop in edge["next-hops"].values()] == [
        [{"vlan": 100}, {"vlan": 101}], [{"vlan": 100}],
    ]  # fmt: skip
    steering = Steering(network)
    assert steering.spread(NODES, {}) == []  # as the descriptors have it
    web = network.ways[0]
    assert (names(steering.chosen(web, 0)), names(steering.chosen(web, 1))) == (
        "fw-a+fw-b", "rtr-c+rtr-d",
    )  # fmt: skip
    entry = next(iter(steering.entries("edge")))
    assert [weight for _, weight in entry.to] == [WHOLE, WHOLE]

    (gone,) = [move for move in steering.follow(NODES - {"a"}, {}) if move.way is web]
    assert (names(gone.before), names(gone.now), gone.why) == ("fw-a+fw-b", "fw-b", "gone")
    (lost,) = [move for move in steering.follow(NODES - {"a", "b"}, {}) if move.way is web]
    assert (lost.now, lost.why) == ((), "gone")
    entry = next(iter(steering.entries("edge")))
    assert (entry.way, len(entry.to)) == (web, 1)  # as it was
    (back,) = [move for move in steering.follow(NODES, {}) if move.way is web]
    assert (names(back.now), back.why) == ("fw-a+fw-b", "back")


def test_a_busy_instance_gives_a_part_of_the_flows_away() -> None:
    steering = Steering(loads(TEXT.replace("path: [fw, rtr]", BY_FLOW, 1)))
    busy = {"a": 0.95, "b": 0.2}
    assert steering.relieve(NODES - {"b"}, busy) is None
    for giving in range(1, WHOLE):
        move = steering.relieve(NODES, busy)
        assert move is not None and (move.way.name, move.why) == ("web", "busy")
        assert names(move.now) == f"{WHOLE - giving}*fw-a+{WHOLE + giving}*fw-b"
    move = steering.relieve(NODES, busy)  # it keeps the last share, and gives the other chain
    assert move is not None and (names(move.before), names(move.now)) == ("fw-a", "fw-b")
    assert steering.relieve(NODES, busy) is None


def test_flows_are_not_spread_where_answers_would_go_elsewhere() -> None:
    text = TEXT.replace("path: [fw, rtr]", BY_FLOW, 1)
    with pytest.raises(DescriptorError, match=r"chains.web.spread: 'flows': fw remembers flows"):
        loads(text.replace("{default: allow,", "{default: allow, stateful: true,", 1))
    nodes = "".join(f"  n{i}: {{functions: [fw]}}\n" for i in range(64))
    ends = "".join(
        f'      n{i}: {{ip: 192.0.3.{i + 1}, mac: "02:00:00:00:02:{i:02x}"}}\n' for i in range(64)
    )
    text = text.replace("\nlinks:", f"{nodes}\nlinks:", 1).replace(
        "      d: {ip", f"{ends}      d: {{ip"
    )
    with pytest.raises(DescriptorError, match="fw has 66 instances; 64 are the most"):
        loads(text)


def test_flows_that_are_spread_are_not_simulated(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(TEXT.replace("path: [fw, rtr]", BY_FLOW, 1))
    with pytest.raises(DescriptorError, match="different ways are not simulated"):
        open_topology(str(file), {})


def test_every_instance_knows_the_way_on() -> None:
    network = many(4)
    steering = Steering(network)
    steering.spread(NODES, {})
    for node in ("a", "b"):
        entries = list(steering.entries(node))
        assert [entry.way.name for entry in entries] == ["c1", "c2", "c3", "c4"]
        assert {entry.table for entry in entries} == {0}
    assert list(steering.entries("a")) == [
        type(entry)("a", entry.table, entry.way, entry.to) for entry in steering.entries("b")
    ]


def test_the_same_file_is_a_topology() -> None:
    topology = open_topology(str(EXAMPLE), {}).topology
    assert topology.chains["web"].path == ["clients-edge", "fw-a", "rtr-c"]
    assert topology.chains["voice"].path == ["clients-edge", "fw-b", "rtr-d"]
    assert topology.functions["fw-b"].like == "firewall"


def test_a_topology_without_costs_or_traffic_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    text = TEXT.replace('l2fwd: {mode: rewrite, dst: "02:00:00:00:00:99"}', "ttl-limit: {}")
    text = text.replace("    traffic: {cbr: {mpps: 0.05, sizes: 218, flows: 100}}\n", "")
    file.write_text(text)
    with pytest.raises(DescriptorError) as caught:
        open_topology(str(file), {})
    assert "chains.voice: has no traffic" in str(caught.value)
    assert "functions.rtr: ttl_limit: profile node-epyc has no costs of it" in str(caught.value)


def test_descriptors_are_written(tmp_path: Path) -> None:
    run = CliRunner()
    done = run.invoke(app, ["network", "descriptors", str(EXAMPLE), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{node}.yaml" for node in sorted(NODES)
    ]
    for path in (tmp_path / "out").iterdir():
        load_descriptor(path, this_machine())
