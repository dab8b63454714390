# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim: simulate chains of functions, small and large."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from convoy.cli.console import EXIT_CODES, console, messages, print_json
from convoy.errors import InputError
from convoy.sim import engine as engines
from convoy.sim import paper, sweep
from convoy.sim.load import open_topology
from convoy.sim.resolve import Network, resolve

app = typer.Typer(
    help="Simulate chains of functions: what travels on each link, how long, how loaded.",
    no_args_is_help=True,
)

Json = dict[str, Any]
ENGINES = ("auto", "feed-forward", "event-heap", "ns3")

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="auto: feed-forward, or event-heap when there is a cycle. Or one of: "
        "feed-forward, event-heap, ns3.",
    ),
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Default: the file's.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Also write an HTML page with plots.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change the file: functions.fw.instances=8. May be repeated."),
]


def _engine(name: str) -> engines.Engine:
    if name not in ENGINES:
        raise InputError(f"--engine '{name}': give one of {', '.join(ENGINES)}")
    return name  # type: ignore[return-value]


@contextmanager
def _bars() -> Iterator[Callable[[str], engines.Progress]]:
    """Progress on a terminal's stderr; nothing elsewhere."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[packets]} packets"),
        TimeRemainingColumn(),
        console=messages(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )

    def bar(title: str) -> engines.Progress:
        task = bars.add_task(title, total=1.0, packets="0")
        return lambda share, packets: bars.update(task, completed=share, packets=f"{packets:,}")

    with bars:
        yield bar


def _finish(result: Json) -> None:
    """An interrupted run was shown as far as it came; it ends with 130."""
    if not result["complete"]:
        messages().print(
            f"interrupted: partial result, {result['simulated_s']:g} of "
            f"{result['duration_s']:g} s simulated",
            style="yellow",
        )
        raise typer.Exit(130)


@app.command("run", epilog=EXIT_CODES)
def run_command(
    file: Annotated[str, typer.Argument(help="Topology (YAML), or paper-1, paper-2.")],
    engine: EngineOption = "auto",
    aggregation: Annotated[
        bool, typer.Option(help="Without: every packet leaves every node as it came.")
    ] = True,
    seed: SeedOption = None,
    duration_s: Annotated[
        float | None, typer.Option("--duration-s", help="Default: the file's.")
    ] = None,
    changes: SetOption = None,
    report: ReportOption = None,
    network_only: Annotated[
        bool,
        typer.Option("--network", help="Print the network that convoy-sim reads; run nothing."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate one topology."""
    overrides: Json = dict(_assignment(text) for text in changes or [])
    if duration_s is not None:
        overrides["simulate.duration-s"] = duration_s
    if seed is not None:
        overrides["simulate.seed"] = seed
    network = resolve(open_topology(file, overrides), aggregation)
    if network_only:
        print_json(network.data)
        return
    with _bars() as bar:
        result = engines.run(network.data, _engine(engine), bar("simulating"))
    result["notes"] = list(network.notes)
    if report is not None:
        from convoy.sim.report import write_run  # plotly takes a while to load

        write_run(result, network.notes, report)
    if as_json:
        print_json(result)
    else:
        _render(network, result)
    _finish(result)


def _assignment(text: str) -> tuple[str, Any]:
    from convoy.chain.text import parse

    place, equals, value = text.partition("=")
    if not equals or not place:
        raise InputError(f"--set '{text}': write PLACE=VALUE, such as functions.fw.instances=8")
    return place, parse(value.encode(), f"--set {place}").data


LINKS_SHOWN = 40


