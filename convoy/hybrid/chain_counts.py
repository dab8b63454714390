# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the parts of a chain have counted, as one chain's counts.

They are shaped as a node's (docs/control.md), with the ports of the descriptor alone; `links` has
the ports between parts. Packet accounting has one term more: `lost` is what was on its way between
parts when one of them ended, and what that part held.
"""

from collections.abc import Mapping
from typing import Any

from convoy.chain.split import NODE, Split

Counts = Mapping[str, Any]
SCHEMA = "convoy.chain-counts/1"
_SUMMED = ("ports", "functions", "accounting")


def summed(before: Counts, now: Counts) -> dict[str, Any]:
    """Return the counts of a part over its lives: what was counted before is added."""
    result = {**before, **now}
    for key in _SUMMED:
        if key in before and key in now:
            result[key] = _add(before[key], now[key])
    return result


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        both = {key: _add(one[key], other[key]) for key in one if key in other}
        return {**one, **other, **both}
    if isinstance(one, bool) or isinstance(other, bool):
        return one and other
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return other


def as_one(split: Split, counts: Mapping[str, Counts], complete: bool = True) -> dict[str, Any]:
    """Return the counts of all parts as one chain's; a part that has none yet has counted nothing.

    counts: by part. complete: else one was killed, and took along what it had counted last.
    """
    node = counts.get(NODE, {})
    links = {pair.name for pair in split.pairs}
    ports = {n: port for n, port in node.get("ports", {}).items() if n not in links}
    of_parts = [one["accounting"] for one in counts.values() if "accounting" in one]
    sums = {
        key: sum(one.get(key, 0) for one in of_parts)
        for key in ("originated", "dropped", "absorbed", "held")
    }
    received = sum(port["rx_packets"] for port in ports.values())
    sent = sum(port["tx_packets"] for port in ports.values())
    come, gone = received + sums["originated"], sent + sums["dropped"] + sums["absorbed"]
    lost = come - gone - sums["held"]
    if not complete:
        lost = max(lost, 0)
    return {
        "schema": SCHEMA,
        "ports": ports,
        "links": {
            pair.name: {
                part: _of_link(counts.get(part, {}).get("ports", {}).get(pair.name, {}))
                for part in (pair.maker, pair.other)
            }
            for pair in split.pairs
        },
        "next_hops": dict(node.get("next_hops", {})),
        "functions": _functions(split, counts),
        "flows": {k: v for one in counts.values() for k, v in one.get("flows", {}).items()},
        "workers": [
            {"part": name, **worker}
            for name, one in counts.items()
            for worker in one.get("workers", ())
        ],
        "accounting": {
            "received": received,
            "originated": sums["originated"],
            "sent": sent,
            "dropped": sums["dropped"],
            "absorbed": sums["absorbed"],
            "held": sums["held"],
            "lost": lost,
            "conserved": lost >= 0 and all(one.get("conserved", True) for one in of_parts),
        },
    }


def _of_link(port: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rx_packets": port.get("rx_packets", 0),
        "tx_packets": port.get("tx_packets", 0),
        "drops": {why: count for why, count in port.get("drops", {}).items() if count},
    }


def _functions(split: Split, counts: Mapping[str, Counts]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for part in split.parts:
        for name, function in counts.get(part.name, {}).get("functions", {}).items():
            own = part.names.get(name, name)
            result[own] = _add(result[own], function) if own in result else dict(function)
            result[own]["part"] = part.name
    known = [name for name in split.functions if name in result]
    return {name: _typed(split, name, result[name]) for name in known}


def _typed(split: Split, name: str, function: dict[str, Any]) -> dict[str, Any]:
    """Put the type first, which a switch does not count."""
    return {"type": split.functions[name], **function}
