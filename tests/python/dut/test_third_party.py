# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""FastClick, VPP and BESS: how they are found, and what they are told. That they then do it is
test_conformance.py's, where they are installed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from convoy.dut import functions, third_party
from convoy.dut.base import Flows, Function, PortAt, Setup
from convoy.dut.bess import lines
from convoy.dut.bess_script import Script
from convoy.dut.click import configuration
from convoy.dut.devices import device
from convoy.dut.vpp import script, startup
from convoy.dut.vpp_commands import commands, tracking
from convoy.dut.vpp_counters import Node, errors, idle_clocks, interfaces, nodes, spent
from convoy.errors import ConvoyError
from convoy.host import command

PEERS = ("fastclick", "vpp", "bess")
VARIABLES = {"fastclick": "CONVOY_CLICK", "vpp": "CONVOY_VPP", "bess": "CONVOY_BESS"}


def setup(tmp_path: Path, *path: Function) -> Setup:
    left, right = (PortAt("vhost-user", str(tmp_path / name)) for name in ("left", "right"))
    return Setup(path, left, right, (0,), tmp_path)


@pytest.mark.parametrize("name", PEERS)
def test_where_it_is_not_that_is_said_with_the_way_to_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLES[name], str(tmp_path))  # leads nowhere: PATH is not asked then
    presence = device(name).presence()
    assert not presence.here
    assert presence.missing.startswith("not installed: ")
    assert "https://" in presence.missing
    assert VARIABLES[name] in presence.missing
    with pytest.raises(ConvoyError, match="not installed"):
        device(name).start(setup(tmp_path))


