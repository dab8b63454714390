# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is expected of a chain, in words and as a document, with the rows that it rests on."""

import math
from collections.abc import Sequence
from typing import Any

from convoy.advise.choose import HEADROOM
from convoy.advise.day import Day
from convoy.advise.fit import Basis, Prediction
from convoy.advise.predict import Planned
from convoy.advise.servers import Node

ROWS_SHOWN = 4
WAYS_SHOWN = 5
NOTHING = 0.5  # cycles: noise


def mpps(rate_pps: float) -> str:
    """Return a rate in Mpps, three digits."""
    value = rate_pps / 1e6
    return (
        f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value < 100 else f"{value:.0f}"
    )


def cores(count: int) -> str:
    """Return a number of cores."""
    return f"{count} core{'s' * (count > 1)}"


def interval(low: float, high: float, error: float) -> str:
    """Return a 95 % interval of rates."""
    if math.isinf(error):
        return "how well is not known: no more rows than costs"
    return f"{mpps(low)} to {mpps(high)} in 95 of 100 cases"


def _rows(basis: Sequence[Basis]) -> str:
    shown = "; ".join(map(str, basis[:ROWS_SHOWN]))
    more = len(basis) - ROWS_SHOWN
    return f"{shown}; and {more} more rows (--json has all)" if more > 0 else shown


def _sizes(prediction: Prediction) -> str:
    if len(prediction.sizes) < 2:
        return ""
    *some, last = map(str, prediction.sizes)
    return f"; by rows of {', '.join(some)} and {last} B"


def _limit(node: Node) -> str:
    prediction = node.prediction
    parts = sorted(prediction.parts, key=lambda part: -part[1])
    costs = ", ".join(f"{name} {cycles:.0f}" for name, cycles in parts if cycles >= NOTHING)
    sizes = _sizes(prediction)
    each = f" ({costs})" if costs else ""
    return f"the core: {prediction.cycles:.0f} cycles a packet{each}{sizes}"


def _rate(one: Planned) -> str:
    node = one.narrowest
    where = f"{cores(node.cores)} of its slowest server" if one.servers > 1 else cores(node.cores)
    each = " a core" if node.cores > 1 else ""
    frames = ""
    if one.way.fills:
        many = ", ".join(f"{each.chain.packets:.3g}" for each in one.nodes[1:])
        frames = (
            f"; frames between have {many} packets under it, and these cores carry "
            f"{mpps(one.limit_pps)} Mpps at most"
        )
    return (
        f"{mpps(node.rate_pps)} Mpps{each} at {one.model.kind.basis}, "
        f"{interval(node.low_pps, node.high_pps, one.error)}; "
        f"the load is {node.busy:.0%} of {where}{frames}"
    )


def _latency(one: Planned) -> str:
    loads = one.latency()
    if not loads:
        return "not measured"
    cables = ", without the cables" if one.servers > 1 else ""
    if one.way.wait_us:
        cables += f" and up to {one.way.wait_us:g} us of waiting at each server but the last"
    return "; ".join(
        f"median {ns / 1e3:.1f} us at {load}, give or take {error:.0%}{cables}"
        for load, ns, error in loads
    )


def _cores(one: Planned) -> str:
    if not one.scaled:
        return cores(one.cores)
    return f"at least {cores(one.cores)}"


def lines(plans: Sequence[Planned], refused: Sequence[str]) -> list[str]:
    """Return the sentences about the ways to run one chain, the best first."""
    best = plans[0]
    poll = (
        "a polling worker takes its whole core at any load; `idle: sleep` gives back what is idle"
    )
    result = [
        f"  run it as {best}: {_cores(best)}.",
        f"    rate      {_rate(best)}",
        f"    latency   {_latency(best)}",
        f"    CPU       {cores(best.cores)}, loaded to {HEADROOM:.0%} at most; {poll}",
        f"    limit     {_limit(best.narrowest)}",
        f"    rests on  {_rows(best.narrowest.prediction.basis)}",
    ]
    if best.scaled:
        result.append(
            "    several cores: not measured; so many if flows spread evenly over as many queues"
        )
    for other in plans[1:WAYS_SHOWN]:
        result.append(f"  or {other}: {_cores(other)}.")
        result.append(f"    rate      {_rate(other)}")
    if len(plans) > WAYS_SHOWN:
        result.append(
            f"  and {len(plans) - WAYS_SHOWN} more ways with as many cores or more (--json)"
        )
    return result + [f"  not predicted: {why}" for why in refused]


