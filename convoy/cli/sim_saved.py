# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim saved: what aggregation saves on the paper's topologies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from convoy.cli.result import Json, Result
from convoy.cli.sim_options import (
    INTERRUPTED,
    Document,
    EngineOption,
    ReportOption,
    bars,
    engine_of,
)
from convoy.errors import InputError
from convoy.sim import saved


def _number(value: float | None, digits: str, scale: float = 1) -> str:
    return "–" if value is None else f"{value * scale:{digits}}"


@dataclass(frozen=True)
class Saved(Result):
    """The ways, topology by topology."""

    ways: list[saved.Way]
    load: float

    @property
    def exit_code(self) -> int:
        """130 where it was interrupted."""
        return 0 if all(way.complete for way in self.ways) else INTERRUPTED

    def document(self) -> Document:
        """See Result."""
        ways = [way.document() for way in self.ways]
        return {"schema": "convoy.sim.saved/1", "load": self.load, "ways": ways}

    def show(self, out: Console) -> None:
        """Print a row for each way."""
        table = Table("", "node", "aggregates")
        for heading in ("Mpps", "frames, %", "B/packet", "cores", "ns", "p50 us", "p99 us", "lost"):
            table.add_column(heading, justify="right", no_wrap=True)
        for way in self.ways:
            how = "no" if way.wait_us is None else f"≤ {way.wait_us:g} us"
            frames = way.frames_saved
            table.add_row(
                way.topology,
                way.node,
                how,
                f"{way.offered_pps / 1e6:.1f}",
                _number(None if frames is None else 1 - frames, ".1f", 100),
                _number(way.bytes_per_packet, ".1f"),
                f"{way.busy_cores:.2f}",
                _number(way.cpu_ns, ".1f"),
                _number(way.p50_s, ".4g", 1e6),
                _number(way.p99_s, ".4g", 1e6),
                f"{way.dropped_packets:,}",
            )
        out.print(table)
        out.print(
            "frames: of 100 packets on the links to the sink; B/packet: on the wire, with preamble "
            "and gap;\ncores: busy in all; ns: of a core, for a packet at a function; "
            "lost: packets",
            markup=False,
        )


def saved_command(
    waits: Annotated[
        str, typer.Option("--wait-us", help="Our node's bounded waits, in turn. 0: none.")
    ] = "0,5,20",
    load: Annotated[
        float, typer.Option("--load", help="Times the paper's rates. Above 0, at most 1000.")
    ] = 1.0,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="Our node's: a name, or a file that `convoy advise --profile` wrote. "
            "Default: node-epyc.",
        ),
    ] = None,
    duration_s: Annotated[float, typer.Option("--duration-s", help="Simulated.")] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    engine: EngineOption = "auto",
    report: ReportOption = None,
    as_json: Json = False,
) -> Result:
    """CPU, latency and bytes that aggregation saves on PA-Flow's topologies: its node, ours."""
    try:
        waits_us = [float(text) for text in waits.split(",")]
    except ValueError:
        raise InputError(f"--wait-us '{waits}': write 0,5,20") from None
    if not 0 < load <= 1000:
        raise InputError(f"--load {load:g}: give a number above 0, at most 1000")
    if profile is not None and Path(profile).is_file():
        profile = str(Path(profile).absolute())
    with bars() as bar:
        ways = saved.compare(waits_us, load, profile, duration_s, seed, engine_of(engine), bar)
    if report is not None:
        from convoy.sim.saved_report import write_saved  # plotly takes a while to load

        write_saved(ways, load, report)
    return Saved(ways, load)
