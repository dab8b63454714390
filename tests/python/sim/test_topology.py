# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Topologies: what is right resolves, what is wrong is refused with place and fix."""

import json

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.errors import InputError
from convoy.sim.engine import run
from convoy.sim.load import loads, names, open_topology
from convoy.sim.resolve import resolve

GOOD = """\
simulate: {duration-s: 0.001}
sources:
  users: {cbr: {mpps: 1}, count: 2}
functions:
  fw: {instances: 2, max-mpps: 5}
  dpi: {instances: 2, max-mpps: 4}
chains:
  all: {from: users, path: [fw, dpi], to: sink}
"""


def test_shipped_topologies_resolve():
    assert names() == ["node-1", "node-2", "paper-1", "paper-2"]
    for name in names():
        assert resolve(open_topology(name)).data["links"]


def test_good_one_runs():
    result = run(resolve(loads(GOOD)).data)
    assert result["complete"]
    assert result["original_packets"] == pytest.approx(2000, abs=2)
    assert [link["name"] for link in result["links"]] == [
        "fw.0-dpi.0",
        "fw.0-dpi.1",
        "fw.1-dpi.0",
        "fw.1-dpi.1",
        "dpi.0-sink",
        "dpi.1-sink",
    ]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("from: users", "from: user"), [":8:", "chains.all.from", "did you mean 'users'"]),
        (("[fw, dpi]", "[fw, dip]"), [":8:", "path[1]", "did you mean 'dpi'"]),
        (("to: sink", "to: fw"), ["a function cannot end a chain"]),
        (("{mpps: 1}", "{mpps: 0}"), [":3:", "mpps", "greater than 0"]),
        (("cbr", "cbrr"), [":3:", "did you mean 'cbr'"]),
        (("instances: 2, max-mpps: 5", "instances: 0"), [":5:", "instances"]),
        (("max-mpps: 5", "max-mpps: 0"), ["max-mpps", "above zero"]),
        (("cbr: {mpps: 1}", "cbr: {mpps: 1}, split: both"), ["split", "round-robin"]),
        (("mpps: 1}", "mpps: 1, sizes: 63}"), ["sizes", "64"]),
        (("max-mpps: 5", "max-mpps: 5, weights: [1, 2]"), ["weights and next-hop disagree"]),
        (
            ("max-mpps: 5", "max-mpps: 5, next-hop: weighted, weights: [1]"),
            ["1 weights for 2 next instances"],
        ),
        (("max-mpps: 5", "max-mpps: 5, hosts: [0, 1]"), ["needs a fabric"]),
        (("path: [fw, dpi]", "path: [dpi]"), [":5:", "functions.fw", "is on no chain"]),
        (
            ("max-mpps: 5", "max-mpps: 5, aggregation: {table: {profile: nonsense}}"),
            ["profile 'nonsense'", "paper-table2"],
        ),
        (
            ("max-mpps: 5", "max-mpps: 5, aggregation: {table: {}, queue: {}}"),
            ["exclude each other"],
        ),
    ],
)
def test_wrong_ones_name_place_and_fix(change, wanted):
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(InputError) as caught:
        resolve(loads(text))
    for words in wanted:
        assert words in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("change", "engine", "wanted"),
    [
        (("[fw, dpi]", "[fw, dpi, fw]"), "feed-forward", ["cycle", "fw.", "--engine event-heap"]),
        (
            ("max-mpps: 4", "max-mpps: 4, aggregation: {queue: {}, frames: {mtu: 64}}"),
            "auto",
            ["node 'dpi.", "MTU 64 is below one packet of 1000 bytes"],
        ),
        (("max-mpps: 4", "max-mpps: 1e9"), "auto", None),
    ],
)
def test_convoy_sim_names_the_node(change, engine, wanted):
    network = resolve(loads(GOOD.replace("mpps: 1}", "mpps: 1, sizes: 1000}").replace(*change)))
    if wanted is None:
        assert run(network.data, engine)["complete"]
        return
    with pytest.raises(InputError) as caught:
        run(network.data, engine)
    for words in wanted:
        assert words in str(caught.value)


