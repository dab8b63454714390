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
from convoy.results.nf import FunctionRow, NfBench
from convoy.run.in_memory import bench_nf

# Cycles per packet that we aim at, by function and entries, flows or bytes. Those of router,
# firewall and stateful are for a core that runs at its TSC's 2.5 GHz or so.
TARGETS = {
    ("l2fwd", 0): 10,
    ("router", 10): 12,
    ("router", 1_000_000): 25,
    ("firewall", 10): 50,
    ("firewall", 1_000): 40,
    ("firewall", 100_000): 120,
    ("chain", 10): 80,
    ("nat64", 64): 50,
    ("vpn", 64): 200,
    ("vpn-aggfrag", 64): 100,
    ("stateful", 65_536): 60,
    ("stateful", 10_000_000): 110,
}
# What a function is compared with where that has another name.
REFERENCES = {
    "balancer": "reference-nat",
    "classifier": "reference-firewall",
    "ids": "raw-ids",
    "vpn": "raw-vpn",
    "vpn-aggfrag": "raw-vpn",
}


def _cells(bench: NfBench, row: FunctionRow) -> list[str]:
    """Return what all rows have: own, min..max, target, with path, of ref."""
    own, whole = row.cycles_per_packet, row.with_path_cycles_per_packet
    name = REFERENCES.get(row.function, f"reference-{row.function}")
    reference = bench.like(row, name)
    target = TARGETS.get((row.function, row.flows or row.bytes or row.entries))
    return [
        f"{own.median:.1f}",
        f"{own.min:.1f}..{own.max:.1f}",
        f"{target}" if target is not None else "",
        f"{whole.median:.1f}" if whole is not None else "",
        f"{row.whole.median / reference.whole.median:.0%}" if reference else "",
    ]


HEADS = ("own", "min..max", "target", "with path", "of ref.")


def _table(*heads: str) -> Table:
    out = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    out.add_column("cycles per packet", no_wrap=True)
    for head in heads:
        out.add_column(head, justify="right", no_wrap=True)
    return out


def _name(row: FunctionRow) -> str:
    if row.patterns is not None:
        return f"{row.function}, {row.patterns} patterns"
    return row.function if row.bytes is None else f"{row.function}, {row.bytes} B"


def table(bench: NfBench) -> Table:
    """Return what was measured without flows, for a terminal."""
    out = _table("entries", *HEADS)
    for row in bench.results:
        if row.flows is None:
            out.add_row(_name(row), str(row.entries or ""), *_cells(bench, row))
    return out


def flows_table(bench: NfBench) -> Table:
    """Return what was measured of functions that remember flows, for a terminal."""
    out = _table("flows", *HEADS[:3], HEADS[4], "B/flow", "Mflow/s")
    for row in bench.results:
        if row.flows is None:
            continue
        cycles = row.cycles_per_packet
        _, _, target, _, of_reference = _cells(bench, row)
        table_bytes, functions_bytes = row.table_bytes_per_flow, row.functions_bytes_per_flow
        out.add_row(
            row.function,
            str(row.flows),
            f"{cycles.median:.0f}",
            f"{cycles.min:.0f}..{cycles.max:.0f}",
            target,
            of_reference,
            f"{table_bytes or 0:.0f} + {functions_bytes or 0:.0f}",
            f"{(row.new_flows_per_second or 0) / 1e6:.2f}",
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
        if any(row.flows is None for row in bench.results):
            out.print(table(bench))
        if any(row.flows is not None for row in bench.results):
            out.print(flows_table(bench))
        repeats = len(bench.results[0].cycles_per_packet.repeats) if bench.results else 0
        for line in (
            f"{host.cpu}, {host.tsc_hz / 1e9:.2f} GHz TSC, {host.dpdk}, "
            f"{'hugepages' if host.hugepages else 'no hugepages'}; "
            f"{host.frame_bytes} B packets, bursts of {host.burst_packets}, "
            f"{host.packets} packets; {host.working_set_bytes >> 10} KiB touched, "
            f"L2 is {host.l2_bytes >> 10} KiB; median of {repeats} alternating repeats.",
            "entries: routes and rules. own: the function's, as the node counts them (the path has "
            "prefetched its packets); with path: from received buffers to verdicts; reference-*: "
            "plain DPDK on the same packets, whole; raw-vpn: the cipher alone on as many bytes; "
            "raw-ids: Hyperscan alone on the same payloads; of ref.: function with path, compared "
            "with that. flows: that are known; B/flow: of the flow table + of functions; Mflow/s: "
            "new flows per second; stateful: firewall, nat, balancer, policer. See "
            "docs/measuring.md.",
        ):
            out.print(line, markup=False)


def _numbers(option: str, texts: list[str] | None) -> list[int]:
    words = split(option, texts) or ()
    try:
        return [int(word) for word in words]
    except ValueError:
        given = ",".join(words)
        raise InputError(f"{option}: '{given}' is not a list of numbers; write 10,1000") from None


def command(
    function: Annotated[
        list[str] | None, typer.Option(help="Only these, separated by commas: router,chain,...")
    ] = None,
    entries: Annotated[
        list[str] | None,
        typer.Option(help="Routes and rules, with commas.  [10,1000,100000; routes: 1000000]"),
    ] = None,
    flows: Annotated[
        list[str] | None,
        typer.Option(help="Flows that are known, with commas.  [65536,10000000]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Alternating repeats.", min=1, max=1001)] = 11,
    core: Annotated[int | None, typer.Option(help="Core to run on; default: the first.")] = None,
    as_json: Json = False,
) -> Result:
    """Cycles per packet of each function, in memory, beside plain DPDK doing the same job."""
    with Bar(messages()) as bar:
        bench = bench_nf(
            list(split("--function", function) or ()),
            _numbers("--entries", entries),
            _numbers("--flows", flows),
            repeats,
            core,
            bar.show,
        )
    return FunctionCosts(bench)
