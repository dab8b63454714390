# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The model as the simulator's profile, and advised ways as topologies that it runs."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml

from advise.test_check import MODEL, TSC_HZ, WEB
from advise.test_fit import ONE_BY_ONE, TRUTH, parts, rows
from convoy.advise import simulate
from convoy.advise.fit import Fit
from convoy.advise.parts import AGGREGATED, PLAIN, Chain
from convoy.advise.predict import plan, plans
from convoy.advise.servers import Way, loaded
from convoy.advise.traffic import Traffic
from convoy.errors import ConvoyError, InputError
from convoy.sim import profile
from convoy.sim.engine import run
from convoy.sim.load import loads, open_topology
from convoy.sim.resolve import resolve

# Its last server needs several cores for each of the first.
HEAVY = parts("l2fwd", "router", "firewall", "router", "firewall", "router", "router")
COSTS = simulate.costs_of(MODEL, 64, simulate.functions_of(MODEL.fit))


def test_the_profile_has_what_the_rows_are_made_of():
    assert COSTS.port.cycles == pytest.approx(TRUTH["ports, plain"][0])
    assert COSTS.port.cycles_per_byte == pytest.approx(TRUTH["ports, plain"][1])
    assert COSTS.aggregating.cycles == pytest.approx(50)
    assert COSTS.frame.cycles == pytest.approx(90 - 60)  # a convoy, less a frame in and out
    assert COSTS.packet.cycles == pytest.approx(20 + 0.1 * 64 - 0.2 * 64)
    assert COSTS.functions["firewall"].cycles == pytest.approx(10 + 5)  # with the path
    assert COSTS.functions["firewall"].aggregated_cycles == pytest.approx(6 + 3)
    assert COSTS.functions["firewall-1000"].cycles == pytest.approx(30 + 5)
    assert COSTS.functions["nat"].aggregated_cycles is None  # not measured in convoys
    made = simulate.profile_document(MODEL, COSTS, "mine", "a test", 64)
    read = profile.parse(json.dumps(made), "mine")
    assert read.costs == COSTS
    assert read.plain_pps == pytest.approx(TSC_HZ / (60 + 0.2 * 64), rel=1e-3)


@pytest.mark.parametrize("lacks", ["ports, each", "convoy"])
def test_rows_that_do_not_suffice_are_refused(lacks):
    some = ONE_BY_ONE if lacks == "convoy" else ONE_BY_ONE[1:]
    few = replace(MODEL, fit=Fit(rows(some)))
    with pytest.raises(ConvoyError, match="measure them: convoy bench run parts"):
        simulate.costs_of(few, 64, {"none": ((), None)})
    with pytest.raises(ConvoyError, match="no parts of convoy"):
        simulate.node_of([])


def topologies(tmp_path, mpps, chain=WEB[:2]):
    traffic = Traffic(mpps * 1e6, "64")
    ways, _ = plans([MODEL], chain, traffic, None)
    ways = [way for way in ways if not way.nodes[0].chain.link]
    chains = {"none": ((), None)}
    for way in ways:
        chains |= {simulate.function_name(n.chain.parts): (n.chain.parts, None) for n in way.nodes}
    costs = simulate.costs_of(MODEL, 64, chains)
    made = simulate.profile_document(MODEL, costs, "advice", "a test", 64)
    (tmp_path / "profile.json").write_text(json.dumps(made))
    for way in ways:
        yield way, simulate.topology(way, traffic, "web")


def test_ways_carry_the_load_on_a_fat_tree_of_1024_hosts(tmp_path):
    for way, document in topologies(tmp_path, 100):
        document["simulate"]["duration-s"] = 0.0003
        network = resolve(loads(yaml.safe_dump(document), tmp_path))
        result = run(network.data)
        hosts = [node for node in result["nodes"] if node["name"].startswith("host.")]
        assert len(hosts) == 1024
        functions = [node for node in result["nodes"] if node["kind"] == "function"]
        assert len(functions) == sum(simulate.instances_of(way)) >= way.cores
        assert sum(node["dropped_packets"] for node in functions) == 0
        # What sources send at random is what the advice loads a core with, on average.
        plain = way.nodes[0].chain.form == "plain"
        if len(way.nodes) == 1 and plain:
            busy = sum(node["busy_share"] for node in functions) / len(functions)
            load = way.load_pps / (way.nodes[0].rate_pps * way.cores)
            assert busy == pytest.approx(load, rel=0.05)


def cut(*servers, form=AGGREGATED, wait_us=0.0):
    return Way(tuple(Chain(some, form) for some in servers), wait_us)


