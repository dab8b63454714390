# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench quick: the example chain, measured beside dpdk-testpmd, in some minutes."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from convoy.cli.console import console, messages, print_json
from convoy.cli.options import Json, NewFolder, split
from convoy.cli.progress import Bar
from convoy.errors import InputError
from convoy.report import export
from convoy.report import quick as report
from convoy.report.rates import rows
from convoy.report.row import Row
from convoy.results.documents import Plan
from convoy.results.folder import RunFolder
from convoy.run.judge import LOSS_RATIO
from convoy.run.session import Progress, cores, execute, order_here, wanted

SIZES = ("64", "128", "256", "512", "1024", "1500", "imix")
LATENCY_LOAD = 0.5  # of the rate that was found; as scenarios/quick.yaml says


@dataclass(frozen=True)
class QuickResult:
    """A run that ended."""

    folder: Path
    host: dict[str, Any]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def report(self) -> Path:
        """Return where the page is."""
        return self.folder / "report.html"

    def as_json(self) -> dict[str, Any]:
        """Return the document that --json prints."""
        return {
            "schema": "convoy.bench.quick/3",
            "folder": str(self.folder),
            "report": str(self.report),
            "notes": list(self.notes),
            "host": self.host,
            "rows": [export.as_json(row) for row in self.rows],
        }


def quick(asked: Plan, folder: Path, progress: Progress) -> QuickResult:
    """Run the benchmark; results and the page go to the folder."""
    cores()
    kept = RunFolder(folder)
    here = order_here(asked)
    if not any(turn.device.name == "convoy" for turn in here.turns):
        raise InputError("; ".join(f"{one.device}: {one.why}" for one in here.cannot))
    kept.create(asked)
    execute(kept, asked, progress)
    return _finish(kept)


def _finish(kept: RunFolder) -> QuickResult:
    """Everything from here on is made of what was kept."""
    trials = list(kept.trials())
    host = kept.host().as_document() | {
        "tsc_hz": trials[0].tsc_hz,
        "loss_ratio": LOSS_RATIO,
        "latency_load": LATENCY_LOAD,
        "repeats": kept.plan().repeats,
    }
    found = [row for row in rows(trials, kept.searches()) if row.role == "device"]
    commands = dict.fromkeys(line for trial in trials for line in trial.commands)
    notes = dict.fromkeys(f"{one['device']}: {one['why']}" for one in host["cannot"])
    result = QuickResult(kept.path, host, tuple(found), tuple(notes))
    report.write(result.rows, host, list(commands), result.report)
    return result


def _us(value: float | None) -> str:
    return f"{value / 1e3:.1f}" if value is not None else "-"


def _cycles(value: float | None) -> str:
    return f"{value:.0f}" if value else "-"


def _named(size: str) -> str:
    return f"{size} B" if size.isdigit() else size


def _by_size(result: QuickResult) -> Table:
    sizes = list(dict.fromkeys(row.size for row in result.rows))
    out = Table("Mpps, by frame size", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for size in sizes:
        out.add_column(_named(size), justify="right")
    for name, line in report.series(result.rows).items():
        cells = {row.size: row.rate_pps for row in line}
        rates = (cells.get(size) for size in sizes)
        out.add_row(name, *(f"{rate / 1e6:.2f}" if rate else "-" for rate in rates))
    return out


def _details(result: QuickResult, size: str) -> Table:
    out = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    out.add_column(_named(size), no_wrap=True)
    for head in ("Mpps", "min..max", "Gb/s", "cyc/pkt", "in nf", "p50 us", "p99 us"):
        out.add_column(head, justify="right", no_wrap=True)
    for name, line in report.series(result.rows).items():
        for row in (row for row in line if row.size == size):
            spread = [rate / 1e6 for rate in row.rates_pps]
            out.add_row(
                name,
                f"{row.rate_pps / 1e6:.2f}" if row.rate_pps else "-",
                f"{min(spread):.2f}..{max(spread):.2f}" if spread else "-",
                f"{row.gbps:.2f}" if row.gbps else "-",
                _cycles(row.node_cycles_per_packet),
                _cycles(row.function_cycles_per_packet),
                _us(row.p50_ns),
                _us(row.p99_ns),
            )
    return out


def render(result: QuickResult) -> None:
    """Print the tables, what they say, and where the rest is."""
    out = console()
    out.print(_by_size(result))
    sizes = list(dict.fromkeys(row.size for row in result.rows))
    for size in dict.fromkeys((sizes[0], sizes[-1])):
        out.print(_details(result, size))
    for line in report.findings(result.rows, result.host):
        out.print(line.replace("**", ""), markup=False)
    host = result.host
    out.print(
        "testpmd io: dpdk-testpmd, forwarding and nothing else; all others: convoy with these "
        f"functions. A rate is the highest paced one at which at most {host['loss_ratio']:.1%} "
        f"were lost, median of {host['repeats']}; latency at {host['latency_load']:.0%} of it; "
        "cyc/pkt: busy cycles of the worker, in nf: of these in its functions. Tester on core "
        f"{host['tester_core']}, device on core {host['device_core']}, "
        f"{'with' if host['hugepages'] else 'without'} hugepages.",
        markup=False,
    )
    for note in result.notes:
        out.print(f"note: {note}", markup=False)
    out.print(f"report: {result.report}", style="bold", markup=False)


def sizes_of(texts: Sequence[str] | None) -> tuple[int | str, ...]:
    """Return the sizes that --sizes names; all without. Raises InputError."""
    found: list[int | str] = []
    for name in split("--sizes", texts) or SIZES:
        if name not in ("imix",) and not (name.isdigit() and 64 <= int(name) <= 1518):
            raise InputError(f"--sizes: '{name}' is neither 64 to 1518 (bytes) nor imix")
        found.append(int(name) if name.isdigit() else name)
    return tuple(found)


def command(
    sizes: Annotated[
        list[str] | None,
        typer.Option(help="Frame sizes with FCS, imix.  [64,128,...,1500,imix]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Rounds through all devices.", min=1, max=99)] = 3,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="One short round at 64 B: does it all work?")
    ] = False,
    output: NewFolder = None,
    as_json: Json = False,
) -> None:
    """The chain firewall, router, l2fwd on vhost-user, beside dpdk-testpmd: some minutes."""
    asked = wanted(
        ["quick"],
        repeats=1 if smoke else repeats,
        profile="quick",
        goal_names=("pdr",),
        changes={"sizes": sizes_of(sizes or (["64"] if smoke else None))},
    )
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = output or Path("results") / f"{now}-quick"
    try:
        with Bar(messages()) as bar:
            result = quick(asked, folder, lambda step: bar.show(step.what, step.done, step.of))
    except KeyboardInterrupt:
        messages().print(f"interrupted; what was measured is in {folder}", markup=False)
        raise
    print_json(result.as_json()) if as_json else render(result)
