# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench profile: what this node's work costs, as a profile for convoy sim."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.clock import folder_timestamp, now
from convoy.base.files import will_write, write_whole
from convoy.cli.bench_quick import sizes_of
from convoy.cli.console import messages
from convoy.cli.progress import Bar
from convoy.cli.result import Json, Result
from convoy.errors import ConvoyError
from convoy.report.packets import Frames
from convoy.report.rates import rows
from convoy.report.row import Row
from convoy.results.folder import RunFolder
from convoy.run.in_memory import FrameCost, bench_frame
from convoy.run.session import execute, wanted
from convoy.sim.costs import Costs, fit

Document = dict[str, Any]
FULL_PACKETS = 22  # of 64 bytes in a convoy of 1,500
SMALL_BYTES = 64
COSTS, RATIO = "quick", "paflow-ratio"  # scenarios
EVEN = "aggregated, even"  # the latter's setup that the profile's points are of


def _port_cycles(result: Sequence[Row]) -> dict[int, list[float]]:
    """Return the cycles of a frame that only passes, by its bytes, of all repeats."""
    return {
        int(row.size): list(row.node_cycles)
        for row in result
        if row.scenario == COSTS and not row.functions and row.size.isdigit() and row.node_cycles
    }


def _function_cycles(result: Sequence[Row]) -> dict[str, list[float]]:
    """Return the cycles that functions spent on a packet of the smallest size, of all repeats."""
    smallest = min((int(row.size) for row in result if row.size.isdigit()), default=0)
    return {
        row.functions[0]: list(row.function_cycles)
        for row in result
        if row.scenario == COSTS
        and len(row.functions) == 1
        and row.size == str(smallest)
        and row.function_cycles
    }


def _frames(result: Sequence[Row]) -> dict[str, dict[float, Frames]]:
    """Return how the node aggregated plain packets, by setup and rate."""
    return {
        row.setup: {
            delay.rate_pps: delay.frames
            for delay in sorted(row.delays, key=lambda delay: delay.rate_pps)
            if delay.frames is not None
        }
        for row in result
        if row.scenario == RATIO
    }


def profile_of(
    result: Sequence[Row], host: Document, frames: Sequence[FrameCost], name: str
) -> Document:
    """Return the profile, schema convoy.sim.profile/1. Raises ConvoyError, InputError."""
    port, functions = _port_cycles(result), _function_cycles(result)
    if len(port) < 2 or not functions:
        raise ConvoyError(
            "too few trials gave cycles per packet; see the results, and run it again on a "
            "machine that does nothing else"
        )
    costs = fit(
        host["tsc_hz"],
        {size: statistics.median(cycles) for size, cycles in port.items()},
        {"none": 0.0} | {n: statistics.median(cycles) for n, cycles in functions.items()},
        {one.packets: one.walk + one.pack for one in frames},
    )
    aggregated = _frames(result)
    points = [
        {"rate_pps": rate, "ratio_percent": round(frames.ratio_percent, 2)}
        for rate, frames in aggregated.get(EVEN, {}).items()
    ]
    day = now().date().isoformat()
    return {
        "schema": "convoy.sim.profile/1",
        "name": name,
        "source": (
            f"convoy bench profile, {day}, {host['cpu']}: port and functions on the node, one "
            "worker between two vhost-user ports; disaggregation and aggregation in "
            "memory. Rates with convoys are computed from these parts, not measured on a "
            "node. Packets per frame by rate: "
            + ("aggregated by the node itself, traffic even" if points else "not measured")
            + "."
        ),
        **({"points": points} if points else {}),
        "max_rate_pps": {
            "plain": round(costs.rate_pps("none", 1, SMALL_BYTES)),
            "aggregated": round(costs.rate_pps("none", FULL_PACKETS, SMALL_BYTES)),
        },
        "costs": costs.model_dump(),
        "measured": {
            "date": day,
            "cpu": host["cpu"],
            "port_cycles": {str(size): [round(c, 1) for c in port[size]] for size in sorted(port)},
            "function_cycles": {n: [round(c, 1) for c in functions[n]] for n in sorted(functions)},
            "frame_cycles_per_packet": [
                {"packets": f.packets, "walk": f.walk, "pack": f.pack} for f in frames
            ],
            "packets_per_frame": {
                setup: {f"{rate:g}": round(result.per_frame, 2) for rate, result in by_rate.items()}
                for setup, by_rate in aggregated.items()
            },
        },
    }


@dataclass(frozen=True)
class WrittenProfile(Result):
    """A profile, the file that has it, and the results that it is of."""

    profile: Document
    file: Path
    folder: Path

    def document(self) -> Document:
        """See Result."""
        return self.profile

    def show(self, out: Console) -> None:
        """Print the costs, where the profile is and how to use it."""
        costs = Costs.model_validate(self.profile["costs"])
        out.print(
            f"port {costs.port.cycles:g} cycles per frame and {costs.port.cycles_per_byte:g} per "
            f"byte; convoy {costs.frame.cycles:g} per frame and {costs.packet.cycles:g} per packet",
            markup=False,
        )
        for name, own in costs.functions.items():
            plain = costs.rate_pps(name, 1, SMALL_BYTES) / 1e6
            full = costs.rate_pps(name, FULL_PACKETS, SMALL_BYTES) / 1e6
            out.print(
                f"{name}: {own.cycles:g} cycles per packet; 64 B: {plain:.2f} Mpps unaggregated, "
                f"{full:.2f} Mpps in convoys of {FULL_PACKETS} (computed)",
                markup=False,
            )
        out.print(f"results: {self.folder}\nprofile: {self.file}", style="bold", markup=False)


def command(
    sizes: Annotated[str, typer.Option(help="Frame sizes with FCS; two or more.")] = "64,512,1500",
    repeats: Annotated[int, typer.Option(help="Rounds.", min=1, max=99)] = 3,
    read: Annotated[
        Path | None,
        typer.Option("--from", help="A results folder of `convoy bench quick`; measures no node."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The profile.")] = Path("profile.json"),
    name: Annotated[str, typer.Option("--name", help="Its name.")] = "measured",
    as_json: Json = False,
) -> Result:
    """Measure what the node's work costs, and how many packets share a frame at which rate; write
    it as a profile that `convoy sim` uses."""
    will_write("--out", out)
    folder = read
    if folder is None:
        plan = wanted(
            [COSTS],
            devices=["convoy"],
            repeats=repeats,
            profile="quick",
            goal_names=("pdr",),
            changes={"sizes": sizes_of(sizes)},
        )
        both = {**plan.scenarios, **wanted([RATIO]).scenarios}
        plan = plan.model_copy(update={"scenarios": both})
        folder = Path("results") / f"profile-{folder_timestamp()}"
        kept = RunFolder(folder)
        kept.create(plan)
        with Bar(messages()) as bar:
            execute(kept, plan, lambda step: bar.show(step.what, step.done, step.of))
    kept = RunFolder(folder)
    trials = list(kept.trials())
    if not trials:
        raise ConvoyError(f"{folder}: has no trial")
    host = kept.host().as_document() | {"tsc_hz": trials[0].tsc_hz}
    result = [row for row in rows(trials, kept.searches()) if row.device == "convoy"]
    profile = profile_of(result, host, bench_frame(11), name)
    write_whole(out, json.dumps(profile, indent=2) + "\n")
    return WrittenProfile(profile, out, folder)
