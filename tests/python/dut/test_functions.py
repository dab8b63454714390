# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The functions that devices are compared with, and their words in OpenFlow."""

from ipaddress import IPv4Address, IPv4Network, IPv6Network

import pytest

from convoy.chain.flow_rules import Out, Tables, _masks, path_rules
from convoy.chain.meaning import MEANINGS, Firewall, Policer, Router, types_of
from convoy.dut import functions
from convoy.dut.addresses import DESTINATIONS, FEW, LEFT_MAC, SOURCES
from convoy.dut.base import Function, PortAt, Setup
from convoy.dut.devices import DEVICES, device
from convoy.dut.functions import read
from convoy.dut.kernel import script
from convoy.dut.openflow import flows
from convoy.errors import InputError
from convoy.run import workload


@pytest.mark.parametrize("routes", [1, 2, 10, 15, 1000, 1024, 1025, 5000])
def test_a_router_has_as_many_routes_and_they_are_all_destinations(routes):
    meaning = read(functions.router(routes))
    assert isinstance(meaning, Router)
    prefixes = sorted(route.prefix for route in meaning.routes)
    assert len(prefixes) == routes
    known = FEW if routes <= 1024 else DESTINATIONS
    after = known[0]
    for prefix in prefixes:
        assert prefix[0] == after
        after = prefix[-1] + 1
    assert after == known[-1] + 1


@pytest.mark.parametrize("rules", [1, 10, 15, 1000])
def test_a_firewall_allows_by_its_last_rule_alone(rules):
    meaning = read(functions.firewall(rules))
    assert isinstance(meaning, Firewall)
    assert len(meaning.rules) == rules
    assert [rule.allow for rule in meaning.rules] == [False] * (rules - 1) + [True]
    assert not meaning.default_allow
    # None of the others has a source that benchmark traffic comes from.
    assert all(not rule.src.overlaps(SOURCES) for rule in meaning.rules[:-1])
    assert meaning.rules[-1].dst == DESTINATIONS


