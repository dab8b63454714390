# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy results query: SQL over the results of many runs."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.cli.result import Json, Result
from convoy.results.database import TABLES, Answer, Database

EXAMPLES = (
    (
        "rates of all runs, the mean of their rounds",
        "SELECT run, device, setup, size, avg(pdr_pps)/1e6 AS Mpps FROM points "
        "WHERE role='device' GROUP BY 1,2,3,4 ORDER BY setup, size, Mpps DESC",
    ),
    (
        "cycles per packet by processor",
        "SELECT cpu, device, functions, min(cycles_per_packet) FROM trials JOIN runs USING (run) "
        "WHERE verdict='passed' GROUP BY 1,2,3",
    ),
    (
        "what failed, and why",
        "SELECT run, scenario, setup, device, why FROM points WHERE outcome='failed'",
    ),
)
WIDTH = 78


def _lines(text: str, indent: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def help_text() -> str:
    """Return the help: what the tables are, and examples."""
    parts = ["Ask results of many runs by SQL (SQLite's). Folders are read, never written."]
    parts.append("\b\nTables; the first column of each is run, the folder's name:")
    for table in TABLES:
        columns = _lines(", ".join(table.columns), "    ")
        parts.append(f"\b\n{_lines(f'{table.name}: {table.says}', '  ')}\n{columns}")
    for says, sql in EXAMPLES:
        parts.append(f"\b\nExample: {says}\n{_lines(sql, '    ')}")
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Queried(Result):
    """Rows."""

    answer: Answer

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.results.query/1",
            "columns": list(self.answer.columns),
            "rows": [list(row) for row in self.answer.rows],
        }

    def show(self, out: Console) -> None:
        """Print aligned columns; numbers to the right."""
        cells = [list(self.answer.columns)]
        cells += [[_shown(value) for value in row] for row in self.answer.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [
            any(isinstance(row[i], int | float) for row in self.answer.rows)
            for i in range(len(widths))
        ]
        for row in cells:
            padded = (
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers, strict=True)
            )
            out.print("  ".join(padded).rstrip(), markup=False)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e5 else f"{value:.5g}"
    if isinstance(value, bytes):
        return value.hex()
    return " ".join(str(value).split())


def query(
    sql: Annotated[str, typer.Argument(help="One SELECT.", show_default=False)],
    folders: Annotated[list[Path], typer.Argument(help="Runs' folders, and archives of them.")],
    as_json: Json = False,
) -> Result:
    """See help_text()."""
    return Queried(Database(folders).query(sql))
