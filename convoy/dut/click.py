# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as Click elements: the language that FastClick, and the papers' ClickOS, are told.

Function i begins with the element fi. It is written for speed where Click leaves a choice: one
DecIPTTL before the routes part, frames that keep their Ethernet header, no element that only joins.

Click knows no VLAN here: a tagged frame is not IP, so that a firewall lets it pass and a router
drops it. CheckIPHeader cuts off what stands behind the IP packet (Ethernet's padding).
"""

from collections.abc import Callable, Sequence
from typing import Any

from convoy.chain.meaning import Firewall, Layer2, Meaning, Ports, Router, Rule
from convoy.dut.addresses import RIGHT_MAC
from convoy.dut.base import Function
from convoy.dut.functions import read

IN, OUT = "in", "out"


def configuration(functions: Sequence[Function]) -> list[str]:
    """Return the elements of a chain from IN to OUT, which the caller declares. Raises InputError.

    It is empty where nothing is to be done: then IN goes to OUT.
    """
    lines: list[str] = []
    entry = OUT  # elements are declared before others lead to them: the last function is first
    for i, function in reversed(list(enumerate(functions))):
        block = _elements(f"f{i}", read(function), entry)
        if block:
            lines += block
            entry = f"f{i}"
    return [*lines, f"{IN} -> {entry};"]


def _elements(name: str, meaning: Meaning, on: str) -> list[str]:
    return MEANINGS[type(meaning)](name, meaning, on)


def _firewall(name: str, firewall: Firewall, on: str) -> list[str]:
    default = "allow" if firewall.default_allow else "deny"
    rules = [_rule(rule) for rule in firewall.rules] + [f"{default} all"]
    return [
        f"{name} :: Classifier(12/0800, 12/86DD, -);",
        f"{name}[0] -> CheckIPHeader(OFFSET 14) -> IPFilter({', '.join(rules)}) -> {on};",
        f"{name}[1] -> {on if firewall.default_allow else 'Discard'};",
        f"{name}[2] -> {on};",
    ]


def _rule(rule: Rule) -> str:
    words = [f"src net {rule.src}"] if rule.src else []
    words += [f"dst net {rule.dst}"] if rule.dst else []
    words += [f"ip proto {rule.proto}"] if rule.proto is not None else []
    words += _ports("src", rule.sport) + _ports("dst", rule.dport)
    return f"{'allow' if rule.allow else 'deny'} {' && '.join(words) or 'all'}"


def _ports(side: str, ports: Ports | None) -> list[str]:
    if ports is None:
        return []
    low, high = ports
    if low == high:
        return [f"{side} port {low}"]
    words = [f"{side} port >= {low}"] if low > 0 else []
    return words + ([f"{side} port <= {high}"] if high < 65535 else [])


def _router(name: str, router: Router, on: str) -> list[str]:
    next_hops = sorted({route.mac for route in router.routes})
    routes = ", ".join(f"{route.prefix} {next_hops.index(route.mac)}" for route in router.routes)
    return [
        f"{name} :: Classifier(12/0800);",
        f"{name}_routes :: RadixIPLookup({routes});",
        f"{name} -> CheckIPHeader(OFFSET 14, CHECKSUM true) -> DecIPTTL -> {name}_routes;",
        *(f"{name}_routes[{i}] -> EtherRewrite({RIGHT_MAC}, {mac}) -> {on};"
          for i, mac in enumerate(next_hops)),
    ]  # fmt: skip


def _layer2(name: str, layer2: Layer2, on: str) -> list[str]:
    if layer2.bridge or (not layer2.swap and not layer2.src and not layer2.dst):
        return []  # frames stay as they are, and there are two ports
    if layer2.swap:
        return [f"{name} :: EtherMirror -> {on};"]
    if layer2.src and layer2.dst:
        return [f"{name} :: EtherRewrite({layer2.src}, {layer2.dst}) -> {on};"]
    if layer2.src:
        return [f"{name} :: StoreEtherAddress({layer2.src}, src) -> {on};"]
    return [f"{name} :: StoreEtherAddress({layer2.dst}, dst) -> {on};"]


MEANINGS: dict[type[Meaning], Callable[[str, Any, str], list[str]]] = {
    Firewall: _firewall,
    Router: _router,
    Layer2: _layer2,
}
