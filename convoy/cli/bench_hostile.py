# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench hostile: what a guest costs its neighbours on the same worker."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from convoy.cli.console import messages
from convoy.cli.progress import Bar
from convoy.cli.result import Json, Result
from convoy.hostile.guests import bench_hostile
from convoy.results.hostile import GuestRow, HostileBench
from convoy.run.device_machine import cores

VERDICTS = {None: "", True: "met", False: "missed"}


def _cells(row: GuestRow) -> tuple[str, ...]:
    kept = [trial.kept for trial in row.trials]
    rates = sorted(trial.neighbour_pps / 1e6 for trial in row.trials)
    bound = f"{row.bound:.0%}" if row.bound is not None else ""
    return (
        row.kind,
        row.guest,
        f"{rates[0]:.2f}..{rates[-1]:.2f}",
        f"{row.kept:.1%}",
        f"{min(kept):.0%}..{max(kept):.0%}",
        row.reference,
        bound,
        VERDICTS[row.within_bound],
        f"{row.longest_us:.0f}",
    )


def table(bench: HostileBench) -> Table:
    """Return what was measured, for a terminal."""
    out = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    out.add_column("port", no_wrap=True)
    out.add_column("guest", no_wrap=True)
    heads = ("Mpps", "kept", "min..max", "of", "bound", "", "longest us")
    for head in heads:
        out.add_column(head, justify="right", no_wrap=True)
    for row in bench.rows:
        out.add_row(*_cells(row))
    return out


@dataclass(frozen=True)
class HostileGuests(Result):
    """What was measured."""

    bench: HostileBench

    def document(self) -> dict[str, Any]:
        """See Result."""
        return self.bench.model_dump(mode="json", by_alias=True)

    def show(self, out: Console) -> None:
        """Print the table, and what its numbers mean."""
        bench, host = self.bench, self.bench.host
        out.print(table(bench))
        for words in dict.fromkeys(f"{row.port}: {row.guest}: {row.what}" for row in bench.rows):
            out.print(words, markup=False)
        rounds = len(bench.rows[0].trials)
        for line in (
            f"{host.cpu}; node on core {host.node_core}, tester and guest on core "
            f"{host.tester_core}; {host.frame_bytes} B packets; median of {rounds} alternating "
            f"rounds of {host.trial_s:g} s.",
            "Mpps: of the neighbour's chain, on the worker that also serves the guest; kept: in "
            "parts of its rate in the same round with the guest named under `of`; longest us: the "
            "worker's longest poll iteration (pauses of its core count). See docs/measuring.md.",
        ):
            out.print(line, markup=False)


def command(
    port: Annotated[str | None, typer.Option(help="Only these: vhost-user,memif")] = None,
    guest: Annotated[
        str | None, typer.Option(help="Only these, separated by commas: silent,empty-tables,...")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Alternating rounds.", min=1, max=99)] = 5,
    seconds: Annotated[float, typer.Option(help="Length of a trial.", min=0.05, max=60)] = 1.0,
    as_json: Json = False,
) -> Result:
    """What a silent or hostile guest costs its neighbours on the same worker, in packets."""
    tester, node = cores()
    with Bar(messages()) as bar:
        bench = bench_hostile(
            port.split(",") if port else [],
            guest.split(",") if guest else [],
            rounds,
            seconds,
            (node, tester),
            bar.show,
        )
    return HostileGuests(bench)
