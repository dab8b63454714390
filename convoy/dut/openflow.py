# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as OpenFlow rules: what the papers call a data-plane function.

Function i of a chain is table i. A packet that a function lets through goes on to table i + 1,
and from behind the last one out of the right port. What comes back, if anything may, goes through
tables of its own behind these, and out of the left port.

A stateful firewall before a nat is connection tracking: ct(commit,nat). What comes back passes if
it is of a known connection, and leaves by the left port.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Function
from convoy.dut.functions import Firewall, Layer2, Meaning, Nat, Ports, Router, Rule, read, tracks
from convoy.errors import InputError

LEFT, RIGHT = 1, 2  # OpenFlow's port numbers
_FIRST_RULE = 60_000  # priority: rules go down from it, and every rule needs one of its own
_BEFORE_RULES = 65_000
_WORDS = {6: "tcp", 17: "udp", 132: "sctp"}  # protocols of which OpenFlow knows the ports


def flows(functions: Sequence[Function], back: Sequence[Function] | None = None) -> list[str]:
    """Return the flows of a chain, as ovs-ofctl add-flows reads them.

    back: the chain of what comes in by the right port; None: that goes nowhere.
    Raises InputError for what OpenFlow cannot say.
    """
    lines = list(_chain(0, functions, LEFT, RIGHT))
    if tracks(functions):
        lines += _answers(len(functions) + 1)
    if back is not None:
        first = len(functions) + 1
        lines.append(f"table=0,priority={_BEFORE_RULES},in_port={RIGHT},actions=goto_table:{first}")
        lines += _chain(first, back, RIGHT, LEFT)
    return lines


def joined(ports: int) -> list[str]:
    """Return the flows of a switch with VNFs behind it: its ports are joined pairwise."""
    return [f"table=0,in_port={i},actions=output:{i + 1}" for i in range(1, ports, 2)]


def _answers(table: int) -> Iterator[str]:
    """Yield what comes back of connections; table: one that is free."""
    yield f"table=0,priority={_BEFORE_RULES},in_port={RIGHT},ip,actions=ct(nat,table={table})"
    yield f"table=0,priority={_BEFORE_RULES - 1},in_port={RIGHT},actions=drop"
    for state in ("+trk+est", "+trk+rel"):
        yield f"table={table},priority=2,ct_state={state},ip,actions=output:{LEFT}"
    yield f"table={table},priority=1,actions=drop"


def _nat(nat: Nat, on: str, mac: str) -> Iterator[str]:
    table = on.removeprefix("goto_table:")
    pool = f"{nat.pool[0]}-{nat.pool[-1]}"
    yield f"priority=2,ip,nw_src={nat.inside},actions=ct(commit,nat(src={pool}),table={table})"
    yield f"priority=1,actions={on}"


def _chain(first: int, functions: Sequence[Function], come: int, go: int) -> Iterator[str]:
    side, mac = ("right", RIGHT_MAC) if go == RIGHT else ("left", LEFT_MAC)
    for table, function in enumerate(functions, first):
        meaning = read(function, side)
        for line in MEANINGS[type(meaning)](meaning, f"goto_table:{table + 1}", mac):
            yield f"table={table},{line}"
    yield f"table={first + len(functions)},priority=1,in_port={come},actions=output:{go}"


def _firewall(firewall: Firewall, on: str, mac: str) -> Iterator[str]:
    if len(firewall.rules) > _FIRST_RULE - 10:
        raise InputError(
            f"firewall: {len(firewall.rules)} rules; OpenFlow has priorities for 59990"
        )
    for i, rule in enumerate(firewall.rules):
        for match in _matches(rule):
            yield f"priority={_FIRST_RULE - i},{match},actions={on if rule.allow else 'drop'}"
    default = on if firewall.default_allow else "drop"
    yield f"priority=2,ip,actions={default}"
    yield f"priority=2,ipv6,actions={default}"
    yield f"priority=1,actions={on}"


def _matches(rule: Rule) -> Iterator[str]:
    """A range of ports is several matches: values and masks."""
    if rule.proto is None:
        words = ["ip"]
    elif rule.proto in _WORDS:
        words = [_WORDS[rule.proto]]
    elif rule.sport or rule.dport:
        raise InputError(f"firewall: OpenFlow knows no ports of protocol {rule.proto}")
    else:
        words = ["ip", f"nw_proto={rule.proto}"]
    words += [f"nw_src={rule.src}"] if rule.src else []
    words += [f"nw_dst={rule.dst}"] if rule.dst else []
    for sport in _masks(rule.sport):
        for dport in _masks(rule.dport):
            ports = [f"tp_src={sport}"] if sport else []
            ports += [f"tp_dst={dport}"] if dport else []
            yield ",".join([*words, *ports])


def _masks(ports: Ports | None) -> list[str]:
    """Return a range as VALUE/MASK, as few as there can be; [""]: any port."""
    if ports is None or ports == (0, 65535):
        return [""]
    low, high = ports
    masks = []
    while low <= high:
        size = low & -low or 1 << 16
        while size > high - low + 1:
            size >>= 1
        masks.append(f"0x{low:x}/0x{0x10000 - size:x}" if size > 1 else str(low))
        low += size
    return masks


def _router(router: Router, on: str, mac: str) -> Iterator[str]:
    for route in router.routes:
        actions = f"dec_ttl,set_field:{mac}->eth_src,set_field:{route.mac}->eth_dst,{on}"
        yield f"priority={10 + route.prefix.prefixlen},ip,nw_dst={route.prefix},actions={actions}"
    yield "priority=1,actions=drop"


def _layer2(layer2: Layer2, on: str, mac: str) -> Iterator[str]:
    words = [f"set_field:{layer2.src}->eth_src,"] if layer2.src else []
    words += [f"set_field:{layer2.dst}->eth_dst,"] if layer2.dst else []
    if layer2.bridge:
        words = []  # to where it would be flooded: there are two ports
    if layer2.swap:
        source, destination = "NXM_OF_ETH_SRC[]", "NXM_OF_ETH_DST[]"
        words = [f"push:{source},push:{destination},pop:{source},pop:{destination},"]
    yield f"priority=1,actions={''.join(words)}{on}"


MEANINGS: dict[type[Meaning], Callable[[Any, str, str], Iterator[str]]] = {
    Firewall: _firewall,
    Router: _router,
    Layer2: _layer2,
    Nat: _nat,
}
