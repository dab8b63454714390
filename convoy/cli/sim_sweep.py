# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim sweep: parameters x seeds."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from convoy.base.files import will_write
from convoy.cli.result import Json, Result
from convoy.cli.sim_options import Document, EngineOption, assignment, bars, engine_of
from convoy.errors import InputError
from convoy.sim import sweep


@dataclass(frozen=True)
class Swept(Result):
    """The results of a sweep, in the order of its points."""

    file: Path
    parameters: tuple[str, ...]
    results: list[Document]

    def document(self) -> Document:
        """See Result."""
        schema = "convoy.sim.sweep/1"
        return {"schema": schema, "file": str(self.file), "results": self.results}

    def show(self, out: Console) -> None:
        """Print the mean over the seeds of each combination."""
        table = Table()
        for name in self.parameters:
            table.add_column(name.split(".")[-1], overflow="fold")
        for heading in ("sink frames", "per frame", "p50, us", "p99, us", "dropped", "busiest, %"):
            table.add_column(heading, justify="right")
        groups: dict[tuple[str, ...], list[Document]] = {}
        for result in self.results:
            point = tuple(str(result["parameters"][name]) for name in self.parameters)
            groups.setdefault(point, []).append(result)

        def mean(group: list[Document], value: Callable[[Document], float | None]) -> str:
            values = [x for x in map(value, group) if x is not None]
            return f"{sum(values) / len(values):,.4g}" if values else "–"

        for point, group in groups.items():
            table.add_row(
                *point,
                mean(group, lambda r: sum(link["frames"] for link in _last_links(r))),
                mean(
                    group,
                    lambda r: (
                        sum(link["packets"] for link in _last_links(r))
                        / (sum(link["frames"] for link in _last_links(r)) or 1)
                    ),
                ),
                mean(group, lambda r: _latency_us(r, "p50_s")),
                mean(group, lambda r: _latency_us(r, "p99_s")),
                mean(group, lambda r: sum(n.get("dropped_packets", 0) for n in r["nodes"])),
                mean(group, lambda r: 100 * max(n.get("busy_share", 0) for n in r["nodes"])),
            )
        out.print(table)
        seeds = len({result["seed"] for result in self.results})
        out.print(f"means over {seeds} seeds; every result: {self.file}", markup=False)


def sweep_command(
    file: Annotated[str, typer.Argument(help="Topology (YAML), or paper-1, paper-2.")],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="PLACE=VALUE,VALUE,…: functions.fw.instances=2,4. May be repeated; all "
            "combinations run. aggregation=true,false compares with and without.",
        ),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="1-5, or 1,7,9.")] = "1",
    engine: EngineOption = "auto",
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Local processes. Default: cores.")
    ] = os.cpu_count() or 1,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", help="A Dask scheduler, tcp://HOST:PORT, in their place."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Results, a line each. What it has is not run again.")
    ] = Path("results/sim-sweep.jsonl"),
    as_json: Json = False,
) -> Result:
    """Simulate combinations of parameters, each with several seeds."""
    will_write("--out", out)
    parameters = {}
    for text in changes or []:
        place, value = assignment(text)
        values = text.partition("=")[2].split(",") if isinstance(value, str) else [value]
        parameters[place] = [assignment(f"{place}={v}")[1] for v in values]
    todo = sweep.points(file, parameters, _seeds(seeds))
    with bars() as bar:
        show_progress = bar(f"{len(todo)} simulations")
        count = len(sweep.done(out).keys() & {point.key for point in todo})
        packets = 0

        def one_more(result: Document) -> None:
            nonlocal count, packets
            count += 1
            packets += result["original_packets"]
            show_progress(count / len(todo), packets)

        results = sweep.sweep(todo, out, engine_of(engine), workers, scheduler, one_more)
    return Swept(out, tuple(parameters), results)


def _seeds(text: str) -> list[int]:
    try:
        values: list[int] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            values += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        values = []
    if not values:
        raise InputError(f"--seeds '{text}': write 1-5, or 1,7,9")
    return values


def _last_links(result: Document) -> list[Document]:
    sinks = {node["name"] for node in result["nodes"] if node["kind"] == "sink"}
    return [x for x in result["links"] if any(x["name"].endswith(f"-{sink}") for sink in sinks)]


def _latency_us(result: Document, key: str) -> float | None:
    values = [1e6 * node["latency"][key] for node in result["nodes"] if node.get("latency")]
    return max(values) if values else None
