# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's report for programs and for plain text: JSON, CSV, Markdown."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from convoy.report import applications
from convoy.report.compared import compared
from convoy.report.findings import findings
from convoy.report.paflow import memory_table
from convoy.report.paflow_summary import summary
from convoy.report.page import Cell, Column, Value, write_number
from convoy.report.papers import beside
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.report.scenario import (
    GOALS,
    LATENCY_COLUMNS,
    delay_values,
    environment,
    rate_columns,
    rate_values,
)

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
        "port_kind": row.port_kind,
        "goals_pps": {name: list(rates.values()) for name, rates in row.goals.items()},
        "rate_pps": row.rate_pps,
        "rate_at_least": row.at_least,
        "gbps": row.gbps,
        "overload_pps": row.overload_pps,
        "cycles_per_packet": row.node_cycles_per_packet,
        "cycles_source": row.cycles_source,
        "function_cycles_per_packet": row.function_cycles_per_packet,
        "cpu_share": row.cpu_share,
        "core_share": row.core_share,
        "full_speed": {
            "pps": _all(row.full_speed_pps),
            "per_cpu_s": _all(row.per_cpu_s),
            "cycles_per_packet": _all(row.full_speed_cycles),
            "busy_share": _all(row.full_speed_busy),
        },
        "latency_ns": {
            load: {f"p{100 * q:g}": delay.quantile(q) for q in (0.5, 0.9, 0.99, 0.999, 1.0)}
            for load, delay in half.items()
        },
        "packets_per_frame": {
            load: delay.frames.per_frame for load, delay in half.items() if delay.frames
        },
        "lost_ratio": {load: delay.lost_ratio for load, delay in half.items()},
        "lost": dict(row.lost),
        "trials": row.trials,
        "excluded": row.spoilt,
        "machine_ns": dict(row.machine),
        "slow_rounds": len(row.slow),
        "slow_rounds_left_out": row.left_out,
        "unoffered": row.unoffered,
        "irregular": list(row.irregular),
        "failed": list(row.failed),
        "notes": list(row.notes),
    }


def _all(rounds: Mapping[int, tuple[float, ...]]) -> list[float]:
    return [value for values in rounds.values() for value in values]


def document(run: Run) -> dict[str, Any]:
    """Return everything as one JSON document."""
    return {
        "schema": "convoy.report/2",
        "findings": findings(run),
        "noise_floor": {name: run.noise_floor(name) for name in run.scenarios},
        "rows": [as_json(row) for row in run.rows],
        "claims": claims(run),
        "compared": [one.as_json() for name in run.scenarios for one in compared(run, name)],
        "in_memory": [one.model_dump(mode="json", by_alias=True) for one in run.memory],
        "applications": [applications.as_json(row) for row in run.applications],
        "cannot": [one.as_json() for one in run.cannot],
        "hosts": [host.as_document() for host in run.hosts],
    }


def claims(run: Run) -> list[dict[str, Any]]:
    """Return PA-Flow's claims beside this run, a line each; empty: no scenario of its."""
    table = summary(run)
    names = ("what", "unit", "paper", "here", "from")
    return [
        {name: v.value if isinstance(v, Cell) else v for name, v in zip(names, row, strict=True)}
        | {"text": text_of(row[3])}
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

    Names come from scenarios and results that somebody else may have written. Numbers stay numbers.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_BEGINS) else value


def text_of(value: Value) -> str:
    """Return a value as plain text."""
    cell = value if isinstance(value, Cell) else Cell(value)
    if cell.value is None or (isinstance(cell.value, float) and not math.isfinite(cell.value)):
        return "–"
    plain = cell.value if isinstance(cell.value, str) else write_number(cell.value)
    return (cell.text or plain).replace("|", "/").strip()


def _markdown_table(columns: Sequence[Column | str], rows: Sequence[Sequence[Value]]) -> str:
    heads = [Column(column) if isinstance(column, str) else column for column in columns]
    names = [f"{head.name} {head.unit}".strip() for head in heads]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(map(text_of, row)) + " |" for row in rows]
    return "\n".join(lines)


def markdown(run: Run) -> str:
    """Return the findings and tables as Markdown."""
    parts = ["# What was found", "\n".join(f"- {line}" for line in findings(run))]
    table = summary(run)
    if table is not None:
        parts += [f"## {table.title}", _markdown_table(table.columns, table.rows)]
    for name in run.scenarios:
        mine = run.of(name)
        parts.append(f"## {run.scenarios[name].title} ({name})")
        in_memory = memory_table(run, name)
        papers = beside(run, name) if mine or run.served(name) else ()
        for table in (*((in_memory,) if in_memory else ()), *papers):
            parts += [table.title, _markdown_table(table.columns, table.rows), *table.says]
        if any(row.rates_pps for row in mine):
            parts.append(
                _markdown_table(rate_columns(run), [rate_values(run, row) for row in mine])
            )
        used = run.served(name)
        if used:
            rows = [applications.values(row) for row in used]
            parts.append(_markdown_table(applications.COLUMNS, rows))
        delays = [line for row in mine for line in delay_values(row)]
        if delays:
            parts.append(_markdown_table(LATENCY_COLUMNS, delays))
    parts.append("## Environment")
    parts += [_markdown_table(["what", "here"], environment(host)) for host in run.hosts]
    return "\n\n".join(parts) + "\n"
