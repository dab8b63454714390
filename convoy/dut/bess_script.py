# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as calls of BESS's Python API, pybess: modules, and how their gates are connected.

Function i begins with the module fi. BESS's ACL asks for addresses and single ports, never for the
protocol, and takes everything for IPv4: an ExactMatch before it sends each protocol to an ACL with
the rules that can be meant for it, and what is not IPv4 past them. That is left away with `alone`,
which is how BESS is measured elsewhere. A gate that leads nowhere drops.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from convoy.chain.meaning import Firewall, Layer2, Meaning, Ports, Router, Rule
from convoy.dut.addresses import RIGHT_MAC
from convoy.dut.base import Function
from convoy.dut.functions import read
from convoy.errors import InputError

IN, OUT = "source", "sink"
MOST_PORTS = 64  # that a rule may name: each is a rule of its own
_TYPE = {"offset": 12, "num_bytes": 2}
_PROTOCOL = {"offset": 23, "num_bytes": 1}
# In the order of the frame's bytes: BESS takes an integer for little-endian.
_IPV4, _IPV6 = {"value_bin": b"\x08\x00"}, {"value_bin": b"\x86\xdd"}


class Script:
    """The calls, in order."""

    def __init__(self, functions: Sequence[Function], alone: bool = False) -> None:
        """Write down a chain from IN to OUT, which the caller makes.

        alone: a firewall is an ACL and nothing else. Raises InputError for what BESS cannot say.
        """
        self.lines: list[str] = []
        self._alone = alone
        entry = OUT  # modules are made before others lead to them: the last function is first
        for i, function in reversed(list(enumerate(functions))):
            name, meaning = f"f{i}", read(function)
            entry = MEANINGS[type(meaning)](self, name, meaning, entry)
        self._connect(IN, entry)

    def _module(self, kind: str, name: str, config: Mapping[str, Any], on: str = "") -> None:
        self.lines.append(f"bess.create_module({kind!r}, {name!r}, {config!r})")
        if on:
            self._connect(name, on)

    def _connect(self, name: str, on: str, gate: int = 0) -> None:
        self.lines.append(f"bess.connect_modules({name!r}, {on!r}, {gate})")

    def _tell(self, name: str, command: str, kind: str, config: Mapping[str, Any]) -> None:
        call = f"{name!r}, {command!r}, {kind!r}, {config!r}"
        self.lines.append(f"bess.run_module_command({call})")

    def _match(self, name: str, fields: Sequence[Mapping[str, int]]) -> None:
        self._module("ExactMatch", name, {"fields": list(fields)})

    def _send(self, name: str, values: Sequence[Mapping[str, bytes]], gate: int, on: str) -> None:
        config = {"gate": gate, "fields": list(values)}
        self._tell(name, "add", "ExactMatchCommandAddArg", config)
        self._connect(name, on, gate)

    def _send_others(self, name: str, on: str) -> None:
        self._tell(name, "set_default_gate", "ExactMatchCommandSetDefaultGateArg", {"gate": 0})
        self._connect(name, on)

    def _firewall(self, name: str, firewall: Firewall, on: str) -> str:
        def acl(own: str, rules: Sequence[Rule]) -> str:
            lines = [each for rule in rules for each in _rules(rule)]
            default = {"drop": not firewall.default_allow}
            self._module("ACL", own, {"rules": [*lines, default]}, on)
            return own

        if self._alone:
            return acl(name, firewall.rules)
        others = acl(f"{name}_others", [rule for rule in firewall.rules if rule.proto is None])
        self._match(f"{name}_rest", [_TYPE])
        self._send(f"{name}_rest", [_IPV4], 1, others)
        if not firewall.default_allow:
            nowhere = {"gate": 2, "fields": [_IPV6]}
            self._tell(f"{name}_rest", "add", "ExactMatchCommandAddArg", nowhere)
        self._send_others(f"{name}_rest", on)
        self._match(name, [_TYPE, _PROTOCOL])
        protocols = sorted({rule.proto for rule in firewall.rules if rule.proto is not None})
        for gate, protocol in enumerate(protocols, 1):
            rules = [rule for rule in firewall.rules if rule.proto in (protocol, None)]
            own = acl(f"{name}_{protocol}", rules)
            self._send(name, [_IPV4, {"value_bin": bytes([protocol])}], gate, own)
        self._send_others(name, f"{name}_rest")
        return name

    def _router(self, name: str, router: Router, on: str) -> str:
        next_hops = sorted({route.mac for route in router.routes})
        longer = sum(route.prefix.prefixlen > 24 for route in router.routes)
        table = f"{name}_routes"
        self._module(
            "IPLookup", table, {"max_rules": len(router.routes) + 1, "max_tbl8s": longer + 1}
        )
        for route in router.routes:
            config = {
                "prefix": str(route.prefix.network_address),
                "prefix_len": route.prefix.prefixlen,
                "gate": next_hops.index(route.mac),
            }
            self._tell(table, "add", "IPLookupCommandAddArg", config)
        for gate, mac in enumerate(next_hops):
            self._module("Update", f"{name}_hop{gate}", _update(mac, RIGHT_MAC), on)
            self._connect(table, f"{name}_hop{gate}", gate)
        self._module("UpdateTTL", f"{name}_ttl", {}, table)
        self._module("IPChecksum", f"{name}_checksum", {"verify": True}, f"{name}_ttl")
        self._match(name, [_TYPE])
        self._send(name, [_IPV4], 0, f"{name}_checksum")
        return name

    def _layer2(self, name: str, layer2: Layer2, on: str) -> str:
        if layer2.swap:
            self._module("MACSwap", name, {}, on)
        elif layer2.bridge or not (layer2.src or layer2.dst):
            return on  # frames stay as they are, and there are two ports
        else:
            self._module("Update", name, _update(layer2.dst, layer2.src), on)
        return name


MEANINGS: dict[type[Meaning], Callable[[Script, str, Any, str], str]] = {
    Firewall: Script._firewall,
    Router: Script._router,
    Layer2: Script._layer2,
}


def _rules(rule: Rule) -> list[dict[str, Any]]:
    base: dict[str, Any] = {"src_ip": str(rule.src)} if rule.src else {}
    base |= {"dst_ip": str(rule.dst)} if rule.dst else {}
    rules = []
    for sport, dport in product(_ports(rule.sport), _ports(rule.dport)):
        ports = ({"src_port": sport} if sport else {}) | ({"dst_port": dport} if dport else {})
        rules.append(base | ports | {"drop": not rule.allow})
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


def _update(dst: str | None, src: str | None) -> dict[str, Any]:
    return {
        "fields": [
            {"offset": offset, "size": 6, "value": int(mac.replace(":", ""), 16)}
            for offset, mac in ((0, dst), (6, src))
            if mac
        ]
    }
