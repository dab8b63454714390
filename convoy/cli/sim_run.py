# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim run: one topology."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from convoy.cli.result import Json, PrintedDocument, Result
from convoy.cli.sim_options import (
    INTERRUPTED,
    Document,
    EngineOption,
    ReportOption,
    SeedOption,
    SetOption,
    assignment,
    bars,
    engine_of,
    remark,
)
from convoy.network.simulate import open_topology
from convoy.sim import engine as engines
from convoy.sim.resolve import Network, resolve

LINKS_SHOWN = 40


def _table(name: str, *numbers: str) -> Table:
    table = Table()
    table.add_column(name, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


@dataclass(frozen=True)
class Simulated(Result):
    """One simulation."""

    network: Network
    result: Document

    @property
    def exit_code(self) -> int:
        """130 where it was interrupted."""
        return 0 if self.result["complete"] else INTERRUPTED

    def document(self) -> Document:
        """See Result."""
        return self.result

    def show(self, out: Console) -> None:
        """Print links, functions and sinks."""
        result = self.result
        run = result["run"]
        out.print(
            f"{result['name']}: {result['original_packets']:,} original packets in "
            f"{result['simulated_s']:g} s, seed {result['seed']}, engine {result['engine']} "
            f"({run['packets_per_cpu_s'] / 1e6:.3g} M packets per CPU second, "
            f"{run['peak_bytes'] / 1e6:.0f} MB)",
            style="bold",
        )
        links = _table("link", "frames", "packets", "per frame", "mean B", "dropped")
        for link in result["links"][:LINKS_SHOWN]:
            frames = link["frames"]
            links.add_row(
                link["name"],
                f"{frames:,}",
                f"{link['packets']:,}",
                f"{link['packets'] / frames:.2f}" if frames else "–",
                f"{link['bytes'] / frames:.1f}" if frames else "–",
                f"{link['dropped_frames']:,}",
            )
        out.print(links)
        if len(result["links"]) > LINKS_SHOWN:
            out.print(f"… {len(result['links']) - LINKS_SHOWN} more links; --json has them all")
        nodes = _table("node", "received", "sent", "dropped", "held", "busy, %", "wait, us")
        functions = [node for node in result["nodes"] if node["kind"] == "function"]
        for node in functions[:LINKS_SHOWN]:
            wait = node["mean_wait_s"]
            nodes.add_row(
                node["name"],
                f"{node['received_packets']:,}",
                f"{node['sent_packets']:,}",
                f"{node['dropped_packets']:,}",
                f"{node['held_packets']:,}",
                f"{100 * node['busy_share']:.1f}",
                "–" if wait is None else f"{1e6 * wait:.3g}",
            )
        out.print(nodes)
        if len(functions) > LINKS_SHOWN:
            out.print(f"… {len(functions) - LINKS_SHOWN} more functions; --json has them all")
        for node in result["nodes"]:
            if node["kind"] == "sink" and node["latency"]:
                latency = node["latency"]
                words = ", ".join(
                    f"{name} {1e6 * latency[key]:.4g}"
                    for name, key in (
                        ("mean", "mean_s"),
                        ("p50", "p50_s"),
                        ("p99", "p99_s"),
                        ("p99.9", "p999_s"),
                        ("max", "max_s"),
                    )
                )
                out.print(
                    f"{node['name']}: {node['delivered_packets']:,} packets delivered; "
                    f"latency in us: {words}",
                    markup=False,
                )
        for note in self.network.notes:
            out.print(f"note: {note}", markup=False, style="dim")


def run_command(
    file: Annotated[str, typer.Argument(help="Topology or network (YAML), or paper-1, paper-2.")],
    engine: EngineOption = "auto",
    aggregation: Annotated[
        bool, typer.Option(help="Without: every packet leaves every node as it came.")
    ] = True,
    seed: SeedOption = None,
    duration_s: Annotated[
        float | None, typer.Option("--duration-s", help="Default: the file's.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Of nodes: a name, or a file of `convoy bench profile`."),
    ] = None,
    changes: SetOption = None,
    report: ReportOption = None,
    network_only: Annotated[
        bool,
        typer.Option("--network", help="Print the network that convoy-sim reads; run nothing."),
    ] = False,
    as_json: Json = False,
) -> Result:
    """Simulate one topology."""
    overrides: Document = dict(assignment(text) for text in changes or [])
    if profile is not None:
        overrides["profile"] = str(Path(profile).absolute()) if Path(profile).is_file() else profile
    if duration_s is not None:
        overrides["simulate.duration-s"] = duration_s
    if seed is not None:
        overrides["simulate.seed"] = seed
    network = resolve(open_topology(file, overrides), aggregation)
    if network_only:
        return PrintedDocument(network.data)
    with bars() as bar:
        result = engines.run(network.data, engine_of(engine), bar("simulating"))
    result["notes"] = list(network.notes)
    if report is not None:
        from convoy.sim.report import write_run  # plotly takes a while to load

        write_run(result, network.notes, report)
    remark(result)
    return Simulated(network, result)