def test_auto_takes_the_event_heap_for_a_cycle():
    network = resolve(loads(GOOD.replace("[fw, dpi]", "[fw, dpi, fw]"))).data
    assert run(network)["engine"] == "event-heap"
    assert run(network, "ns3")["links"] == run(network)["links"]


def test_examples_run_and_balance(tmp_path):
    from convoy.host.programs import CHECKOUT

    files = sorted((CHECKOUT / "examples" / "sim").glob("*.yaml"))
    assert len(files) >= 3
    for file in files:
        overrides = {"simulate.duration-s": 0.005}
        result = run(resolve(open_topology(str(file), overrides)).data)
        for node in result["nodes"]:
            if node["kind"] == "function":
                total = node["dropped_packets"] + node["sent_packets"] + node["held_packets"]
                assert node["received_packets"] == total
        sinks = [node for node in result["nodes"] if node["kind"] == "sink"]
        assert sum(node["delivered_packets"] for node in sinks) > 1000


def test_fat_tree_keeps_chains_together_when_packed():
    from convoy.host.programs import CHECKOUT

    file = str(CHECKOUT / "examples" / "sim" / "fat-tree.yaml")
    hops = {}
    for place in ("spread", "pack"):
        overrides = {"simulate.duration-s": 0.005, "fabric.fat-tree.place": place}
        data = resolve(open_topology(file, overrides)).data
        kinds = [node["kind"] for node in data["nodes"]]
        assert kinds.count("fabric") == 16 + 8 + 8 + 4
        result = run(data)
        core = [x for x in result["links"] if "core" in x["from"] or "core" in x["to"]]
        hops[place] = sum(link["frames"] for link in core)
    assert hops["pack"] < hops["spread"]


def test_command_prints_one_json_document(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(GOOD)
    page = tmp_path / "page.html"
    called = CliRunner().invoke(app, ["sim", "run", str(file), "--json", "--report", str(page)])
    assert called.exit_code == 0, called.output
    result = json.loads(called.stdout)
    assert result["schema"] == "convoy.sim.result/1"
    assert any("largest rates" in note for note in result["notes"]) is False
    text = page.read_text("utf-8")
    assert "fw.0-dpi.1" in text and "Load of each function" in text


def test_command_shows_links_and_profile(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(GOOD.replace(", max-mpps: 5", ", aggregation: {table: {}}"))
    called = CliRunner().invoke(app, ["sim", "run", str(file)])
    assert called.exit_code == 0, called.output
    assert "dpi.1-sink" in called.stdout
    assert "aggregation profile paper-simulation" in called.stdout


@pytest.mark.parametrize("engine", ["feed-forward", "event-heap"])
def test_one_source_feeds_several_instances(engine):
    text = GOOD.replace("count: 2", "count: 1").replace("instances: 2, max", "instances: 3, max")
    result = run(resolve(loads(text)).data, engine)
    received = [n["received_packets"] for n in result["nodes"] if n["name"].startswith("fw.")]
    assert sum(received) == pytest.approx(1000, abs=1)
    assert max(received) - min(received) <= 1


def test_a_captures_flows_stay_together(tmp_path):
    """Both formats give the same, and each flow passes one instance."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap, wrpcapng

    packets = [
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="192.0.2.1", dst="198.51.100.1")
        / UDP(sport=1000 + i % 20, dport=53)
        / bytes(18 + i)
        for i in range(200)
    ]
    for i, packet in enumerate(packets):
        packet.time = 1790000000 + i * 1e-5
    wrpcap(str(tmp_path / "a.pcap"), packets)
    wrpcapng(str(tmp_path / "a.pcapng"), packets)
    results = []
    for name in ("a.pcap", "a.pcapng"):
        text = GOOD.replace("cbr: {mpps: 1}, count: 2", f"pcap: {{file: {name}}}")
        text = text.replace("0.001", "1")
        result = run(resolve(loads(text, tmp_path)).data)
        assert result["original_packets"] == 200
        received = [n["received_packets"] for n in result["nodes"] if n["name"][:3] == "fw."]
        assert all(received)
        assert all(count % 10 == 0 for count in received)  # 10 packets of each flow
        results.append([(link["sizes"], link["digest"]) for link in result["links"]])
    assert results[0] == results[1]
