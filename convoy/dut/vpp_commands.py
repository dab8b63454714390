# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as commands of VPP's CLI: what lies between its two interfaces.

VPP has no functions one behind another, but features of interfaces: a firewall is an ACL of the
acl plugin at the left interface's input or the right one's output, so there can be two; between
them is a cross-connect, with or without addresses rewritten, or IPv4 routing. What a router sends
to addresses that are then rewritten goes through a bridge, whose own interface it routes to.

A stateful firewall before a nat is the nat44-ed plugin, which lets in what belongs to a session and
nothing else, behind an ACL of the firewall's rules.
"""

from collections.abc import Sequence

from convoy.chain.meaning import Firewall, Layer2, Nat, Ports, Router, Rule
from convoy.dut.addresses import RIGHT_MAC, TESTER_MAC
from convoy.dut.base import Flows, Function
from convoy.dut.functions import read
from convoy.errors import InputError

MEANINGS = (Firewall, Router, Layer2, Nat)
_ANY = "0.0.0.0/0"
_ADDRESS = "192.0.0.8/32"  # RFC 7600's dummy address: an interface needs one to speak IPv4
_ORDER = "a firewall at most, a router, an l2fwd or a bridge, and a firewall, in this order"


def joined(interfaces: Sequence[str]) -> list[str]:
    """Return the commands of a switch with VNFs behind it: its interfaces are joined pairwise."""
    lines = []
    for left, right in zip(interfaces[::2], interfaces[1::2], strict=True):
        lines += _crossing(left, right)
    return [*lines, *(f"set interface state {interface} up" for interface in interfaces)]


def tracking(functions: Sequence[Function], flows: Flows, left: str, right: str) -> list[str]:
    """Return the commands of a stateful firewall before a nat (convoy/dut/functions.py, tracks)."""
    firewall, nat = map(read, functions)
    assert isinstance(firewall, Firewall) and isinstance(nat, Nat)
    # Behind both interfaces is the tester, whatever the address.
    inside, outside = "192.0.2.1", "192.0.2.2"
    kinds = ("udp", "tcp-established", "tcp-transitory")
    timeouts = "".join(f" {kind} {flows.idle_s}" for kind in kinds if flows.idle_s is not None)
    return [
        f"set interface ip address {left} {_ADDRESS}",
        f"set interface unnumbered {right} use {left}",
        f"set interface promiscuous on {left}",
        f"set interface promiscuous on {right}",
        f"set ip neighbor {left} {inside} {TESTER_MAC} static",
        f"set ip neighbor {right} {outside} {TESTER_MAC} static",
        f"ip route add {nat.inside} via {inside} {left}",
        f"ip route add {_ANY} via {outside} {right}",
        f"nat44 plugin enable sessions {flows.count}",
        f"nat44 add address {nat.pool[0]} - {nat.pool[-1]}",
        f"set interface nat44 in {left} out {right}",
        *([f"set nat timeout{timeouts}"] if timeouts else []),
        _acl(firewall),
        f"set acl-plugin interface {left} input acl 0",
        f"set interface state {left} up",
        f"set interface state {right} up",
    ]


def commands(functions: Sequence[Function], left: str, right: str) -> list[str]:
    """Return the commands for a chain from left to right. Raises InputError for what VPP cannot."""
    before: Firewall | None = None
    router: Router | None = None
    layer2: Layer2 | None = None
    after: Firewall | None = None
    for meaning in map(read, functions):
        middle = router is not None or layer2 is not None
        if isinstance(meaning, Firewall) and before is None and not middle:
            before = meaning
        elif isinstance(meaning, Firewall) and after is None:
            after = meaning
        elif isinstance(meaning, Layer2) and meaning.bridge:
            pass  # what it does between two ports is to forward
        elif isinstance(meaning, Router) and not middle and after is None:
            router = meaning
        elif isinstance(meaning, Layer2) and layer2 is None and after is None:
            layer2 = meaning
        else:
            raise InputError(f"VPP runs {_ORDER}")
    if router is None:
        lines = _crossing(left, right) + (_rewriting(layer2, left) if layer2 else [])
    elif layer2 is None:
        lines = _routing(router, left, right)
    else:
        lines = _bridged(router, layer2, right)
        lines += [*_routing(router, left, _BRIDGE), *_rewriting(layer2, _BRIDGE)]
    for index, (firewall, where) in enumerate(
        (firewall, where)
        for firewall, where in ((before, f"{left} input"), (after, f"{right} output"))
        if firewall is not None
    ):
        lines += [_acl(firewall), f"set acl-plugin interface {where} acl {index}"]
    return [*lines, f"set interface state {left} up", f"set interface state {right} up"]


def _routing(router: Router, left: str, to: str) -> list[str]:
    lines = [
        f"set interface ip address {left} {_ADDRESS}",
        f"set interface unnumbered {to} use {left}",
        # It routes whatever is brought to it, as everybody else here.
        f"set interface promiscuous on {left}",
    ]
    next_hops = {route.via: route.mac for route in router.routes}
    lines += [f"set ip neighbor {to} {via} {mac} static" for via, mac in next_hops.items()]
    lines += [f"ip route add {route.prefix} via {route.via} {to}" for route in router.routes]
    return lines


_BRIDGE = "bvi0"  # a bridge's own interface


def _bridged(router: Router, layer2: Layer2, right: str) -> list[str]:
    """Return what makes a bridge that takes to the right what is routed to it, and rewritten."""
    macs = [layer2.dst] if layer2.dst else sorted({route.mac for route in router.routes})
    return [
        f"bvi create mac {RIGHT_MAC} instance 0",
        "create bridge-domain 1 learn 0",
        f"set interface l2 bridge {_BRIDGE} 1 bvi",
        f"set interface l2 bridge {right} 1",
        *(f"l2fib add {mac} 1 {right} static" for mac in macs),
        f"set interface state {_BRIDGE} up",
    ]


def _crossing(left: str, right: str) -> list[str]:
    return [
        f"set interface l2 xconnect {left} {right}",
        f"set interface l2 xconnect {right} {left}",
    ]


def _rewriting(layer2: Layer2, at: str) -> list[str]:
    if layer2.swap:
        raise InputError("VPP cannot swap a frame's addresses")
    mask, value = "", ""
    for mac in (layer2.dst, layer2.src):
        mask += "f" * 12 if mac else "0" * 12
        value += mac.replace(":", "") if mac else "0" * 12
    return [
        # Rewriting asks a classifier first; in an empty one every frame misses.
        "classify table mask l2 dst buckets 2",
        f"l2 rewrite entry mask {mask} value {value}",
        f"set interface l2 rewrite {at} table 0 miss-index 0",
    ]


def _acl(firewall: Firewall) -> str:
    rules = [_rule(rule) for rule in firewall.rules]
    action = "permit" if firewall.default_allow else "deny"
    rules += [f"{action} src {_ANY} dst {_ANY}", f"{action} src ::/0 dst ::/0"]
    return f"set acl-plugin acl {', '.join(rules)}"


def _rule(rule: Rule) -> str:
    words = ["permit" if rule.allow else "deny"]
    words += [f"src {rule.src or _ANY}", f"dst {rule.dst or _ANY}"]
    if rule.proto is not None:
        words += [f"proto {rule.proto}", _ports("sport", rule.sport), _ports("dport", rule.dport)]
    return " ".join(words)


def _ports(side: str, ports: Ports | None) -> str:
    low, high = ports or (0, 65535)
    return f"{side} {low}-{high}"
