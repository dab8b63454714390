# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as a BESS script: modules and how their gates are connected.

Function i begins with the module fi. BESS's ACL asks for addresses and single ports, never for the
protocol, and takes everything for IPv4: an ExactMatch before it sends each protocol to an ACL with
the rules that can be meant for it, and what is not IPv4 past them. That is left away with `alone`,
which is how BESS is measured elsewhere. A gate that leads nowhere drops.
"""

from collections.abc import Sequence
from itertools import product

from convoy.dut.base import Function
from convoy.dut.functions import RIGHT_MAC, Firewall, Layer2, Meaning, Ports, Router, Rule, read
from convoy.errors import InputError

IN, OUT = "source", "sink"
MOST_PORTS = 64  # that a rule may name: each is a rule of its own
_TYPE = "{'offset': 12, 'num_bytes': 2}"
_PROTOCOL = "{'offset': 23, 'num_bytes': 1}"
_IPV4, _IPV6 = r"{'value_bin': b'\x08\x00'}", r"{'value_bin': b'\x86\xdd'}"


def script(functions: Sequence[Function], alone: bool = False) -> list[str]:
    """Return the modules of a chain from IN to OUT, which the caller makes.

    alone: a firewall is an ACL and nothing else. Raises InputError for what BESS cannot say.
    """
    lines: list[str] = []
    entry = OUT  # modules are made before others lead to them: the last function is first
    for i, function in reversed(list(enumerate(functions))):
        block = _modules(f"f{i}", read(function), entry, alone)
        if block:
            lines += block
            entry = f"f{i}"
    return [*lines, f"{IN} -> {entry}"]


def _modules(name: str, meaning: Meaning, on: str, alone: bool) -> list[str]:
    if isinstance(meaning, Firewall):
        if alone:
            return [f"{name}::{_acl(meaning.rules, meaning.default_allow)}", f"{name} -> {on}"]
        return _firewall(name, meaning, on)
    if isinstance(meaning, Router):
        return _router(name, meaning, on)
    return _layer2(name, meaning, on)


def _firewall(name: str, firewall: Firewall, on: str) -> list[str]:
    protocols = sorted({rule.proto for rule in firewall.rules if rule.proto is not None})
    lines = [f"{name}::ExactMatch(fields=[{_TYPE}, {_PROTOCOL}])"]
    for gate, protocol in enumerate(protocols, 1):
        rules = [rule for rule in firewall.rules if rule.proto in (protocol, None)]
        fields = f"[{_IPV4}, {{'value_int': {protocol}}}]"
        lines += [
            f"{name}.add(fields={fields}, gate={gate})",
            f"{name}:{gate} -> {_acl(rules, firewall.default_allow)} -> {on}",
        ]
    others = [rule for rule in firewall.rules if rule.proto is None]
    return [
        *lines,
        f"{name}_rest::ExactMatch(fields=[{_TYPE}])",
        f"{name}_rest.add(fields=[{_IPV4}], gate=1)",
        f"{name}_rest.add(fields=[{_IPV6}], gate=2)",
        f"{name}_rest.set_default_gate(gate=0)",
        f"{name}_rest:0 -> {on}",
        f"{name}_rest:1 -> {_acl(others, firewall.default_allow)} -> {on}",
        *([f"{name}_rest:2 -> {on}"] if firewall.default_allow else []),
        f"{name}.set_default_gate(gate=0)",
        f"{name}:0 -> {name}_rest",
    ]


def _acl(rules: Sequence[Rule], default_allow: bool) -> str:
    words = [word for rule in rules for word in _rules(rule)]
    words.append(f"{{'drop': {not default_allow}}}")
    return f"ACL(rules=[{', '.join(words)}])"


def _rules(rule: Rule) -> list[str]:
    words = [f"'src_ip': '{rule.src}'"] if rule.src else []
    words += [f"'dst_ip': '{rule.dst}'"] if rule.dst else []
    rules = []
    for sport, dport in product(_ports(rule.sport), _ports(rule.dport)):
        ports = [f"'src_port': {sport}"] if sport else []
        ports += [f"'dst_port': {dport}"] if dport else []
        rules.append("{" + ", ".join([*words, *ports, f"'drop': {not rule.allow}"]) + "}")
    return rules


def _ports(ports: Ports | None) -> Sequence[int]:
    """Return each port; 0 is any port for BESS, and so it is here."""
    if ports is None or ports == (0, 65535):
        return (0,)
    low, high = ports
    if low == 0:
        raise InputError("firewall: BESS's ACL cannot ask for port 0: it stands for any")
    if high - low >= MOST_PORTS:
        raise InputError(f"firewall: ports {low}-{high}: BESS's ACL has single ports, not ranges")
    return range(low, high + 1)


def _router(name: str, router: Router, on: str) -> list[str]:
    hops = sorted({route.mac for route in router.routes})
    longer = sum(route.prefix.prefixlen > 24 for route in router.routes)
    table = f"IPLookup(max_rules={len(router.routes) + 1}, max_tbl8s={longer + 1})"
    return [
        f"{name}::ExactMatch(fields=[{_TYPE}])",
        f"{name}.add(fields=[{_IPV4}], gate=0)",
        f"{name}_routes::{table}",
        *(f"{name}_routes.add(prefix='{route.prefix.network_address}', "
          f"prefix_len={route.prefix.prefixlen}, gate={hops.index(route.mac)})"
          for route in router.routes),
        f"{name} -> IPChecksum(verify=True) -> UpdateTTL() -> {name}_routes",
        *(f"{name}_routes:{i} -> {_update(mac, RIGHT_MAC)} -> {on}" for i, mac in enumerate(hops)),
    ]  # fmt: skip


def _layer2(name: str, layer2: Layer2, on: str) -> list[str]:
    if layer2.swap:
        return [f"{name}::MACSwap()", f"{name} -> {on}"]
    if layer2.bridge or not (layer2.src or layer2.dst):
        return []  # frames stay as they are, and there are two ports
    return [f"{name}::{_update(layer2.dst, layer2.src)}", f"{name} -> {on}"]


def _update(dst: str | None, src: str | None) -> str:
    fields = [
        f"{{'offset': {offset}, 'size': 6, 'value': 0x{mac.replace(':', '')}}}"
        for offset, mac in ((0, dst), (6, src))
        if mac
    ]
    return f"Update(fields=[{', '.join(fields)}])"
