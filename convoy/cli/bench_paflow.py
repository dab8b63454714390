# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench paflow: aggregation as PA-Flow measures it, beside the paper's numbers."""

from typing import Annotated

import typer

from convoy.cli.bench_run import begin, new_folder
from convoy.cli.options import Devices, NewFolder, Rounds, split
from convoy.cli.result import Json, Result
from convoy.run import session

# In the order of the paper.
SCENARIOS = (
    "paflow-lookup",
    "paflow-throughput",
    "paflow-packets",
    "paflow-guest",
    "paflow-in-place",
    "paflow-processes",
    "paflow-ratio",
    "paflow-latency",
    "paflow-drops",
)


def command(
    devices: Devices = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only these, with commas: {', '.join(n[7:] for n in SCENARIOS)}.  [all]"
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About fourteen minutes; wider intervals.")
    ] = False,
    repeats: Rounds = None,
    output: NewFolder = None,
    as_json: Json = False,
) -> Result:
    """Measure convoys as PA-Flow's paper does: throughput, ratio, latency, drops, look-up.

    Runs the scenarios paflow-* as `convoy bench run` would, into one report that opens with the
    paper's claims beside what was measured. Goes on after an interruption with `convoy bench
    resume`.
    """
    names = [f"paflow-{word}" for word in split("--only", only) or ()] or SCENARIOS
    plan = session.wanted(names, split("--devices", devices), quick, repeats)
    return begin(plan, new_folder(output, "paflow"))
