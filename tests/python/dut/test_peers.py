# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""FastClick, VPP and BESS: how they are found, and what they are told. That they then do it is
test_conformance.py's, where they are installed."""

from pathlib import Path

import pytest

from convoy.dut import functions, peer
from convoy.dut.base import Function, PortAt, Setup
from convoy.dut.bess_script import Script
from convoy.dut.click import configuration
from convoy.dut.devices import device
from convoy.dut.vpp import nodes
from convoy.dut.vpp_commands import LEFT, RIGHT, commands
from convoy.errors import ConvoyError

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
    assert peer.find("abacus", "ABACUS", {"ABACUS": str(tmp_path), "PATH": ""}) is None
    program.write_text("")
    assert peer.find("abacus", "ABACUS", {"ABACUS": str(program), "PATH": ""}) is None
    program.chmod(0o755)
    for environment in ({"ABACUS": str(program)}, {"ABACUS": str(tmp_path)}):
        assert peer.find("abacus", "ABACUS", {**environment, "PATH": ""}) == program
    assert peer.find("abacus", "ABACUS", {"PATH": str(tmp_path)}) == program


def test_who_does_not_answer_in_time_is_not_waited_for():
    with pytest.raises(ConvoyError, match=r"sleep: no answer within 0\.1 s"):
        peer.ask(["sleep", "60"], 0.1)


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


def test_vpp_is_told_features_of_its_interfaces():
    assert commands(CHAIN[:2]) == [
        f"set interface ip address {LEFT} 192.0.0.8/32",
        f"set interface unnumbered {RIGHT} use {LEFT}",
        f"set interface promiscuous on {LEFT}",
        f"set ip neighbor {RIGHT} 192.0.2.1 02:00:00:00:01:01 static",
        f"ip route add 198.19.0.0/22 via 192.0.2.1 {RIGHT}",
        "set acl-plugin acl deny src 10.0.0.0/24 dst 0.0.0.0/0 proto 17 sport 0-65535 dport 1-1,"
        " permit src 198.18.0.0/16 dst 198.19.0.0/16 proto 17 sport 0-65535 dport 4096-4096,"
        " deny src 0.0.0.0/0 dst 0.0.0.0/0, deny src ::/0 dst ::/0",
        f"set acl-plugin interface {LEFT} input acl 0",
        f"set interface state {LEFT} up",
        f"set interface state {RIGHT} up",
    ]
    # Behind the router it is the output's.
    assert f"set acl-plugin interface {RIGHT} output acl 0" in commands((CHAIN[1], CHAIN[0]))


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
    ("vpp", (ROUTER, L2FWD), "one of router and l2fwd"),
    ("vpp", (FIREWALL, FIREWALL, FIREWALL), "two firewalls at most"),
    ("vpp", (FIREWALL, FIREWALL, ROUTER), "no firewalls before it but one"),
    ("vpp", (SWAP,), "cannot swap"),
]


@pytest.mark.parametrize(("name", "path", "words"), ABLE)
def test_what_it_can_do_is_known_before_it_is_started(name, path, words, tmp_path):
    why = device(name).cannot(setup(tmp_path, *path))
    assert why == "" if words is None else words in why


RUNTIME = """\
Time 2.1, 10 sec internal node vector rate 32.00 loops/sec 123.00
  vector rates in 4.2e4, out 4.2e4, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends         Packet-Clocks    Vectors/Call
VirtualEthernet0/0/1-output      active               3125          100000               0        6.10e0           32.00
acl-plugin-in-ip4-fa             active               3125          100000               0        8.35e1           32.00
unix-cli-local:0                 any wait                0               0               3        5.20e4            0.00
vhost-user-input                 polling           9000000          100000               0        1.07e3             .01
"""  # noqa: E501


def test_what_a_node_cost_is_read_from_show_runtime():
    assert nodes(RUNTIME) == {
        "VirtualEthernet0/0/1-output": {"calls": 3125, "vectors": 100000, "clocks": 6.1},
        "acl-plugin-in-ip4-fa": {"calls": 3125, "vectors": 100000, "clocks": 83.5},
        "unix-cli-local:0": {"calls": 0, "vectors": 0, "clocks": 52000.0},
        "vhost-user-input": {"calls": 9000000, "vectors": 100000, "clocks": 1070.0},
    }
