# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Bad input: one clear message with file, line, field, value and fix, for every mistake."""

from pathlib import Path

import pytest

from convoy.base.problem import DescriptorError
from convoy.chain.functions import FUNCTIONS
from convoy.chain.load import loads
from convoy.chain.machine import Machine

TYPES = ", ".join(sorted(FUNCTIONS))
# description, text to replace in the good descriptor, its replacement, the whole message
ROWS = [
    (
        "a missing port",
        "to: right",
        "to: rihgt",
        "web.yaml:9: chains.web.to: 'rihgt': no port is called so; "
        "did you mean 'right'? ports: left, right",
    ),
    (
        "an unknown function",
        "path: [fw, rtr]",
        "path: [fw, router]",
        "web.yaml:9: chains.web.path[1]: 'router': no function is called so; "
        "did you mean 'rtr'? functions: br, fw, rtr",
    ),
    (
        "packets that are remembered, dealt out to workers",
        "path: [fw, rtr]}",
        "path: [fw, br], spread: round-robin}",
        "web.yaml:9: chains.web.spread: 'round-robin': function 'br' remembers packets on the "
        "worker that they come to, and those of one flow would come to several; remove it, or "
        "take br out of the path",
    ),
    (
        "a pipeline, dealt out to workers",
        "path: [fw, rtr]}",
        "path: [fw, rtr], deployment: pipeline, spread: round-robin}",
        "web.yaml:9: chains.web.spread: 'round-robin': a pipeline has a worker for each function; "
        "remove it, or deployment: pipeline",
    ),
    (
        "a way to spread that is none",
        "path: [fw, rtr]}",
        "path: [fw, rtr], spread: hash}",
        "web.yaml:9: chains.web.spread: 'hash': must be one of these; values: round-robin, rss",
    ),
    (
        "an unknown type of function",
        "{bridge: {}}",
        "{l3fwd: {}}",
        "web.yaml:7: functions.br.l3fwd: unknown; "
        f"did you mean 'l2fwd'? types of function: {TYPES}",
    ),
    (
        "a prefix that is too short for clients of nat64",
        "{bridge: {}}",
        "{nat64: {prefix: '64:ff9b::/96', clients: 10.0.0.0/8, source: 192.0.2.1, "
        "source-ipv6: 'fc00::1'}}",
        "web.yaml:7: functions.br.nat64.clients: '10.0.0.0/8': must have from 12 to 30 bits",
    ),
    (
        "an unknown kind of port",
        "{vhost-user: /tmp/left.sock}",
        "{vhostuser: /tmp/left.sock}",
        "web.yaml:2: ports.left.vhostuser: unknown; did you mean 'vhost-user'? "
        "kinds of port: af_packet, af_xdp, dpdk, memif, null, openflow, pcap, shared, "
        "vhost-user, virtio-user",
    ),
    (
        "a memif peer that nobody checks or trusts",
        "{af_packet: eth1}",
        "{memif: /tmp/right.sock, datapath: dpdk}",
        "web.yaml:3: ports.right: a peer of DPDK's driver must be one that you trust; "
        "write trusted: true beside datapath: dpdk, or leave datapath out",
    ),
    (
        "two kinds of port",
        "{af_packet: eth1}",
        "{af_packet: eth1, dpdk: net_tap0}",
        "web.yaml:3: ports.right: af_packet and dpdk together; keep one of them",
    ),
    (
        "a function without a type",
        "{bridge: {}}",
        "l2fwd",
        "web.yaml:7: functions.br: 'l2fwd': must be a mapping; "
        f"write {{balancer: …}} (types of function: {TYPES})",
    ),
    (
        "a duplicate name",
        "chains:\n",
        "chains:\n  web: {from: right, to: left}\n",
        "web.yaml:10: chains.web: given twice; the first is on line 9; remove or rename one",
    ),
    (
        "a name that cannot be",
        "  br:",
        "  'b r':",
        "web.yaml:7: functions.b r: 'b r': must be a name: a letter, then letters, digits, "
        "'-' or '_', 31 characters at most",
    ),
    (
        "an unknown key",
        "from: left",
        "form: left",
        "web.yaml:9: chains.web.form: unknown key; did you mean 'from'? "
        "keys: both-ways, deployment, from, match, path, spread, to",
    ),
    (
        "a missing key",
        "from: left, ",
        "",
        "web.yaml:9: chains.web.from: is missing, and no output leads here; "
        "add from: PORT, or lead a function's output here",
    ),
    (
        "a nat whose outside is nowhere",
        "{bridge: {}}",
        "{nat: {outside: [rihgt], pool: [198.51.100.1], inside: [10.0.0.0/8]}}",
        "web.yaml:7: functions.br.nat.outside[0]: 'rihgt': no port is called so; "
        "did you mean 'right'? ports: left, right",
    ),
    (
        "a pool that the router has",
        "{bridge: {}}",
        "{nat: {outside: [right], pool: [192.0.2.0/28], inside: [172.16.0.0/12]}}\n"
        "  r2: {router: {addresses: {right: [192.0.2.7/24]}}}",
        "web.yaml:7: functions.br.nat.pool[0]: 192.0.2.0/28: router 'r2' on port 'right' has it "
        "already; take another, or write share-address: true if this gateway has one address",
    ),
    (
        "a pool that another nat has",
        "{bridge: {}}",
        "{nat: {outside: [right], pool: [198.51.100.1], inside: [172.16.0.0/12]}}\n"
        "  n2: {nat: {outside: [right], pool: [198.51.100.0/28], inside: [172.16.0.0/12]}}",
        "web.yaml:8: functions.n2.nat.pool[0]: 198.51.100.0/28: nat 'br' has it already; "
        "give each nat addresses of its own",
    ),
    (
        "a backend behind no port",
        "{bridge: {}}",
        "{balancer: {mode: dsr, services: [{address: 192.0.2.1, proto: tcp, port: 80}], "
        "backends: [{address: 10.0.0.1, mac: 02:00:00:00:00:01, dev: lfet}]}}",
        "web.yaml:7: functions.br.balancer.backends[0].dev: 'lfet': no port is called so; "
        "did you mean 'left'? ports: left, right",
    ),
    (
        "a route to nowhere: its port",
        "dev right",
        "dev rigth",
        "web.yaml:6: functions.rtr.router.routes[0]: dev rigth: a route to nowhere: "
        "no port is called so; did you mean 'right'? ports: left, right",
    ),
    (
        "a route to nowhere: its next hop",
        "neighbours: {192.0.2.1",
        "neighbours: {192.0.2.2",
        "web.yaml:6: functions.rtr.router.routes[0]: via 192.0.2.1: a route to nowhere: the next "
        "hop's MAC address is not known; "
        'add it under neighbours, as 192.0.2.1: "02:00:00:00:00:01"',
    ),
    (
        "a route without a port",
        "via 192.0.2.1 dev right",
        "via 192.0.2.1",
        "web.yaml:6: functions.rtr.router.routes[0]: via 192.0.2.1: a route to nowhere: the "
        "next hop is in no connected network; add dev PORT, or an address of its network under "
        "addresses",
    ),
    (
        "a route without a next hop",
        "via 192.0.2.1 dev right",
        "proto static",
        "web.yaml:6: functions.rtr.router.routes[0]: '10.0.0.0/8 proto static': "
        "names no port to leave by; write: PREFIX [via ADDRESS] [dev PORT]",
    ),
    (
        "an address on no port",
        "router: {",
        "router: {addresses: {rihgt: [192.0.2.7/24]}, ",
        "web.yaml:6: functions.rtr.router.addresses.rihgt: 'rihgt': no port is called so; "
        "did you mean 'right'? ports: left, right",
    ),
    (
        "an address without its network",
        "router: {",
        "router: {addresses: {right: [192.0.2.7]}, ",
        "web.yaml:6: functions.rtr.router.addresses.right[0]: '192.0.2.7': must be an address "
        "with its network's length; write one like 192.0.2.1/24 or 2001:db8::1/64",
    ),
    (
        "a network as an address",
        "router: {",
        "router: {addresses: {right: [192.0.2.0/24]}, ",
        "web.yaml:6: functions.rtr.router.addresses.right[0]: '192.0.2.0/24': is not a host's in "
        "192.0.2.0/24; write another of this network",
    ),
    (
        "an address twice",
        "router: {",
        "router: {addresses: {left: [192.0.2.7/24], right: [192.0.2.7/25]}, ",
        "web.yaml:6: functions.rtr.router.addresses.right[0]: 192.0.2.7/25: "
        "'rtr' on port 'left' has this address already; give each its own",
    ),
    (
        "two functions that claim one address",
        "  rtr: {router: {",
        "  other: {router: {addresses: {left: [192.0.2.7/24]}}}\n"
        "  rtr: {router: {addresses: {left: [192.0.2.7/24]}, ",
        "web.yaml:7: functions.rtr.router.addresses.left[0]: 192.0.2.7/24: "
        "'other' on port 'left' has this address already; give each its own",
    ),
    (
        "one network on two ports",
        "router: {",
        "router: {addresses: {left: [192.0.2.7/24], right: [192.0.2.8/24]}, ",
        "web.yaml:6: functions.rtr.router.addresses.right[0]: 192.0.2.8/24: port 'left' is in "
        "the network 192.0.2.0/24 already; give each port a network of its own",
    ),
    (
        "next hops, one of them nowhere",
        "via 192.0.2.1 dev right",
        "nexthop via 192.0.2.1 dev right nexthop via 192.0.2.9",
        "web.yaml:6: functions.rtr.router.routes[0]: via 192.0.2.9: a route to nowhere: the "
        "next hop is in no connected network; add dev PORT, or an address of its network under "
        "addresses",
    ),
    (
        "a word that would steer a terminal",
        "10.0.0.0/8 via 192.0.2.1 dev right",
        '"::/0 \\e[1m x dev right"',
        "web.yaml:6: functions.rtr.router.routes[0]: '::/0 ?[1m x dev right': "
        "unknown word '?[1m'; write: PREFIX [via ADDRESS] [dev PORT]",
    ),
    (
        "a route with host bits",
        "routes: [10.0.0.0/8",
        "routes: [10.0.0.1/8",
        "web.yaml:6: functions.rtr.router.routes[0]: '10.0.0.1/8 via 192.0.2.1 dev right': "
        "has bits set beyond the prefix length; write 10.0.0.0/8",
    ),
    (
        "a route of two families",
        "routes: [10.0.0.0/8 via 192.0.2.1",
        "routes: [10.0.0.0/8 via 2001:db8::1",
        "web.yaml:6: functions.rtr.router.routes[0]: "
        "'10.0.0.0/8 via 2001:db8::1 dev right': "
        "the prefix and via must both be IPv4 or both be IPv6",
    ),
    (
        "a route twice",
        "dev right]",
        "dev right, 10.0.0.0/8 dev left]",
        "web.yaml:6: functions.rtr.router.routes[1]: 10.0.0.0/8: "
        "the prefix of routes[0] again; keep one of them",
    ),
    (
        "a core that does not exist",
        "cores: [1]",
        "cores: [1, 9]",
        "web.yaml:10: workers.cores[1]: 9: no such core here; this process may use 0-3",
    ),
    (
        "a core twice",
        "cores: [1]",
        "cores: [1, 1]",
        "web.yaml:10: workers.cores[1]: 1: given twice; remove one",
    ),
    (
        "no cores",
        "cores: [1]",
        "cores: []",
        "web.yaml:10: workers.cores: needs 1 or more items",
    ),
    (
        "a number in quotes",
        "cores: [1]",
        'cores: ["1"]',
        "web.yaml:10: workers.cores[0]: '1': must be a whole number; write it without quotes",
    ),
    (
        "a socket path that is too long",
        "/tmp/left.sock",
        "/tmp/" + 98 * "x" + ".sock",
        "web.yaml:2: ports.left.vhost-user: '/tmp/" + 54 * "x" + "…': the socket's path has 108 "
        "bytes, and 107 is the most that a socket can have; use a shorter path, e.g. under /run",
    ),
    (
        "one socket for two ports",
        "{af_packet: eth1}",
        "{vhost-user: /tmp/left.sock}",
        "web.yaml:3: ports.right.vhost-user: '/tmp/left.sock': port 'left' uses it already; "
        "use another",
    ),
    (
        "an empty socket path",
        "/tmp/left.sock",
        '""',
        "web.yaml:2: ports.left.vhost-user: '': must not be empty",
    ),
    (
        "a pcap port without a file",
        "{af_packet: eth1}",
        "{pcap: {}}",
        "web.yaml:3: ports.right.pcap: needs a file; "
        "write {read: in.pcap} or {write: out.pcap} or both",
    ),
    (
        "a capture that is not there",
        "{af_packet: eth1}",
        "{pcap: {read: no.pcap}}",
        "web.yaml:3: ports.right.pcap.read: '/nowhere/no.pcap': no such file; "
        "paths start at the descriptor's folder",
    ),
    (
        "a zero byte in a capture's path",
        "{af_packet: eth1}",
        '{pcap: {write: "a\\0b"}}',
        "web.yaml:3: ports.right.pcap: a zero byte in a path; remove it",
    ),
    (
        "a zero byte in a socket's path",
        "{af_packet: eth1}",
        '{vhost-user: "a\\0b"}',
        "web.yaml:3: ports.right.vhost-user: 'a?b': a zero byte in a path; remove it",
    ),
    (
        "a capture that is read and written",
        "{af_packet: eth1}",
        "{pcap: {read: /dev/null, write: /dev/../dev/null}}",
        "web.yaml:3: ports.right.pcap.write: '/dev/../dev/null': port 'right' reads it; "
        "write another file",
    ),
    (
        "a routes file that is not there",
        "routes: [",
        "routes-file: no.txt, routes: [",
        "web.yaml:6: functions.rtr.router.routes-file: '/nowhere/no.txt': no such file; "
        "paths start at the descriptor's folder",
    ),
    (
        "two chains with one VLAN id on one port",
        "chains:\n",
        "chains:\n  dns: {match: {vlan: 10}, from: left, to: right}\n",
        "web.yaml:10: chains.web.match: vlan 10: chain 'dns' takes these packets from port 'left' "
        "already; give each a vlan, vni or nfi of its own",
    ),
    (
        "the same, by the way back",
        "chains:\n",
        "chains:\n  dns: {match: {vlan: 10}, from: right, to: left, both-ways: true}\n",
        "web.yaml:10: chains.web.match: vlan 10: chain 'dns' takes these packets from port 'left' "
        "already; give each a vlan, vni or nfi of its own",
    ),
    (
        "an NFI-ID of what is no convoy",
        "match: {vlan: 10}",
        "match: {nfi: 10}",
        "web.yaml:9: chains.web.match.nfi: 10: port 'left' takes no convoys, and nothing else has "
        "an NFI-ID; add to port left: convoys: {}, or match without nfi",
    ),
    (
        "both ways between one port",
        "to: right",
        "to: left, both-ways: true",
        "web.yaml:9: chains.web.both-ways: comes in and leaves by 'left', so both ways are one; "
        "remove both-ways",
    ),
    (
        "a function twice in a path",
        "path: [fw, rtr]",
        "path: [fw, rtr, fw]",
        "web.yaml:9: chains.web.path[2]: 'fw': is in this path twice; "
        "give the second one a name of its own under functions",
    ),
    (
        "a bridge with a side that is not there",
        "{bridge: {}}",
        "{bridge: {sides: [left, up]}}",
        "web.yaml:7: functions.br.bridge.sides[1]: 'up': no port is called so; ports: left, right",
    ),
    (
        "a bridge with one side",
        "{bridge: {}}",
        "{bridge: {sides: [left]}}",
        "web.yaml:7: functions.br.bridge.sides: needs 2 or more items",
    ),
    (
        "a setting of another mode",
        "{bridge: {}}",
        "{l2fwd: {mode: swap, dst: 02:00:00:00:00:01}}",
        "web.yaml:7: functions.br.l2fwd: dst is for mode rewrite, and this is mode swap",
    ),
    (
        "the bridge as it was written before",
        "{bridge: {}}",
        "{l2fwd: {mode: bridge, age-s: 3}}",
        "web.yaml:7: functions.br.l2fwd: the bridge is a function of its own; "
        "write {bridge: {}}, with the other keys of this one",
    ),
    (
        "a value that is not one of a few",
        "default: deny",
        "default: denny",
        "web.yaml:5: functions.fw.firewall.default: 'denny': must be one of these; "
        "did you mean 'deny'? values: allow, deny",
    ),
    (
        "an action that does not exist",
        "{allow: {proto",
        "{alow: {proto",
        "web.yaml:5: functions.fw.firewall.rules[0].alow: unknown; "
        "did you mean 'allow'? actions: allow, deny",
    ),
    (
        "a protocol that does not exist",
        "proto: udp",
        "proto: upd",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.proto: 'upd': must be "
        "tcp, udp, sctp, dccp, udplite, icmp, icmpv6 or a number from 0 to 255",
    ),
    (
        "a port out of range",
        "dport: 53",
        "dport: 70000",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.dport: 70000: must be from 0 to 65535",
    ),
    (
        "a port range backwards",
        "dport: 53",
        "dport: 60-50",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.dport: '60-50': "
        "the range runs backwards; write 50-60",
    ),
    (
        "TCP flags that nobody knows",
        "proto: udp",
        "proto: tcp, tcp-flags: 'syn,!akc'",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.tcp-flags: 'syn,!akc': "
        'write flags, "syn,!ack", or VALUE/MASK, "0x02/0x12" '
        "(known are: fin syn rst psh ack urg ece cwr)",
    ),
    (
        "TCP flags of UDP",
        "proto: udp",
        "proto: udp, tcp-flags: syn",
        "web.yaml:5: functions.fw.firewall.rules[0].allow: tcp-flags needs proto: tcp; write it",
    ),
    (
        "a length that is none",
        "dport: 53",
        "length: long",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.length: 'long': "
        'must be a length or a range; write 64 or "40-1500"',
    ),
    (
        "ports of non-first fragments",
        "dport: 53",
        "dport: 53, fragment: later",
        "web.yaml:5: functions.fw.firewall.rules[0].allow: "
        "fragment: later has no ports, TCP flags or ICMP type; leave them out",
    ),
    (
        "ports without a protocol that has them",
        "proto: udp",
        "proto: icmp",
        "web.yaml:5: functions.fw.firewall.rules[0].allow: sport and dport need a protocol with "
        "ports; use one of tcp, udp, sctp, dccp, udplite",
    ),
    (
        "rule addresses of two families",
        "dst: 10.0.0.0/8",
        "src: '::/0', dst: 10.0.0.0/8",
        "web.yaml:5: functions.fw.firewall.rules[0].allow: "
        "src and dst must both be IPv4 or both be IPv6",
    ),
    (
        "a rule with host bits",
        "dst: 10.0.0.0/8",
        "dst: 10.0.0.1/8",
        "web.yaml:5: functions.fw.firewall.rules[0].allow.dst: '10.0.0.1/8': "
        "has bits set beyond the prefix length; write 10.0.0.0/8",
    ),
    (
        "a MAC address that is none",
        "02:00:00:00:00:01",
        "02:00:00:00:01",
        "web.yaml:6: functions.rtr.router.neighbours.192.0.2.1: '02:00:00:00:01': "
        "must be a MAC address; write it as 02:00:00:00:00:01",
    ),
    (
        "a neighbour that is no address",
        "neighbours: {192.0.2.1",
        "neighbours: {192.0.2.256",
        "web.yaml:6: functions.rtr.router.neighbours.192.0.2.256: '192.0.2.256': "
        "must be an IPv4 or IPv6 address",
    ),
    (
        "vlan and vni",
        "{vlan: 10}",
        "{vlan: 10, vni: 10}",
        "web.yaml:9: chains.web.match: vlan and vni together; keep one of them",
    ),
    (
        "a VLAN id too large",
        "{vlan: 10}",
        "{vlan: 4096}",
        "web.yaml:9: chains.web.match.vlan: 4096: must be less than or equal to 4095",
    ),
    (
        "true where a number must be",
        "{vlan: 10}",
        "{vlan: true}",
        "web.yaml:9: chains.web.match.vlan: True: must be a whole number",
    ),
    (
        "a list where a mapping must be",
        "functions:\n",
        "functions: []\nx:\n",
        "web.yaml:5: x: unknown key; keys: chains, control, flows, functions, memory, next-hops, "
        "openflow, ports, run-as, standby, telemetry, workers",
    ),
    (
        "too many queues",
        "{af_packet: eth1}",
        "{af_packet: eth1, queues: 17}",
        "web.yaml:3: ports.right.queues: 17: must be less than or equal to 16",
    ),
    (
        "a number too large",
        "cores: [1]",
        "cores: [" + 5000 * "9" + "]",
        "web.yaml:10: workers.cores[0]: '" + 59 * "9" + "…': a number too large for anything here",
    ),
    (
        "a tab",
        "  left:",
        "\tleft:",
        "web.yaml:2: not YAML: a tab; indent with spaces",
    ),
    (
        "lines as a Macintosh ended them, and a tab",
        "  left:",
        "  middle: null\r\tleft:",
        "web.yaml:3: not YAML: a tab; indent with spaces",
    ),
    (
        "a bracket that is not closed",
        "path: [fw, rtr]}",
        "path: [fw, rtr}",
        "web.yaml:9: not YAML: expected ',' or ']', but got '}'; "
        "check indentation, colons and quotes",
    ),
    (
        "a tag",
        "from: left",
        "from: !!python/object/apply:os.system [left]",
        "web.yaml:9: chains.web.from: YAML tag "
        "'tag:yaml.org,2002:python/object/apply:os.system'; remove it",
    ),
    (
        "an alias of nothing",
        "from: left",
        "from: *left",
        "web.yaml:9: not YAML: found undefined alias 'left'; check indentation, colons and quotes",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_message(good: str, machine: Machine, old: str, new: str, message: str):
    assert old in good
    with pytest.raises(DescriptorError) as caught:
        loads(good.replace(old, new, 1), machine, Path("/nowhere"), "web.yaml")
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


WHOLE = [
    ("empty", b"", "x:1: empty; begin with ports: (see examples/)"),
    ("only a comment", b"# nothing\n", "x:1: empty; begin with ports: (see examples/)"),
    ("not a mapping", b"- 1\n", "x:1: must be a mapping"),
    ("not UTF-8", b"ports:\n  a\xff: 1\n", "x:2: not UTF-8 text; save the file as UTF-8"),
    ("a zero byte", b"ports:\n\0", "x:2: not YAML: a control character; remove it"),
    ("deep", 5000 * b"[", f"x:1: {33 * '[0]'}: nested deeper than 32 levels; flatten it"),
    ("an alias in itself", b"ports: &a [*a]\n", None),
    (
        "a bomb",
        b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"a%d: &a%d [%s]\n" % (i, i, b",".join(10 * [b"*a%d" % (i - 1)])) for i in range(1, 9)
        ),
        None,
    ),
    ("two documents", b"a: 1\n---\nb: 1\n", None),
    ("a list as key", b"[1, 2]: 3\n", "x:1: a key must be a plain word; quote it"),
]


@pytest.mark.parametrize(("content", "message"), [r[1:] for r in WHOLE], ids=[r[0] for r in WHOLE])
def test_whole_file(machine: Machine, content: bytes, message: str | None):
    with pytest.raises(DescriptorError) as caught:
        loads(content, machine, Path("/nowhere"), "x")
    assert message is None or str(caught.value) == message
    assert len(caught.value.lines) == 1


def test_every_problem_is_told_in_the_order_of_lines(good: str, machine: Machine):
    text = good.replace("to: right", "to: up").replace("dev right", "dev up")
    with pytest.raises(DescriptorError) as caught:
        loads(text, machine, Path("/nowhere"), "x")
    assert [line.split(": ")[0] for line in caught.value.lines] == ["x:6", "x:9"]
