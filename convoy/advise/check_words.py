# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The held-out check in words, and as a document."""

import math
import statistics
from typing import Any

from rich.table import Table

from convoy.advise.check import MEDIAN_MAX, Check, Choice, Compared, Delayed


def _way(one: Compared) -> str:
    if one.chain.link:
        return f"{one.kind.device}, processes, {one.chain.link}"
    if one.chain.own:
        return f"{one.kind.device}, {one.chain.own}"
    return one.kind.device


def table(result: Check) -> Table:
    """Return each held-out row beside its prediction."""
    out = Table(box=None, pad_edge=False)
    out.add_column("held-out row")
    out.add_column("way")
    for name in ("B", "cycles", "predicted", "off", "interval"):
        out.add_column(name, justify="right")
    out.add_column("inside")
    for one in result.compared:
        interval = "–" if math.isinf(one.interval) else f"± {one.interval:.1%}"
        out.add_row(
            one.name, _way(one), str(one.size), f"{one.measured_cycles:.0f}",
            f"{one.predicted_cycles:.0f}", f"{one.error:+.1%}", interval,
            "–" if math.isinf(one.interval) else "yes" if one.inside else "no",
        )  # fmt: skip
    return out


def _lost(one: Choice) -> str:
    return (
        f"{one.what}: advised {_way(one.advised)}; {_way(one.best)} carried {one.lost:.1%} more "
        f"(noise {one.noise:.1%})"
    )


def _latencies(result: Check) -> list[str]:
    """Return how far off median latencies are, at each load."""
    loads: dict[str, list[Delayed]] = {}
    for one in result.delayed:
        loads.setdefault(one.load, []).append(one)
    sentences = []
    for load, some in loads.items():
        middle = statistics.median(abs(one.error) for one in some)
        worst = max(some, key=lambda one: abs(one.error))
        sentences.append(
            f"median latency at {load}: median error {middle:.1%} over {len(some)} rows; "
            f"{sum(one.inside for one in some)} inside their 95 % intervals; worst "
            f"{worst.error:+.1%}: {worst.row.name}, {worst.row.size} B"
        )
    return sentences


def _orders(result: Check) -> list[str]:
    """Return whether ways are predicted in the order in which they measured."""
    turned = [(one, *pair) for one in result.choices for pair in one.turned]
    pairs = sum(one.pairs for one in result.choices)
    if not pairs:
        return []
    return [
        f"of {pairs} pairs of ways that differ beyond noise, {pairs - len(turned)} are predicted "
        "in the order in which they measured",
        *(
            f"{one.what}: {_way(better)} measured better than {_way(worse)}, predicted worse"
            for one, better, worse in turned
        ),
    ]


def lines(result: Check) -> list[str]:
    """Return what the check says."""
    fits = [
        f"fit: {model.kind}, packets {how}: {rows} rows, {freedom} more than unknowns, "
        + ("error not known" if math.isinf(sigma) else f"standard error {sigma:.1%}")
        for model in result.models
        for how, rows, freedom, sigma in model.fit.errors()
    ]
    refused = [f"not predicted: {name}: {why}" for name, why in result.refused]
    if not result.compared:
        return [*fits, *refused, "nothing to compare: no held-out row could be predicted"]
    with_interval = [one for one in result.compared if not math.isinf(one.interval)]
    inside = sum(one.inside for one in with_interval)
    worst = max(result.compared, key=lambda one: abs(math.log(1 + one.error)))
    beaten = [_lost(one) for one in result.beaten]
    same = sum(one.advised is one.best for one in result.choices)
    return [
        *fits,
        *refused,
        f"median error {result.median_error:.1%} (at most {MEDIAN_MAX:.0%}) over "
        f"{len(result.compared)} rows; {inside} of {len(with_interval)} inside their 95 % "
        f"intervals; worst {worst.error:+.1%}: {worst.name}, {worst.size} B",
        *_latencies(result),
        f"the advised way was the best measured one in {same} of {len(result.choices)} choices; "
        f"another one was better beyond noise in {len(beaten)}",
        *beaten,
        *_orders(result),
        "the check holds" if result.holds else "the check fails",
    ]


def document(result: Check) -> dict[str, Any]:
    """Return it as --json prints it."""
    return {
        "schema": "convoy.advice-check/2",
        "holds": result.holds,
        "median_error": round(result.median_error, 4) if result.compared else None,
        "rows": [
            {
                "row": one.name,
                "way": _way(one),
                "size": one.size,
                "cycles": round(one.measured_cycles, 2),
                "predicted": round(one.predicted_cycles, 2),
                "error": round(one.error, 4),
                "interval": None if math.isinf(one.interval) else round(one.interval, 4),
                "inside": one.inside,
            }
            for one in result.compared
        ],
        "latencies": [
            {
                "row": one.row.name,
                "way": _way(one.row),
                "size": one.row.size,
                "load": one.load,
                "p50_ns": round(one.measured_ns, 1),
                "predicted_ns": round(one.predicted_ns, 1),
                "error": round(one.error, 4),
                "interval": round(one.interval, 4),
                "inside": one.inside,
            }
            for one in result.delayed
        ],
        "choices": [
            {
                "what": one.what,
                "ways": one.ways,
                "advised": _way(one.advised),
                "best": _way(one.best),
                "lost": round(one.lost, 4),
                "noise": None if math.isinf(one.noise) else round(one.noise, 4),
                "beaten": one.beaten,
                "pairs": one.pairs,
                "pairs_turned": [[_way(better), _way(worse)] for better, worse in one.turned],
            }
            for one in result.choices
        ],
        "left_out": list(result.left_out),
        "refused": [{"row": name, "why": why} for name, why in result.refused],
    }
