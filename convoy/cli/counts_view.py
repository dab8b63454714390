# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node's counts as tables: what passed, what was dropped and why, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

Counts = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """Counts at a moment."""

    at_s: float  # of a monotonic clock
    counts: Counts


def si(value: float) -> str:
    """Return a number short enough to read while it changes: 999, 12.3 k, 4.56 M."""
    for limit, divisor, unit in ((1e4, 1, ""), (1e7, 1e3, " k"), (1e10, 1e6, " M")):
        if abs(value) < limit:
            return (
                f"{value / divisor:.0f}{unit}" if divisor == 1 else f"{value / divisor:.4g}{unit}"
            )
    return f"{value / 1e9:.4g} G"


def drops_text(drops: Mapping[str, int]) -> str:
    """Return the reasons that have any drops, the most frequent first."""
    some = sorted(((n, why) for why, n in drops.items() if n), reverse=True)
    return ", ".join(f"{why} {n}" for n, why in some)


def _rate(key: str, now: Mapping[str, Any], before: Mapping[str, Any] | None, s: float) -> str:
    if before is None or s <= 0:
        return "-"
    return si((now[key] - before[key]) / s)


def tables(now: Sample, before: Sample | None = None) -> RenderableType:
    """Return ports, functions and workers as tables; with rates and costs since `before`."""
    live = before is not None
    old = {part: before.counts[part] if before else {} for part in ("ports", "functions")}
    elapsed_s = now.at_s - before.at_s if before else 0.0
    next_hops = now.counts.get("next_hops") or {}
    return Group(
        _ports(now.counts, old["ports"], elapsed_s, live),
        *_next_hops(next_hops),
        "",
        _functions(now.counts, old["functions"], elapsed_s, live),
        "",
        _workers(now.counts, before.counts if before else None),
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        left = name in ("port", "next hop", "function", "type", "kind", "part", "drops")
        table.add_column(name, justify="left" if left else "right", no_wrap=name != "drops")
    return table


def _ports(counts: Counts, old: Mapping[str, Any], elapsed_s: float, live: bool) -> Table:
    rates = ["rx/s", "tx/s"] if live else []
    table = _table(
        "port", "kind", "rx packets", "tx packets", "rx bytes", "tx bytes", *rates, "drops"
    )
    for name, port in counts["ports"].items():
        row = [str(port[key]) for key in ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes")]
        if live:
            row += [_rate(k, port, old.get(name), elapsed_s) for k in ("rx_packets", "tx_packets")]
        table.add_row(name, port["kind"], *row, drops_text(port["drops"]))
    return table


def _next_hops(next_hops: Mapping[str, Any]) -> list[RenderableType]:
    """Return the table of next hops and a space before it; nothing where there are none."""
    compressed = (
        ["bytes left"] if any("compressed" in next_hop for next_hop in next_hops.values()) else []
    )
    table = _table(
        *("next hop", "port", "packets", "frames", "packets/frame", "min .. median .. max"),
        *compressed,
    )
    for name, next_hop in next_hops.items():
        ratio = f"{next_hop['packets'] / next_hop['frames']:.2f}" if next_hop["frames"] else "-"
        sizes = sizes_text(next_hop["sizes"])
        row = [
            name,
            next_hop["port"],
            str(next_hop["packets"]),
            str(next_hop["frames"]),
            ratio,
            sizes,
        ]
        table.add_row(*row, *([_bytes_left(next_hop.get("compressed"))] if compressed else []))
    return ["", table] if next_hops else []


def _bytes_left(compressed: Mapping[str, int] | None) -> str:
    """Return what share of the bytes of convoys compression left."""
    if not compressed or compressed["bytes_before"] == 0:
        return "-"
    return f"{compressed['bytes_after'] / compressed['bytes_before']:.0%}"


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Return the fewest, the median and the most packets of a frame."""
    numbers = sorted((int(size), count) for size, count in sizes.items())
    frames, seen = sum(sizes.values()), 0
    for size, count in numbers:
        seen += count
        if 2 * seen >= frames:
            return f"{numbers[0][0]} .. {size} .. {numbers[-1][0]}"
    return "-"


def _functions(counts: Counts, old: Mapping[str, Any], elapsed_s: float, live: bool) -> Table:
    rates = ["packets/s"] if live else []
    fates = [
        fate
        for fate in ("originated", "absorbed", "held")
        if any(function[fate] for function in counts["functions"].values())
    ]
    parts = ["part"] if any("part" in function for function in counts["functions"].values()) else []
    table = _table(
        "function", "type", *parts, "packets", "bytes", *rates, "cycles/packet", *fates, "drops"
    )
    for name, function in counts["functions"].items():
        before = old.get(name)
        row = [function["part"]] if parts else []
        row += [str(function["packets"]), str(function["bytes"])]
        if live:
            row.append(_rate("packets", function, before, elapsed_s))
        row.append(cycles_per_packet(function, before))
        row.extend(str(function[fate]) for fate in fates)
        table.add_row(name, function["type"], *row, drops_text(function["drops"]))
    return table


def cycles_per_packet(now: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """Return a function's busy cycles per packet since `before`, - where it saw none.

    Nobody knows them of one in a switch.
    """
    if now["busy_cycles"] is None:
        return "-"
    packets = now["packets"] - (before["packets"] if before else 0)
    cycles = now["busy_cycles"] - (before["busy_cycles"] if before else 0)
    return f"{cycles / packets:.1f}" if packets > 0 else "-"


def _workers(counts: Counts, before: Counts | None) -> Table:
    parts = ["part"] if any("part" in worker for worker in counts["workers"]) else []
    moving = ["queues", "taken"] if any("queues" in each for each in counts["workers"]) else []
    table = _table(*parts, "worker", "core", "busy", "longest iteration", *moving)
    none = {"busy_cycles": 0, "total_cycles": 0}
    known = len(before["workers"]) if before else 0
    for i, worker in enumerate(counts["workers"]):
        # A part that was started again counts from 0, and may have more or fewer than before.
        old = before["workers"][i] if before and i < known else none
        if old["total_cycles"] > worker["total_cycles"]:
            old = none
        total = worker["total_cycles"] - old["total_cycles"]
        busy = worker["busy_cycles"] - old["busy_cycles"]
        share = f"{100 * busy / total:.1f} %" if total > 0 else "-"
        longest = f"{worker['longest_iteration_ns'] / 1e3:.1f} us"
        part = [worker["part"]] if parts else []
        queues = _queues(worker) if moving else []
        table.add_row(*part, str(i), str(worker["core"]), share, longest, *queues)
    return table


def _queues(worker: Mapping[str, Any]) -> list[str]:
    """Return the queues of a worker of a node in which they move, and how many came to it."""
    if "queues" not in worker:  # a part in which none does
        return ["", ""]
    names = [f"{queue['port']}:{queue['queue']}" for queue in worker["queues"]]
    return [" ".join(names) or "-", str(worker["taken"])]


def accounting_text(accounting: Mapping[str, Any], passing: bool = False) -> str:
    """Return the packet accounting in a line; passing: read while packets flow, so never exact."""
    come = _terms(accounting, ["received", "originated"])
    gone = _terms(accounting, ["sent", "dropped", "absorbed", "held"])
    if "lost" in accounting:  # of a chain in parts
        lost = max(accounting["lost"], 0) if passing else accounting["lost"]
        gone.append(f"lost between parts {lost}")
    if passing:
        return ", ".join(come + gone)
    sign = "conserved" if accounting["conserved"] else "NOT CONSERVED: packets were lost uncounted"
    return f"{' + '.join(come)} = {' + '.join(gone)}: {sign}"


def _terms(accounting: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the terms of the accounting; what only some functions do is left out where it is 0."""
    rare = ("originated", "absorbed")
    return [f"{name} {accounting[name]}" for name in names if accounting[name] or name not in rare]
