# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as commands of VPP's CLI: what lies between its two interfaces.

VPP has no functions one behind another, but features of interfaces: a firewall is an ACL of the
acl plugin at the left interface's input or the right one's output, so there can be two; between
them is a cross-connect, with or without addresses rewritten, or IPv4 routing.
"""

from collections.abc import Sequence

from convoy.dut.base import Function
from convoy.dut.functions import Firewall, Layer2, Ports, Router, Rule, read
from convoy.errors import InputError

LEFT, RIGHT = "VirtualEthernet0/0/0", "VirtualEthernet0/0/1"
_ANY = "0.0.0.0/0"
_ADDRESS = "192.0.0.8/32"  # RFC 7600's dummy address: an interface needs one to speak IPv4


def commands(functions: Sequence[Function]) -> list[str]:
    """Return the commands for a chain. Raises InputError for what VPP cannot say."""
    before: Firewall | None = None
    after: Firewall | None = None
    middle: Router | Layer2 | None = None
    for meaning in map(read, functions):
        if isinstance(meaning, Firewall):
            if before is None and middle is None:
                before = meaning
            elif after is None:
                after = meaning
            else:
                raise InputError("two firewalls at most: an ACL at the input, one at the output")
        elif isinstance(meaning, Layer2) and meaning.bridge:
            pass  # what it does between two ports is to forward
        elif middle is not None or after is not None:
            raise InputError("one of router and l2fwd, and no firewalls before it but one")
        else:
            middle = meaning
    lines = _routing(middle) if isinstance(middle, Router) else _bridging(middle)
    for index, (firewall, where) in enumerate(
        (firewall, where)
        for firewall, where in ((before, f"{LEFT} input"), (after, f"{RIGHT} output"))
        if firewall is not None
    ):
        lines += [_acl(firewall), f"set acl-plugin interface {where} acl {index}"]
    return [*lines, f"set interface state {LEFT} up", f"set interface state {RIGHT} up"]


def _routing(router: Router) -> list[str]:
    lines = [
        f"set interface ip address {LEFT} {_ADDRESS}",
        f"set interface unnumbered {RIGHT} use {LEFT}",
        # It routes whatever is brought to it, as everybody else here.
        f"set interface promiscuous on {LEFT}",
    ]
    hops = {route.via: route.mac for route in router.routes}
    lines += [f"set ip neighbor {RIGHT} {via} {mac} static" for via, mac in hops.items()]
    lines += [f"ip route add {route.prefix} via {route.via} {RIGHT}" for route in router.routes]
    return lines


def _bridging(layer2: Layer2 | None) -> list[str]:
    lines = [
        f"set interface l2 xconnect {LEFT} {RIGHT}",
        f"set interface l2 xconnect {RIGHT} {LEFT}",
    ]
    if layer2 is None:
        return lines
    if layer2.swap:
        raise InputError("VPP cannot swap a frame's addresses")
    mask, value = "", ""
    for mac in (layer2.dst, layer2.src):
        mask += "f" * 12 if mac else "0" * 12
        value += mac.replace(":", "") if mac else "0" * 12
    return [
        *lines,
        # Rewriting asks a classifier first; in an empty one every frame misses.
        "classify table mask l2 dst buckets 2",
        f"l2 rewrite entry mask {mask} value {value}",
        f"set interface l2 rewrite {LEFT} table 0 miss-index 0",
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