def document(one: Planned) -> dict[str, Any]:
    """Return a way as JSON has it."""
    return {
        "way": str(one),
        "device": one.model.kind.device,
        "cores": one.cores,
        "cores_measured": not one.scaled,
        "load": one.narrowest.busy,
        "limit_pps": round(one.limit_pps),
        "wait_us": one.way.wait_us,
        "latency": [
            {"load": load, "p50_ns": round(ns, 1), "error": round(error, 4)}
            for load, ns, error in one.latency()
        ],
        "servers": [_server(node) for node in one.nodes],
    }


def _server(node: Node) -> dict[str, Any]:
    prediction = node.prediction
    known = not math.isinf(prediction.error)
    return {
        "functions": node.chain.functions,
        "form": node.chain.form,
        "packets": round(node.chain.packets, 3),
        "link": node.chain.own.link if node.chain.own else node.chain.link,
        "placement": node.chain.own.placement if node.chain.own else "",
        "cores": node.cores,
        "load": round(node.busy, 4),
        "rate_pps": round(node.rate_pps),
        "interval_pps": [round(node.low_pps), round(node.high_pps)] if known else None,
        "cycles": round(prediction.cycles, 2),
        "parts": {name: round(cycles, 2) for name, cycles in prediction.parts},
        "interpolated": len(prediction.sizes) > 1,
        "rows": [
            {"row": one.row.name, "size": one.row.size, "cycles": round(one.row.cycles, 2),
             "share": round(one.share, 4)}
            for one in prediction.basis
        ],
    }  # fmt: skip


def day_lines(day: Day) -> list[str]:
    """Return the sentences about a day."""
    few, all_day = day.core_hours, day.peak_hours
    least = "at least " if day.most > len(day.way.nodes) else ""
    rows = [
        f"    {step.period.begin}  {step.period.rate_pps / 1e6:9.3f} Mpps  {step.cores:4} "
        f"core{' ' if step.cores == 1 else 's'}  loaded to {step.load:4.0%}"
        for step in day.steps
    ]
    return [
        f"  over the day, as {day.way}:",
        *rows,
        f"    as many as the peak needs, all day: {least}{cores(day.most)}, "
        f"{all_day:.1f} core-hours",
        f"    as many as each period needs: {few:.1f} core-hours, {1 - few / all_day:.0%} less; "
        f"{day.changes} changes a day",
        *_sleeping(day),
    ]


def _sleeping(day: Day) -> list[str]:
    """Return what workers take that sleep without packets: of our node only."""
    if day.way.model.kind.device != "convoy":
        return []
    text = f"    these with `idle: sleep`: {day.sleeping_hours:.1f} core-hours"
    if day.sleeps:
        return [f"{text}, as such a worker was measured: few packets a second keep it awake"]
    return [
        f"{text} or more, by far: few packets a second keep a worker awake; by how much says "
        "`convoy bench run elastic`, given to --results as well"
    ]


def day_document(day: Day) -> dict[str, Any]:
    """Return a day as JSON has it."""
    return {
        "way": str(day.way),
        "periods": [
            {
                "begin": step.period.begin,
                "hours": round(step.period.hours, 4),
                "rate_pps": step.period.rate_pps,
                "cores": step.cores,
                "load": round(step.load, 4),
            }
            for step in day.steps
        ],
        "peak_core_hours": round(day.peak_hours, 3),
        "core_hours": round(day.core_hours, 3),
        "sleeping_core_hours": round(day.sleeping_hours, 3),
        "sleeping_measured": day.sleeps,
        "changes": day.changes,
        "cores_measured": day.most <= len(day.way.nodes),
    }
