# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What of a scenario must be measured so that its claims can be tested: bench run --for-claims."""

from collections.abc import Iterable, Sequence
from typing import Any

from convoy.errors import InputError
from convoy.report.ledger.load import quantities
from convoy.report.ledger.model import APPLICATIONS, Ledger, Quantity
from convoy.results.documents import Chosen
from convoy.results.scenario import Scenario

AT_SATURATION = ("saturation", "per-cpu-second", "cycles")
AT_FIXED_RATES = (
    "latency-p50", "latency-p99", "latency-functions", "latency-ports", "lost", "frames",
    "loss-period",
)  # fmt: skip


def scenarios(ledger: Ledger, there: Iterable[str]) -> list[str]:
    """Return the names of those scenarios that claims are about, in the ledger's order."""
    known = set(there)
    return list(dict.fromkeys(c.scenario for c in ledger.claims if c.scenario in known))


def needed(ledger: Ledger, name: str, scenario: Scenario) -> tuple[Scenario, tuple[Chosen, ...]]:
    """Return what is left of a scenario, and its points, if only claims are to be tested.

    Raises InputError where there is no claim about it.
    """
    wanted = [q for c in ledger.claims if c.scenario == name for q in quantities(c)]
    if not wanted:
        have = ", ".join(dict.fromkeys(claim.scenario for claim in ledger.claims))
        raise InputError(
            f"--for-claims: no claim is about scenario '{name}'; leave it out, or give some of: "
            f"{have}"
        )
    points = _points(wanted, scenario)
    setups = {point.setup for point in points}
    sizes = {size for point in points for size in point.sizes}
    speeds = {point.cpu_speed for point in points}
    devices = {point.device for point in points}
    metrics = {q.metric for q in wanted}
    fixed = {q.pps for q in wanted if q.pps is not None}
    changed: dict[str, Any] = {
        "setups": {key: spec for key, spec in scenario.setups.items() if key in setups},
        "devices": _kept(scenario.devices, devices),
        "sizes": _kept(scenario.sizes, sizes) or scenario.sizes,
        "cpu_speeds": _kept(scenario.cpu_speeds, speeds) or scenario.cpu_speeds,
        "latency": _kept(scenario.latency, {q.load for q in wanted}),
        "rates_pps": _kept(scenario.rates_pps, fixed),
        "in_memory": _kept(scenario.in_memory, _parts(wanted, "in-memory")),
        "simulated": _kept(scenario.simulated, _parts(wanted, "simulated")),
        "compare": tuple(c for c in scenario.compare if {c.setup, c.over} <= setups),
        "targets": tuple(target for target in scenario.targets if target.setup in setups),
    }
    if not metrics & set(AT_SATURATION):
        changed["saturation"] = 0
    if all(_without_search(q) for q in wanted):
        changed["search"] = False
    if scenario.applications is not None:
        run = _kept(scenario.applications.run, metrics)
        by_size = {q.size for q in wanted if q.metric in APPLICATIONS and q.size is not None}
        only = {"run": run, "setups": None, "sizes": _kept(scenario.applications.sizes, by_size)}
        changed["applications"] = scenario.applications.model_copy(update=only) if run else None
    return scenario.model_copy(update=changed), points


def _without_search(quantity: Quantity) -> bool:
    """Return whether no search is needed: rates, latency at a share of them, the busiest trial."""
    if quantity.part is not None or quantity.metric in APPLICATIONS:
        return True
    if quantity.metric in AT_FIXED_RATES:
        return quantity.load is None
    return quantity.metric in ("saturation", "per-cpu-second")


def _points(wanted: Sequence[Quantity], scenario: Scenario) -> tuple[Chosen, ...]:
    """Return the points that quantities name, in the scenario's order."""
    packets: dict[tuple[str, str, float], set[str]] = {}
    served: dict[tuple[str, str, float], set[str]] = {}
    for one in wanted:
        if one.part is not None:
            continue
        key = one.setup or "", one.device or "", one.cpu_speed or 1.0
        if one.metric in APPLICATIONS:
            served.setdefault(key, set()).add(one.metric)
        else:
            size = scenario.sizes[0] if one.size is None else one.size
            packets.setdefault(key, set()).add(str(size))
    sizes = tuple(map(str, scenario.sizes))
    run = scenario.applications.run if scenario.applications is not None else ()
    return tuple(
        Chosen(
            setup=key[0],
            device=key[1],
            cpu_speed=key[2],
            sizes=_kept(sizes, packets.get(key, ())),
            applications=_kept(run, served.get(key, ())),
        )
        for key in dict.fromkeys((*packets, *served))
    )


def _parts(wanted: Sequence[Quantity], metric: str) -> set[str]:
    return {q.part.what for q in wanted if q.part is not None and q.metric == metric}


def _kept(values: Sequence[Any], wanted: Iterable[Any]) -> tuple[Any, ...]:
    """Return those of the values that are wanted, in their order."""
    some = set(wanted)
    return tuple(value for value in values if value in some or str(value) in some)
