# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench nf: cycles per packet of each network function, in memory."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from convoy.cli.console import messages
from convoy.cli.options import split
from convoy.cli.progress import Bar
from convoy.cli.result import Json, Result
from convoy.errors import InputError
from convoy.results.nf import NfBench
from convoy.run.in_memory import bench_nf

# Cycles per packet that we aim at, on a Skylake at 2.5 GHz, by function and entries.
TARGETS = {("l2fwd", 0): 10, ("router", 10): 20, ("firewall", 10): 50, ("chain", 10): 80}


def table(bench: NfBench) -> Table:
    """Return what was measured, for a terminal."""
    out = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    out.add_column("cycles per packet", no_wrap=True)
    for head in ("entries", "own", "min..max", "target", "with path", "of ref."):
        out.add_column(head, justify="right", no_wrap=True)
    for row in bench.results:
        own, whole = row.cycles_per_packet, row.with_path_cycles_per_packet
        reference = bench.row(f"reference-{row.function}", row.entries)
        target = TARGETS.get((row.function, row.entries))
        out.add_row(
            row.function,
            str(row.entries) if row.entries else "",
            f"{own.median:.1f}",
            f"{own.min:.1f}..{own.max:.1f}",
            f"{target}" if target is not None else "",
            f"{whole.median:.1f}" if whole is not None else "",
            f"{row.whole.median / reference.whole.median:.0%}" if reference else "",
        )
    return out


@dataclass(frozen=True)
class FunctionCosts(Result):
    """What was measured."""

    bench: NfBench

    def document(self) -> dict[str, Any]:
        """See Result."""
        return self.bench.model_dump(mode="json", by_alias=True, exclude_none=True)

    def show(self, out: Console) -> None:
        """Print the table, and what its numbers mean."""
        bench, host = self.bench, self.bench.host
        out.print(table(bench))
        repeats = len(bench.results[0].cycles_per_packet.repeats) if bench.results else 0
        for line in (
            f"{host.cpu}, {host.tsc_hz / 1e9:.2f} GHz TSC, {host.dpdk}, "
            f"{'hugepages' if host.hugepages else 'no hugepages'}; "
            f"{host.frame_bytes} B packets, bursts of {host.burst_packets}, {host.flows} flows; "
            f"{host.working_set_bytes >> 10} KiB touched, L2 is {host.l2_bytes >> 10} KiB; "
            f"median of {repeats} alternating repeats.",
            "entries: routes and rules. own: the function's, as the node counts them (the path has "
            "prefetched its packets); with path: from received buffers to verdicts; reference-*: "
            "plain DPDK on the same packets, whole; of ref.: function with path, compared with "
            "that. Targets are for a Skylake at 2.5 GHz. See docs/measuring.md.",
        ):
            out.print(line, markup=False)


def _numbers(texts: list[str] | None) -> list[int]:
    words = split("--entries", texts) or ()
    try:
        return [int(word) for word in words]
    except ValueError:
        given = ",".join(words)
        raise InputError(f"--entries: '{given}' is not a list of numbers; write 10,1000") from None


def command(
    function: Annotated[
        list[str] | None, typer.Option(help="Only these, separated by commas: router,chain,...")
    ] = None,
    entries: Annotated[
        list[str] | None,
        typer.Option(help="Routes and rules, with commas.  [10,1000,100000]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Alternating repeats.", min=1, max=1001)] = 11,
    core: Annotated[int | None, typer.Option(help="Core to run on; default: the first.")] = None,
    as_json: Json = False,
) -> Result:
    """Cycles per packet of each function, in memory, beside plain DPDK doing the same job."""
    with Bar(messages()) as bar:
        bench = bench_nf(
            list(split("--function", function) or ()), _numbers(entries), repeats, core, bar.show
        )
    return FunctionCosts(bench)
