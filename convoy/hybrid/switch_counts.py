# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the rules of a switch have counted, as functions: packets of a table, drops of its rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RuleCount:
    """A rule, and the packets that met it."""

    table: int
    packets: int
    bytes: int
    drops: bool


def rule_counts(text: str) -> list[RuleCount]:
    """Return what `ovs-ofctl dump-flows` prints."""
    result = []
    for line in text.splitlines():
        numbers = dict(re.findall(r"\b(table|n_packets|n_bytes)=(\d+)", line))
        if len(numbers) < 2 or "actions=" not in line:
            continue
        result.append(
            RuleCount(
                int(numbers.get("table", 0)),  # it leaves out table 0
                int(numbers.get("n_packets", 0)),
                int(numbers.get("n_bytes", 0)),
                line.rstrip().endswith("actions=drop"),
            )
        )
    return result


def function_counts(rules: Sequence[RuleCount], tables: Mapping[int, str]) -> dict[str, Any]:
    """Return functions as a node counts them; how many cycles they took no switch says."""
    result: dict[str, Any] = {
        name: {
            "packets": 0, "bytes": 0, "busy_cycles": None, "drops": {"by_rules": 0},
            "originated": 0, "absorbed": 0, "held": 0,
        }
        for name in tables.values()
    }  # fmt: skip
    for rule in rules:
        if rule.table in tables:
            counts = result[tables[rule.table]]
            counts["packets"] += rule.packets
            counts["bytes"] += rule.bytes
            counts["drops"]["by_rules"] += rule.packets if rule.drops else 0
    return result