@pytest.mark.parametrize("name", ["fastclick", "vpp"])
def test_a_program_that_does_not_run_is_not_installed(name, tmp_path, monkeypatch):
    for program in ("click", "vpp", "vppctl"):
        (tmp_path / program).write_text("#!/bin/sh\necho it has a cold; exit 3\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv(VARIABLES[name], str(tmp_path))
    assert "does not run: " in device(name).presence().missing
    assert "it has a cold" in device(name).presence().missing


def test_a_click_without_dpdk_is_another_one(tmp_path, monkeypatch):
    program = tmp_path / "click"
    program.write_text("#!/bin/sh\necho 'click (Click) 2.1'\n")
    program.chmod(0o755)
    monkeypatch.setenv("CONVOY_CLICK", str(program))
    assert device("fastclick").presence().missing.endswith("click is one without DPDK")


def test_a_program_is_found_by_its_path_its_folder_or_on_path(tmp_path):
    program = tmp_path / "abacus"
    assert third_party.find("abacus", "ABACUS", {"ABACUS": str(tmp_path), "PATH": ""}) is None
    program.write_text("")
    assert third_party.find("abacus", "ABACUS", {"ABACUS": str(program), "PATH": ""}) is None
    program.chmod(0o755)
    for environment in ({"ABACUS": str(program)}, {"ABACUS": str(tmp_path)}):
        assert third_party.find("abacus", "ABACUS", {**environment, "PATH": ""}) == program
    assert third_party.find("abacus", "ABACUS", {"PATH": str(tmp_path)}) == program


def test_who_does_not_answer_in_time_is_not_waited_for():
    with pytest.raises(ConvoyError, match=r"sleep: no answer within 0\.1 s"):
        command.run(["sleep", "60"], 0.1)


CHAIN = (functions.firewall(2), functions.router(1), functions.layer2())


def test_click_is_told_the_chain_from_its_end():
    assert configuration(CHAIN) == [
        "f2 :: EtherRewrite(02:00:00:00:0c:02, 02:00:00:00:02:01) -> out;",
        "f1 :: Classifier(12/0800);",
        "f1_routes :: RadixIPLookup(198.19.0.0/22 0);",
        "f1 -> CheckIPHeader(OFFSET 14, CHECKSUM true) -> DecIPTTL -> f1_routes;",
        "f1_routes[0] -> EtherRewrite(02:00:00:00:0c:02, 02:00:00:00:01:01) -> f2;",
        "f0 :: Classifier(12/0800, 12/86DD, -);",
        "f0[0] -> CheckIPHeader(OFFSET 14) -> IPFilter(deny src net 10.0.0.0/24 && ip proto 17 &&"
        " dst port 1, allow src net 198.18.0.0/16 && dst net 198.19.0.0/16 && ip proto 17 &&"
        " dst port 4096, deny all) -> f1;",
        "f0[1] -> Discard;",
        "f0[2] -> f1;",
        "in -> f0;",
    ]


def module(kind, name, config):
    return f"bess.create_module({kind!r}, {name!r}, {config!r})"


def connect(name, on, gate=0):
    return f"bess.connect_modules({name!r}, {on!r}, {gate})"


def add(name, gate, *values):
    config = {"gate": gate, "fields": [{"value_bin": value} for value in values]}
    return f"bess.run_module_command({name!r}, 'add', 'ExactMatchCommandAddArg', {config!r})"


def others(name):
    kind = "ExactMatchCommandSetDefaultGateArg"
    return f"bess.run_module_command({name!r}, 'set_default_gate', {kind!r}, {{'gate': 0}})"


ROUTE = "{'prefix': '198.19.0.0', 'prefix_len': 22, 'gate': 0}"
ETHERTYPE, PROTOCOL = {"offset": 12, "num_bytes": 2}, {"offset": 23, "num_bytes": 1}
DROP = {"drop": True}


def macs(dst, src):
    return {
        "fields": [
            {"offset": 0, "size": 6, "value": dst},
            {"offset": 6, "size": 6, "value": src},
        ]
    }


def test_bess_is_told_the_chain_from_its_end():
    deny = {"src_ip": "10.0.0.0/24", "dst_port": 1, "drop": True}
    allow = {
        "src_ip": "198.18.0.0/16", "dst_ip": "198.19.0.0/16", "dst_port": 4096, "drop": False
    }  # fmt: skip
    assert Script(CHAIN).lines == [
        module("Update", "f2", macs(0x020000000201, 0x020000000C02)),
        connect("f2", "sink"),
        module("IPLookup", "f1_routes", {"max_rules": 2, "max_tbl8s": 1}),
        f"bess.run_module_command('f1_routes', 'add', 'IPLookupCommandAddArg', {ROUTE})",
        module("Update", "f1_hop0", macs(0x020000000101, 0x020000000C02)),
        connect("f1_hop0", "f2"),
        connect("f1_routes", "f1_hop0"),
        module("UpdateTTL", "f1_ttl", {}),
        connect("f1_ttl", "f1_routes"),
        module("IPChecksum", "f1_checksum", {"verify": True}),
        connect("f1_checksum", "f1_ttl"),
        module("ExactMatch", "f1", {"fields": [ETHERTYPE]}),
        add("f1", 0, b"\x08\x00"),
        connect("f1", "f1_checksum"),
        module("ACL", "f0_others", {"rules": [DROP]}),
        connect("f0_others", "f1"),
        module("ExactMatch", "f0_rest", {"fields": [ETHERTYPE]}),
        add("f0_rest", 1, b"\x08\x00"),
        connect("f0_rest", "f0_others", 1),
        add("f0_rest", 2, b"\x86\xdd"),  # a gate that leads nowhere
        others("f0_rest"),
        connect("f0_rest", "f1"),
        module("ExactMatch", "f0", {"fields": [ETHERTYPE, PROTOCOL]}),
        module("ACL", "f0_17", {"rules": [deny, allow, DROP]}),
        connect("f0_17", "f1"),
        add("f0", 1, b"\x08\x00", b"\x11"),
        connect("f0", "f0_17", 1),
        others("f0"),
        connect("f0", "f0_rest"),
        connect("source", "f0"),
    ]
    assert Script(CHAIN[:1], alone=True).lines == [
        module("ACL", "f0", {"rules": [deny, allow, DROP]}),
        connect("f0", "sink"),
        connect("source", "f0"),
    ]


LEFT, RIGHT = "VirtualEthernet0/0/0", "VirtualEthernet0/0/1"
ALLOWING = (
    "set acl-plugin acl deny src 10.0.0.0/24 dst 0.0.0.0/0 proto 17 sport 0-65535 dport 1-1,"
    " permit src 198.18.0.0/16 dst 198.19.0.0/16 proto 17 sport 0-65535 dport 4096-4096,"
    " deny src 0.0.0.0/0 dst 0.0.0.0/0, deny src ::/0 dst ::/0"
)


def test_vpp_is_told_features_of_its_interfaces():
    assert commands(CHAIN[:2], LEFT, RIGHT) == [
        f"set interface ip address {LEFT} 192.0.0.8/32",
        f"set interface unnumbered {RIGHT} use {LEFT}",
        f"set interface promiscuous on {LEFT}",
        f"set ip neighbor {RIGHT} 192.0.2.1 02:00:00:00:01:01 static",
        f"ip route add 198.19.0.0/22 via 192.0.2.1 {RIGHT}",
        ALLOWING,
        f"set acl-plugin interface {LEFT} input acl 0",
        f"set interface state {LEFT} up",
        f"set interface state {RIGHT} up",
    ]
    # Behind the router it is the output's.
    assert f"set acl-plugin interface {RIGHT} output acl 0" in commands(
        (CHAIN[1], CHAIN[0]), LEFT, RIGHT
    )


def test_vpp_bridges_what_is_rewritten_behind_a_router():
    assert commands(CHAIN, "memif1/0", "memif2/0") == [
        "bvi create mac 02:00:00:00:0c:02 instance 0",
        "create bridge-domain 1 learn 0",
        "set interface l2 bridge bvi0 1 bvi",
        "set interface l2 bridge memif2/0 1",
        "l2fib add 02:00:00:00:02:01 1 memif2/0 static",
        "set interface state bvi0 up",
        "set interface ip address memif1/0 192.0.0.8/32",
        "set interface unnumbered bvi0 use memif1/0",
        "set interface promiscuous on memif1/0",
        "set ip neighbor bvi0 192.0.2.1 02:00:00:00:01:01 static",
        "ip route add 198.19.0.0/22 via 192.0.2.1 bvi0",
        "classify table mask l2 dst buckets 2",
        "l2 rewrite entry mask ffffffffffffffffffffffff value 020000000201020000000c02",
        "set interface l2 rewrite bvi0 table 0 miss-index 0",
        ALLOWING,
        "set acl-plugin interface memif1/0 input acl 0",
        "set interface state memif1/0 up",
        "set interface state memif2/0 up",
    ]


def test_vpp_translates_by_nat44_behind_an_acl(tmp_path):
    left, right = "memif1/0", "memif2/0"
    path = (functions.stateful(), functions.nat())
    lines = tracking(path, Flows(65_536, 3), left, right)
    assert lines[4:12] == [
        f"set ip neighbor {left} 192.0.2.1 02:00:00:00:00:01 static",
        f"set ip neighbor {right} 192.0.2.2 02:00:00:00:00:01 static",
        f"ip route add 100.64.0.0/10 via 192.0.2.1 {left}",
        f"ip route add 0.0.0.0/0 via 192.0.2.2 {right}",
        "nat44 plugin enable sessions 65536",
        "nat44 add address 203.0.113.0 - 203.0.113.255",
        f"set interface nat44 in {left} out {right}",
        "set nat timeout udp 3 tcp-established 3 tcp-transitory 3",
    ]
    assert not any("timeout" in line for line in tracking(path, Flows(9), left, right))
    for number, heap_mb in ((65_536, 296), (10_000_000, 6359)):
        text = startup(replace(setup(tmp_path, *path), flows=Flows(number)))
        assert f"main-heap-size {heap_mb}M" in text
        assert "plugin nat_plugin.so { enable }" in text


def behind(tmp_path: Path, kind: str = "vhost-user") -> Setup:
    """Return a switch with one VNF behind it."""
    at = {"vhost-user": str(tmp_path / "vnf"), "af_packet": "cv1v"}[kind]
    vnf = tuple(PortAt(kind, f"{at}{i}", nic=kind == "af_packet") for i in range(2))
    return replace(setup(tmp_path), behind=vnf)


def test_vpp_as_a_switch_joins_the_interfaces_pairwise(tmp_path):
    pairs = [("0", "1"), ("1", "0"), ("2", "3"), ("3", "2")]
    at = "VirtualEthernet0/0/"
    assert script(behind(tmp_path)) == [
        f"create vhost-user socket {tmp_path}/left server hwaddr 02:00:00:00:0c:01",
        f"create vhost-user socket {tmp_path}/vnf0 server",
        f"create vhost-user socket {tmp_path}/vnf1 server",
        f"create vhost-user socket {tmp_path}/right server hwaddr 02:00:00:00:0c:02",
        *(f"set interface l2 xconnect {at}{one} {at}{other}" for one, other in pairs),
        *(f"set interface state {at}{number} up" for number in range(4)),
    ]
    lines = script(behind(tmp_path, "af_packet"))
    assert "create host-interface name cv1v0" in lines
    assert f"set interface l2 xconnect {at}0 host-cv1v0" in lines
    assert f"set interface l2 xconnect host-cv1v1 {at}1" in lines  # the second of its kind


def test_bess_as_a_switch_joins_the_ports_pairwise(tmp_path):
    text = "\n".join(lines(behind(tmp_path, "af_packet"), alone=False))
    for name in ("left", "vnf0", "vnf1", "right"):
        assert f"create_port('PMDPort', {name!r}" in text
    assert "net_af_packet2,iface=cv1v1" in text
    gates = [(kind, module) for module, kind in re.findall(r"'(\w+)', {'port': '(\w+)'", text)]
    assert gates == [
        ("left", "source0"), ("vnf0", "sink0"), ("vnf1", "source1"), ("right", "sink1")
    ]  # fmt: skip
    assert connect("source0", "sink0") in text
    assert connect("source1", "sink1") in text


def ports(value: str) -> Function:
    return Function("firewall", {"rules": [{"deny": {"proto": "udp", "dport": value}}]})


FIREWALL, ROUTER, L2FWD = CHAIN
SWAP = Function("l2fwd", {"mode": "swap"})
# device, chain, words of the reason; None: it can
ABLE = [
    ("fastclick", (FIREWALL, ROUTER, L2FWD, SWAP, ROUTER, FIREWALL), None),
    ("fastclick", (ports("1-65534"),), None),
    ("bess", (FIREWALL, ROUTER, L2FWD, SWAP, ROUTER, FIREWALL), None),
    ("bess", (ports("1-64"),), None),
    ("bess", (ports("1-65"),), "single ports"),
    ("bess", (ports("0-9"),), "port 0"),
    ("vpp", (FIREWALL, ROUTER, functions.bridge(), FIREWALL), None),
    ("vpp", (ports("1-65534"), L2FWD), None),
    ("vpp", (FIREWALL, ROUTER, L2FWD, FIREWALL), None),
    ("vpp", (L2FWD, ROUTER), "in this order"),
    ("vpp", (ROUTER, ROUTER), "in this order"),
    ("vpp", (FIREWALL, FIREWALL, FIREWALL), "in this order"),
    ("vpp", (FIREWALL, FIREWALL, ROUTER), "in this order"),
    ("vpp", (SWAP,), "cannot swap"),
]


@pytest.mark.parametrize(("name", "path", "words"), ABLE)
def test_what_it_can_do_is_known_before_it_is_started(name, path, words, tmp_path):
    why = device(name).cannot(setup(tmp_path, *path))
    assert why == "" if words is None else words in why


RUNTIME = """\
Time .5, 10.000000 sec internal node vector rate 1.27 loops/sec 11920240.08
  vector rates in 2.3155e2, out 1.8945e2, drop 3.6359e1, punt 9.5684e0
             Name                 State         Calls          Vectors        Suspends      Packet-Clocks   Vectors/Call
VirtualEthernet0/0/1-tx          active               3125          100000               0          6.10e0           32.00
acl-plugin-fa-worker-cleaner-pinterrupt wa               1               0               0          5.38e3            0.00
ethernet-input                   active               3125          100000               0          8.35e1           32.00
ip4-full-reassembly-expire-wal "any wait"                0               0              10          7.91e3            0.00
unix-cli-local:0               any wait                0               0               3          5.20e4            0.00
vhost-user-input                 polling           1003125          100000               0          6.00e2            .01
"""  # noqa: E501
IDLE = "vhost-user-input                 polling           1032175               0               0          5.42e1            0.00"  # noqa: E501


def test_what_a_node_cost_is_read_from_show_runtime():
    assert nodes(RUNTIME) == {
        "VirtualEthernet0/0/1-tx": Node(3125, 100000, 6.1),
        "acl-plugin-fa-worker-cleaner-p": Node(1, 0, 5380.0),
        "ethernet-input": Node(3125, 100000, 83.5),
        "ip4-full-reassembly-expire-wal": Node(0, 0, 7910.0),
        "unix-cli-local:0": Node(0, 0, 52000.0),
        "vhost-user-input": Node(1003125, 100000, 600.0),
    }


def test_polls_that_find_nothing_are_no_cost_of_packets():
    assert idle_clocks(nodes(RUNTIME)) is None
    assert idle_clocks(nodes(IDLE)) == 54.2
    assert spent(nodes(RUNTIME), 0) == (68_960_000, 100_000)
    assert spent(nodes(RUNTIME), 50) == (18_960_000, 100_000)
    assert spent(nodes(RUNTIME), 61) == (8_960_000, 100_000), "no more than its polls cost"
    assert spent(nodes(IDLE), 50) == (0, 0)


INTERFACES = """\
              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count
VirtualEthernet0/0/0              1      up          9000/0/0/0     rx packets                   121
                                                                    rx bytes                   11051
                                                                    drops                         19
VirtualEthernet0/0/1              2      up          9000/0/0/0     tx packets                    99
                                                                    tx-error                       1
local0                            0     down          0/0/0/0
"""
ERRORS = """\
   Count                  Node                              Reason               Severity
         4             null-node                      blackholed packets           error
       111        acl-plugin-in-ip4-fa                 checked packets             error
         2             arp-reply             IP4 source address not local to sub   error
"""


def test_what_vpp_dropped_is_read_from_its_interfaces_and_errors():
    assert interfaces(INTERFACES) == {
        LEFT: {"rx packets": 121, "rx bytes": 11051, "drops": {"drops": 19}},
        RIGHT: {"tx packets": 99, "drops": {"tx-error": 1}},
    }
    assert errors(ERRORS) == {
        "null-node": {"blackholed packets": 4},
        "acl-plugin-in-ip4-fa": {"checked packets": 111},
        "arp-reply": {"IP4 source address not local to sub": 2},
    }
