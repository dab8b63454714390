# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions with other rules or routes, that benchmark traffic meets all the same.

Packets pass, and leave by the same port: what is measured is the change, not what it means.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from convoy.dut.base import Function
from convoy.errors import InputError

_PORTS = 4000  # that rules deny: firewall() in convoy/dut/functions.py
_OTHER = {"deny": {"src": "10.255.255.0/24", "proto": "udp", "dport": 1}}


def _changed(values: Sequence[Any], change: Callable[[Any], Any], most: int) -> list[Any]:
    """Return values, the first so many of them changed."""
    return [change(value) for value in values[:most]] + list(values[most:])


def _denies_another_port(rule: Mapping[str, Any]) -> dict[str, Any]:
    match = rule["deny"]
    return {"deny": {**match, "dport": match["dport"] + _PORTS}}


def _firewall(config: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Have rules deny another port, of sources that no packet has; the last one stays."""
    rules = config["rules"]
    denying = [rule for rule in rules if "deny" in rule]
    if not denying:
        return {**config, "rules": [_OTHER, *rules]}
    others = [rule for rule in rules if "deny" not in rule]
    return {**config, "rules": [*_changed(denying, _denies_another_port, most), *others]}


def _router(config: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Have routes lead to the next of the neighbours, all of which are behind the same port."""
    next_hops = list(config["neighbours"])
    after = dict(zip(next_hops, [*next_hops[1:], next_hops[0]], strict=True))

    def by_another(route: str) -> str:
        prefix, via, address, *port = route.split()
        return " ".join((prefix, via, after[address], *port))

    return {**config, "routes": _changed(config["routes"], by_another, most)}


_VARIANTS: dict[str, Callable[[Mapping[str, Any], int], dict[str, Any]]] = {
    "firewall": _firewall,
    "router": _router,
}


def variant(functions: Sequence[Function], replaces: str) -> tuple[Function, ...]:
    """Return functions with all their rules and routes replaced, or one of each.

    replaces: "all" or "one". Raises InputError where none of them has any.
    """
    if not any(function.type in _VARIANTS for function in functions):
        raise InputError(f"only rules and routes are replaced: of {' and '.join(_VARIANTS)}")
    most = 1 if replaces == "one" else 1 << 30
    return tuple(
        replace(function, config=_VARIANTS[function.type](function.config, most))
        if function.type in _VARIANTS
        else function
        for function in functions
    )
