# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench compare: two runs, point by point, and their verdicts on the papers' claims."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from convoy.cli.result import Json, Result
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.report.compare import compare
from convoy.report.ledger.agreement import verdicts
from convoy.report.run_data import read


def _changes(scenario: str, lines: list[dict[str, Any]], narrow: bool) -> Table:
    """Return a table of two runs' rates in Mpps; narrow: a point's names below each other."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in (scenario,) if narrow else (scenario, "device", "frame"):
        table.add_column(head, overflow="fold")
    for head in ("one", "other", "change", "noise", "best", ""):
        table.add_column(head, justify="right", no_wrap=True)
    for line in lines:
        speed = f" {line['cpu_speed']:.0%}" if line["cpu_speed"] != 1 else ""
        names = (f"{line['setup']}{speed}", line["device"], line["size"])
        table.add_row(
            *(("\n".join(names),) if narrow else names),
            *(
                f"{'≥ ' * bound}{line[which] / 1e6:.2f}"
                for which, bound in zip(("one_pps", "other_pps"), line["lower_bounds"], strict=True)
            ),
            f"{line['change']:+.1%}",
            "-" if line["noise"] is None else f"{line['noise']:.1%}",
            "-" if line["best"] is None else f"{line['best']['change']:+.1%}",
            _verdict(line),
        )  # fmt: skip
    return table


def _verdict(line: dict[str, Any]) -> str:
    if line["host_state_changed"]:
        return "host state"
    if line["within_noise"] and not line["conclusive"]:
        return "lower bound" if any(line["lower_bounds"]) else "underpowered"
    return {True: "agrees", False: "differs", None: "too few"}[line["within_noise"]]


@dataclass(frozen=True)
class Comparison(Result):
    """Two runs, point by point, and their verdicts on claims: None where no claim was tested."""

    comparison: dict[str, Any]
    verdicts: dict[str, Any] | None

    def document(self) -> dict[str, Any]:
        """See Result."""
        tag = {"schema": "convoy.bench.compare/5"}
        return tag | self.comparison | {"verdicts": self.verdicts}

    def show(self, out: Console) -> None:
        """Print a table for each scenario, narrow where the terminal is."""
        points = self.comparison["points"]
        for scenario in dict.fromkeys(line["scenario"] for line in points):
            lines = [line for line in points if line["scenario"] == scenario]
            table = _changes(scenario, lines, False)
            if Measurement.get(out, out.options, table).minimum > out.width:
                table = _changes(scenario, lines, True)
            out.print(table)
        out.print(self.comparison["summary"], markup=False, soft_wrap=False)
        if self.verdicts is not None:
            out.print(self.verdicts["summary"], markup=False, soft_wrap=False)


def command(
    one: Annotated[Path, typer.Argument(help="A run's folder.")],
    other: Annotated[Path, typer.Argument(help="Another one's.")],
    ledger: Annotated[
        Path,
        typer.Option("--claims", help="The papers' claims.", show_default="scenarios/claims.yaml"),
    ] = LEDGER,
    as_json: Json = False,
) -> Result:
    """Compare two runs point by point, and their verdicts: what differs significantly."""
    first, second = read([one]), read([other])
    return Comparison(compare(first, second), verdicts(first, second, ledger, SCENARIOS))