def _table(name: str, *numbers: str) -> Table:
    table = Table()
    table.add_column(name, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _render(network: Network, result: Json) -> None:
    out = console()
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
    for note in network.notes:
        out.print(f"note: {note}", markup=False, style="dim")


@app.command("paper", epilog=EXIT_CODES)
def paper_command(
    engine: EngineOption = "auto",
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    duration_s: Annotated[
        float, typer.Option("--duration-s", help="Counts are shown per second.")
    ] = 1.0,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Another aggregation profile, e.g. paper-table2."),
    ] = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tables 4 and 5 of the PA-Flow paper, simulated, beside the paper's columns."""
    with _bars() as bar:
        found = paper.compare(duration_s, seed, _engine(engine), profile, bar)
    if report is not None:
        from convoy.sim.report import write_paper

        write_paper(found, report)
    if as_json:
        print_json(_paper_json(found, duration_s, seed))
    else:
        for comparison in found:
            _render_comparison(comparison)
        console().print(paper.DERIVED, markup=False)
    for comparison in found:
        for result in comparison.results.values():
            _finish(result)


def _paper_json(found: list[paper.Comparison], duration_s: float, seed: int) -> Json:
    return {
        "schema": "convoy.sim.paper/1",
        "duration_s": duration_s,
        "seed": seed,
        "derived": paper.DERIVED,
        "tables": [
            {
                "title": c.table.title,
                "topology": c.table.topology,
                "rows": [{**vars(row), "deviation": row.deviation} for row in c.rows],
                "saved_per_packet": c.saved_per_packet,
                "saved_by_cells": c.saved_by_cells,
                "paper_saved_per_packet": c.paper_saved_per_packet,
                "paper_saved_by_cells": c.paper_saved_by_cells,
                "notes": list(c.notes),
                "engines": {mode: result["engine"] for mode, result in c.results.items()},
                "complete": all(result["complete"] for result in c.results.values()),
                "run": {mode: result["run"] for mode, result in c.results.items()},
            }
            for c in found
        ],
    }


def _render_comparison(comparison: paper.Comparison) -> None:
    out = console()
    out.print(comparison.table.title, style="bold")
    table = Table("mode", "link", "what", "paper", "simulated", "deviation")
    for column in table.columns[3:]:
        column.justify = "right"
    for row in comparison.rows:
        digits = ",.2f" if row.unit == "bytes" else ",.0f"
        table.add_row(
            row.mode,
            row.link,
            row.what,
            f"{row.paper:{digits}}",
            f"{row.ours:{digits}}",
            f"{100 * row.deviation:+.1f} %",
        )
    out.print(table)
    out.print(
        "fewer packets on the sink's link, per original packet: "
        f"{100 * comparison.saved_per_packet:.1f} % "
        f"(paper: {100 * comparison.paper_saved_per_packet:.1f} %); by the table's cells: "
        f"{100 * comparison.saved_by_cells:.1f} % "
        f"(paper: {100 * comparison.paper_saved_by_cells:.1f} %)",
        markup=False,
    )
    for note in comparison.notes:
        out.print(f"note: {note}", markup=False, style="dim")
    out.print()


@app.command("sweep", epilog=EXIT_CODES)
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
    as_json: JsonOption = False,
) -> None:
    """Simulate combinations of parameters, each with several seeds."""
    parameters = {}
    for text in changes or []:
        place, value = _assignment(text)
        values = text.partition("=")[2].split(",") if isinstance(value, str) else [value]
        parameters[place] = [_assignment(f"{place}={v}")[1] for v in values]
    todo = sweep.points(file, parameters, _seeds(seeds))
    with _bars() as bar:
        told = bar(f"{len(todo)} simulations")
        count = len(sweep.done(out).keys() & {point.key for point in todo})
        packets = 0

        def one_more(result: Json) -> None:
            nonlocal count, packets
            count += 1
            packets += result["original_packets"]
            told(count / len(todo), packets)

        results = sweep.sweep(todo, out, _engine(engine), workers, scheduler, one_more)
    if as_json:
        print_json({"schema": "convoy.sim.sweep/1", "file": str(out), "results": results})
    else:
        _render_sweep(results, list(parameters), out)


def _seeds(text: str) -> list[int]:
    try:
        found: list[int] = []
        for part in text.split(","):
            first, dash, last = part.partition("-")
            found += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        found = []
    if not found:
        raise InputError(f"--seeds '{text}': write 1-5, or 1,7,9")
    return found


def _render_sweep(results: list[Json], parameters: list[str], out: Path) -> None:
    table = Table()
    for name in parameters:
        table.add_column(name.split(".")[-1], overflow="fold")
    for heading in ("sink frames", "per frame", "p50, us", "p99, us", "dropped", "busiest, %"):
        table.add_column(heading, justify="right")
    groups: dict[tuple[str, ...], list[Json]] = {}
    for result in results:
        point = tuple(str(result["parameters"][name]) for name in parameters)
        groups.setdefault(point, []).append(result)

    def mean(group: list[Json], value: Callable[[Json], float | None]) -> str:
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
    console().print(table)
    seeds = len({result["seed"] for result in results})
    console().print(f"means over {seeds} seeds; every result: {out}", markup=False)


def _last_links(result: Json) -> list[Json]:
    sinks = {node["name"] for node in result["nodes"] if node["kind"] == "sink"}
    return [x for x in result["links"] if any(x["name"].endswith(f"-{sink}") for sink in sinks)]


def _latency_us(result: Json, key: str) -> float | None:
    found = [1e6 * node["latency"][key] for node in result["nodes"] if node.get("latency")]
    return max(found) if found else None
