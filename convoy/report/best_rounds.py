# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two runs by their best rounds: what a machine does that nothing else disturbs (noise.py)."""

from collections.abc import Iterator, Sequence
from typing import Any

from convoy.report.noise import CLOSE, confirmed_least, confirmed_most
from convoy.report.row import Row
from convoy.report.run_data import Run


def rates(a: Row, b: Row) -> dict[str, Any] | None:
    """Return a point's highest rates (packets/s); None: one is not known."""
    if a.lower_bound or b.lower_bound:
        return None
    one, other = confirmed_most(a.rates_pps), confirmed_most(b.rates_pps)
    return _beside("pps", one, other) if one and other else None


def latencies(one: Run, other: Run) -> list[dict[str, Any]]:
    """Return every latency that both have: at each load, the lowest median of the rounds (us)."""
    return [line for a in one.rows for line in _of_point(a, other.same_point(a, a.device))]


def _of_point(a: Row, b: Row | None) -> Iterator[dict[str, Any]]:
    if a.role == "control" or b is None or a.conditions.capture != b.conditions.capture:
        return
    loads = {delay.load: delay for delay in b.delays}
    for delay in a.delays:
        same = loads.get(delay.load)
        if same is None:
            continue
        least = [confirmed_least(d.p50s_ns) for d in (delay, same)]
        known = [ns / 1000 for ns in least if ns]
        yield {
            "scenario": a.scenario, "setup": a.setup, "device": a.device, "size": a.size,
            "cpu_speed": a.cpu_speed, "load": delay.load,
            "best": _beside("p50_us", *known) if len(known) == 2 else None,
        }  # fmt: skip


def _beside(unit: str, one: float, other: float) -> dict[str, Any]:
    change = other / one - 1
    agrees = 1 / (1 + CLOSE) <= 1 + change <= 1 + CLOSE
    return {f"one_{unit}": one, f"other_{unit}": other, "change": change, "agrees": agrees}


def sentence(points: Sequence[dict[str, Any]], delays: Sequence[dict[str, Any]]) -> str:
    """Return how many agree. points, delays: with a key "best"."""
    parts = []
    for each, name in ((points, "rates"), (delays, "median latencies")):
        known = [line["best"]["agrees"] for line in each if line["best"]]
        if known:
            rest = f" ({len(each) - len(known)} more have none)" if len(known) < len(each) else ""
            parts.append(f"{sum(known)} of {len(known)} {name}{rest}")
    if not parts:
        return ""
    return (
        f"By best rounds, each confirmed by another one of its run within {CLOSE:.0%}, "
        f"{' and '.join(parts)} agree within {CLOSE:.0%}."
    )
