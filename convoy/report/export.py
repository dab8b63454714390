# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's report for programs: JSON and CSV."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from convoy.report import applications, changes
from convoy.report.claims import summary
from convoy.report.findings import findings
from convoy.report.gains import compared
from convoy.report.latency_stages import latency_sums
from convoy.report.ledger.page import Claims
from convoy.report.row import Row, median
from convoy.report.run_data import Run
from convoy.report.run_document import GOALS
from convoy.report.targets import reached

_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_json(row: Row) -> dict[str, Any]:
    """Return a row as JSON documents and tables of other programs take it."""
    half = {delay.load: delay for delay in row.delays}
    return {
        "scenario": row.scenario,
        "setup": row.setup,
        "run": row.run,
        "device": row.device,
        "role": row.role,
        "functions": list(row.functions),
        "cpu_speed": row.cpu_speed,
        "size": row.size,
        "capture_sha256": row.conditions.capture or None,
        "flows": row.conditions.flows,
        "connections": row.conditions.connections or None,
        "port_kind": row.port_kind,
        "goals_pps": {name: list(rates.values()) for name, rates in row.goals.items()},
        "rate_pps": row.rate_pps,
        "rate_is_lower_bound": row.lower_bound,
        "gbps": row.gbps,
        "mrr_pps": row.mrr_pps,
        "cycles_per_packet": row.node_cycles_per_packet,
        "cycles_source": row.cycles_source,
        "part_cycles_per_packet": {name: list(each) for name, each in row.part_cycles.items()},
        "function_cycles_per_packet": row.function_cycles_per_packet,
        "cpu_share": row.cpu_share,
        "busy_share": median(row.busy_shares),
        "core_share": row.core_share,
        "saturation": {
            "pps": _all(row.saturation_pps),
            "per_cpu_s": _all(row.per_cpu_s),
            "cycles_per_packet": _all(row.saturation_cycles),
            "busy_share": _all(row.saturation_busy),
        },
        "latency_ns": {
            load: {f"p{100 * q:g}": delay.quantile(q) for q in (0.5, 0.9, 0.99, 0.999, 1.0)}
            for load, delay in half.items()
        },
        "packets_per_frame": {
            load: delay.frames.per_frame for load, delay in half.items() if delay.frames
        },
        "cpu_us_per_packet": {load: delay.cpu_us_per_packet for load, delay in half.items()},
        "changes_ms": dict(changes.as_json(row)),
        "lost_ratio": {load: delay.lost_ratio for load, delay in half.items()},
        "reordered_ratio": {load: delay.reordered_ratio for load, delay in half.items()},
        "lost": dict(row.lost),
        "trials": row.trials,
        "invalid_trials": row.invalid,
        "host_state_ns": dict(row.host_state),
        "degraded_rounds": len(row.degraded),
        "degraded_rounds_excluded": row.excluded_rounds,
        "load_not_reached": row.load_not_reached,
        "irregular": list(row.irregular),
        "failed": list(row.failed),
        "notes": list(row.notes),
    }


def _all(rounds: Mapping[int, tuple[float, ...]]) -> list[float]:
    return [value for values in rounds.values() for value in values]


def document(run: Run, ledger: Claims | None = None) -> dict[str, Any]:
    """Return everything as one JSON document. ledger: what the run says of the papers' claims."""
    return {
        "schema": "convoy.report/3",
        "findings": findings(run),
        "noise_floor": {name: run.noise_floor(name) for name in run.scenarios},
        "rows": [as_json(row) for row in run.rows],
        "claims": claims(run),
        "ledger": ledger.as_json() if ledger is not None else None,
        "compared": [one.as_json() for name in run.scenarios for one in compared(run, name)],
        "targets": [one.as_json() for name in run.scenarios for one in reached(run, name)],
        "latency_sums": _latency_sums(run),
        "in_memory": [one.model_dump(mode="json", by_alias=True) for one in run.memory],
        "simulated": [one.model_dump(mode="json", by_alias=True) for one in run.simulated],
        "applications": [applications.as_json(row) for row in run.applications],
        "cannot": [one.as_json() for one in run.cannot],
        "hosts": [host.as_document() for host in run.hosts],
    }


def _latency_sums(run: Run) -> list[dict[str, Any]]:
    return [
        {"scenario": row.scenario, "setup": row.setup, "run": row.run, "device": row.device,
         "size": row.size, "load": delay.load, **one.as_json()}
        for name in run.scenarios for row, delay, one in latency_sums(run, name)
    ]  # fmt: skip


def claims(run: Run) -> list[dict[str, Any]]:
    """Return PA-Flow's claims beside this run, a line each; empty: no scenario of its."""
    table = summary(run)
    names = ("what", "unit", "paper", "here", "from")
    return [
        {name: one.value for name, one in zip(names, row, strict=True)} | {"text": row[3].written}
        for row in (table.rows if table is not None else ())
    ]


def csv_text(run: Run) -> str:
    """Return one line per row."""
    out = io.StringIO()
    lines = []
    for row in run.rows:
        flat = {k: v for k, v in as_json(row).items() if not isinstance(v, dict | list)}
        flat["functions"] = " ".join(row.functions)
        for goal in GOALS:
            flat[f"{goal}_pps"] = row.goal_pps(goal)
        lines.append({key: _no_formula(value) for key, value in flat.items()})
    writer = csv.DictWriter(out, list(lines[0]) if lines else ["scenario"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _no_formula(value: Any) -> Any:
    """Return a cell that a spreadsheet shows rather than runs (OWASP: CSV injection).

    Names come from scenarios and results of unknown origin. Numbers stay numbers.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_BEGINS) else value