# description, function, words of the message
REFUSED = [
    ("no such function", Function("dslite"), "dslite: no such function"),
    ("bad configuration", Function("l2fwd", {"mode": "fly"}), "fly"),
    ("IPv6", Function("firewall", {"rules": [{"deny": {"src": "::1"}}]}), "IPv4"),
    (
        "ports of any protocol",
        Function("firewall", {"rules": [{"deny": {"dport": 80}}]}),
        "protocol",
    ),
    ("connected", Function("router", {"routes": ["10.0.0.0/8 dev right"]}), "via ADDRESS"),
    (
        "to the left",
        Function(
            "router",
            {"routes": ["10.0.0.0/8 via 1.2.3.4 dev left"],
             "neighbours": {"1.2.3.4": LEFT_MAC}},
        ),
        "dev right",
    ),
    ("unknown hop", Function("router", {"routes": ["10.0.0.0/8 via 1.2.3.4 dev right"]}), "MAC"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_not_every_device_can_do_is_refused(function, words):
    with pytest.raises(InputError, match=words):
        read(function)


@pytest.mark.parametrize(
    "ports", [(0, 0), (0, 1), (1, 1), (1, 6), (80, 80), (1024, 65535), (1, 65534), (7, 4000)]
)
def test_masks_are_exactly_the_range(ports):
    def has(mask: str, port: int) -> bool:
        value, _, bits = mask.partition("/")
        return port & int(bits or "0xffff", 16) == int(value, 0)

    masks = _masks(ports)
    for port in range(65536):
        assert sum(has(mask, port) for mask in masks) == (ports[0] <= port <= ports[1])


def test_flows_of_a_chain():
    chain = (functions.firewall(1), functions.router(1), functions.layer2())
    assert flows(chain) == [
        "table=0,priority=60000,udp,nw_src=198.18.0.0/16,nw_dst=198.19.0.0/16,tp_dst=4096,"
        "actions=goto_table:1",
        "table=0,priority=2,ip,actions=drop",
        "table=0,priority=2,ipv6,actions=drop",
        "table=0,priority=1,actions=goto_table:1",
        "table=1,priority=32,ip,nw_dst=198.19.0.0/22,actions=dec_ttl,"
        "set_field:02:00:00:00:0c:02->eth_src,set_field:02:00:00:00:01:01->eth_dst,goto_table:2",
        "table=1,priority=1,actions=drop",
        "table=2,priority=1,actions=set_field:02:00:00:00:0c:02->eth_src,"
        "set_field:02:00:00:00:02:01->eth_dst,goto_table:3",
        "table=3,priority=1,in_port=1,actions=output:2",
    ]


def test_every_device_says_what_it_cannot_do(tmp_path):
    at = PortAt("carrier pigeon", "")
    for each in DEVICES:
        assert each is device(each.name)
        setup = Setup((), at, at, (0,), tmp_path)
        assert each.cannot(setup) == f"{each.name} has no carrier pigeon ports"
        port = PortAt(sorted(each.ability.port_kinds)[0], "x")
        setup = Setup((), port, port, (0,), tmp_path, options={"colour": "red"})
        assert f"{each.name} has no option colour=red" in each.cannot(setup)
    with pytest.raises(InputError, match="no such device; there are convoy, testpmd"):
        device("abacus")


def test_networks_of_benchmarks_are_those_of_rfc_2544():
    both = IPv4Network("198.18.0.0/15")
    assert SOURCES.subnet_of(both)
    assert DESTINATIONS.subnet_of(both)
    assert IPv4Address("198.19.0.0") == FEW[0]


def test_every_function_that_devices_share_has_a_meaning():
    for name in MEANINGS:
        assert read(workload.function({"nat64": "to-ipv6", "vpn": "seal"}.get(name, name), 3))
    for one in DEVICES:
        shared = {"firewall", "router", "l2fwd", "bridge"}
        assert one.name == "testpmd" or one.ability.functions >= shared


def test_the_functions_of_benchmarks_mean_what_they_are_configured_to():
    assert read(functions.balancer(3)).macs == tuple(f"02:00:00:01:00:0{i}" for i in range(3))
    assert read(functions.policer(8_000_000)) == Policer(8_000_000, 50_000)
    four, six = read(functions.nat64()).rows[1]
    assert (four, six) == (SOURCES, IPv6Network("2001:db8:64::c612:0/112"))
    there, back = read(functions.seal()), read(functions.unseal())
    assert (there.opens, back.opens, there.match) == (False, True, DESTINATIONS)
    assert there.associations.startswith("out 0x1002 policy bench local 192.0.2.1 peer 192.0.2.2")


# description, function, words of the message
OWN = [
    ("nat mode", Function("balancer", functions.balancer(2).config | {"mode": "nat"}), "mode dsr"),
    ("a colour that passes", Function("policer", {"cir-bps": 1000}), "yellow: drop"),
    ("a router behind", Function("nat64", functions.nat64().config | {"ttl": "check"}), "and ttl"),
]


@pytest.mark.parametrize(("function", "words"), [r[1:] for r in OWN], ids=[r[0] for r in OWN])
def test_what_is_our_node_s_alone_is_said(function, words):
    with pytest.raises(InputError, match=f"{function.type}: .*{words}"):
        read(function)


def test_open_vswitch_has_a_group_and_a_meter_before_the_rules_that_name_them():
    group, *rules = flows([functions.balancer(2)])
    assert group.startswith("group_id=1,type=select,bucket=actions=set_field:02:00:00:01:00:00->")
    assert rules[0] == "table=0,priority=2,ip,nw_dst=198.19.0.1,actions=group:1"
    meter, first, *_ = flows([functions.policer(8_000_000)])
    assert meter == "meter=1,kbps,burst,band=type=drop,rate=8000,burst_size=400"
    assert first == "table=0,priority=2,ip,actions=meter:1,goto_table:1"
    for function in (functions.balancer(2), functions.policer()):
        with pytest.raises(InputError, match="than our node"):
            path_rules([read(function)], Tables(0), 1, {"right": Out(2, LEFT_MAC)}, "right")


def test_the_kernel_is_not_given_an_association_that_it_cannot_have():
    with pytest.raises(InputError, match="vpn: the kernel is given associations of esn, key"):
        script(functions.seal(aggregate=True))
    with pytest.raises(InputError, match="vpn: the kernel has it before a function that writes"):
        script(functions.seal(), for_us=False)


def test_a_type_that_only_our_node_knows_is_refused_by_name(tmp_path):
    function = workload.function("ttl-limit", 3)
    for one in DEVICES:
        port = PortAt(sorted(one.ability.port_kinds)[0], "x")
        why = one.cannot(Setup((function,), port, port, (0,), tmp_path))
        if one.name in ("convoy", "dummy"):
            assert not why
        elif one.name.endswith("+vnf"):  # our own node is the VNF
            assert not why or "only root gives turns" in why or "not installed" in why
        elif one.name == "vm":
            assert "ttl-limit: only our own node knows this function" in why
        else:
            assert why == f"{one.name} has no ttl-limit"


def test_a_device_has_the_types_that_its_language_has_words_for():
    assert types_of((Router,)) == {"router"}
    assert types_of(()) == set()
    with pytest.raises(InputError, match="no such function"):
        read(Function("ttl_limit"))
