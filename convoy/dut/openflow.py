# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The rules of Open vSwitch as a device: a chain from the left port to the right one.

Function i of a chain is table i (convoy/chain/flow_rules.py). What comes back, if anything may,
goes through tables of its own behind these, and out of the left port.

A stateful firewall before a nat is connection tracking: ct(commit,nat). What comes back passes if
it is of a known connection, and leaves by the left port.
"""

from collections.abc import Iterator, Sequence

from convoy.chain.flow_rules import BEFORE_RULES, Out, Tables, path_rules
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Function
from convoy.dut.functions import read, tracks

LEFT, RIGHT = 1, 2  # OpenFlow's port numbers
_OUTS = {"left": Out(LEFT, LEFT_MAC), "right": Out(RIGHT, RIGHT_MAC)}


def flows(functions: Sequence[Function], back: Sequence[Function] | None = None) -> list[str]:
    """Return the flows of a chain, as ovs-ofctl add-flows reads them.

    back: the chain of what comes in by the right port; None: that goes nowhere.
    Raises InputError for what OpenFlow cannot say.
    """
    lines = _chain(0, functions, LEFT, "right")
    if tracks(functions):
        lines += _answers(len(functions) + 1)
    if back is not None:
        first = len(functions) + 1
        lines.append(f"table=0,priority={BEFORE_RULES},in_port={RIGHT},actions=goto_table:{first}")
        lines += _chain(first, back, RIGHT, "left")
    return lines


def joined(ports: int, both_ways: bool = False) -> list[str]:
    """Return the flows of a switch with VNFs behind it: its ports are joined pairwise."""
    pairs = [(i, i + 1) for i in range(1, ports, 2)]
    ways = [*pairs, *((b, a) for a, b in pairs)] if both_ways else pairs
    return [f"table=0,in_port={come},actions=output:{leave}" for come, leave in ways]


def _answers(table: int) -> Iterator[str]:
    """Yield what comes back of connections; table: one that is free."""
    yield f"table=0,priority={BEFORE_RULES},in_port={RIGHT},ip,actions=ct(nat,table={table})"
    yield f"table=0,priority={BEFORE_RULES - 1},in_port={RIGHT},actions=drop"
    for state in ("+trk+est", "+trk+rel"):
        yield f"table={table},priority=2,ct_state={state},ip,actions=output:{LEFT}"
    yield f"table={table},priority=1,actions=drop"


def _chain(first: int, functions: Sequence[Function], come: int, to: str) -> list[str]:
    meanings = [read(function, to) for function in functions]
    return path_rules(meanings, Tables(first), come, _OUTS, to, exact=False)