@pytest.mark.parametrize(
    "way",
    [
        cut(WEB[:1], WEB[1:2], form=PLAIN),
        cut(WEB[:1], WEB[1:2]),
        cut(WEB[:1], WEB[1:2], wait_us=5.0),
        cut(HEAVY[:1], HEAVY[1:]),  # each core feeds two
        cut(WEB[:1], WEB[1:2], WEB[:1]),
    ],
    ids=["plain", "fills", "waits", "feeds two", "three servers"],
)
def test_what_advice_says_is_carried_is_and_no_more(tmp_path, way):
    """Each core is as busy as said, and nothing is lost, up to the limit."""
    chains = {simulate.function_name(one.parts): (one.parts, None) for one in way.chains}
    costs = simulate.costs_of(MODEL, 64, {"none": ((), None)} | chains)
    made = simulate.profile_document(MODEL, costs, "advice", "a test", 64)
    (tmp_path / "profile.json").write_text(json.dumps(made))
    planned = plan(MODEL, way, 64, 40e6)
    counts = simulate.instances_of(planned)
    planned = replace(planned, nodes=loaded(MODEL, way, 64, 40e6, counts))
    for load in (0.3, 0.6, 0.9, 1.1):
        given = replace(planned, load_pps=load * planned.limit_pps)
        document = simulate.topology(given, Traffic(given.load_pps, "64"), "web")
        del document["fabric"]  # 1,024 hosts, of which few have work
        document["simulate"]["duration-s"] = 0.0015
        result = run(resolve(loads(yaml.safe_dump(document), tmp_path)).data)
        nodes = [node for node in result["nodes"] if node["kind"] == "function"]
        assert (sum(node["dropped_packets"] for node in nodes) > 0) == (load > 1)
        for server in loaded(MODEL, way, 64, given.load_pps, counts) if load < 1 else ():
            mine, nodes = nodes[: server.cores], nodes[server.cores :]
            busy = sum(node["busy_share"] for node in mine) / len(mine)
            assert busy == pytest.approx(server.busy, rel=0.03), load


def test_chains_share_a_fat_tree(tmp_path):
    traffic = Traffic(40e6, "64")
    ways = {
        "web": plan(MODEL, cut(WEB[:1], WEB[1:2]), 64, 40e6),
        "voice": plan(MODEL, cut(WEB[:2], form=PLAIN), 64, 40e6),
    }
    chains = {"none": ((), None)}
    for way in ways.values():
        chains |= {simulate.function_name(n.chain.parts): (n.chain.parts, None) for n in way.nodes}
    costs = simulate.costs_of(MODEL, 64, chains)
    made = simulate.profile_document(MODEL, costs, "advice", "a test", 64)
    (tmp_path / "profile.json").write_text(json.dumps(made))
    for order in (list(ways), list(ways)[::-1]):
        document = simulate.together({name: ways[name] for name in order}, traffic)
        assert list(document["chains"]) == order
        document["simulate"]["duration-s"] = 0.0003
        result = run(resolve(loads(yaml.safe_dump(document), tmp_path)).data)
        served = {}
        for node in result["nodes"]:
            if node["kind"] == "function":
                assert node["dropped_packets"] == 0
                chain = order[int(node["name"][1]) - 1]
                busy, cores = served.get(chain, (0.0, 0))
                served[chain] = busy + node["busy_share"], cores + 1
        # Each is as busy as alone.
        for name, way in ways.items():
            alone = simulate.topology(way, traffic, name)
            alone["simulate"]["duration-s"] = 0.0003
            nodes = run(resolve(loads(yaml.safe_dump(alone), tmp_path)).data)["nodes"]
            busy = [node["busy_share"] for node in nodes if node["kind"] == "function"]
            assert served[name] == (pytest.approx(sum(busy), rel=0.05), len(busy))


def test_chains_that_do_not_fit_together_are_refused():
    many = plan(MODEL, cut(WEB[:2], form=PLAIN), 64, 15e9)
    with pytest.raises(InputError, match="all chains together: "):
        simulate.together({"a": many, "b": many}, Traffic(15e9, "64"))


def test_ways_with_long_names_and_waits_are_read(tmp_path):
    planned = plan(MODEL, cut(HEAVY[:1], HEAVY[1:], wait_us=5.0), 64, 40e6)
    document = simulate.topology(planned, Traffic(40e6, "64"), "web")
    first, last = loads(yaml.safe_dump(document), tmp_path).topology.functions.values()
    assert first.aggregation.queue.wait_us == 5
    assert last.aggregation is None  # the topology's, which waits for nothing


def test_the_simulators_sources_send_no_convoys():
    traffic = Traffic(2e6, "64", 8)
    ways, _ = plans([MODEL], WEB[:2], traffic, None)
    with pytest.raises(InputError, match="--traffic without 'in convoys of 8'"):
        simulate.topology(ways[0], traffic, "web")


def test_instances_are_fed_evenly_by_the_fewest_hosts(tmp_path):
    for way, _ in topologies(tmp_path, 700):
        counts = simulate.instances_of(way)
        for before, behind in pairwise(counts):
            assert before % behind == 0 or behind % before == 0
        assert all(n >= node.cores for n, node in zip(counts, way.nodes, strict=True))
        assert sum(counts) <= 2 * way.cores


def test_more_than_the_tree_has_is_refused():
    traffic = Traffic(90e9, "64")
    ways, _ = plans([MODEL], WEB[:2], traffic, None)
    with pytest.raises(InputError, match="the fat tree has 1024 hosts"):
        simulate.topology(ways[0], traffic, "web")


@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_the_papers_topologies_with_our_node(name):
    loaded = open_topology(name, {"simulate.duration-s": 0.002})
    result = run(resolve(loaded).data)
    functions = [node for node in result["nodes"] if node["kind"] == "function"]
    assert sum(node["dropped_packets"] for node in functions) == 0
    first = next(node for node in result["nodes"] if node["name"] in ("firewall.0", "a.0"))
    assert 0 < first["busy_share"] < 0.2
