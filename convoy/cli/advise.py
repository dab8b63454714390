# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy advise: where a chain's functions should run, by what was measured."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from convoy.advise.choose import advise
from convoy.advise.traffic import parse
from convoy.advise.words import age_days, closing, lines
from convoy.base.clock import now
from convoy.chain.load import load
from convoy.cli.console import console, print_json
from convoy.cli.options import Json
from convoy.errors import ConvoyError
from convoy.host.machine import this_machine
from convoy.report.run_data import read


def command(
    chain: Annotated[Path, typer.Argument(help="Chain descriptor.")],
    traffic: Annotated[
        str, typer.Option(help="Rate and size: '2 Mpps 64', '20 Mpps 64 in convoys of 22'.")
    ],
    results: Annotated[list[Path], typer.Option(help="A run's folder; may be given again.")],
    as_json: Json = False,
) -> None:
    """Say where each function should run, how many cores that takes, and by which numbers.

    Exit code 1 where a function of a chain was not measured.
    """
    wanted, run = parse(traffic), read(results)
    descriptor = load(chain, this_machine()).descriptor
    result = []
    for name, one in descriptor.chains.items():
        types = [next(iter(descriptor.functions[f].model_fields_set)) for f in one.path]
        result.append(advise(name, tuple(types), wanted, run.rows))
    today = now()
    if as_json:
        print_json(
            {
                "schema": "convoy.advice/3",
                "chains": [asdict(one) for one in result],
                "results": [
                    {"folder": str(folder), "age_days": round(days, 2)}
                    for folder, days in zip(run.folders, age_days(run, today), strict=True)
                ],
            }
        )
    else:
        out = console()
        for advice in result:
            for line in lines(advice, run):
                out.print(line, markup=False)
        for line in closing(run, today):
            out.print(line, markup=False)
    refused = [one.chain for one in result if one.refusal]
    if refused:
        raise ConvoyError(f"{chain}: {', '.join(refused)}: not measured, so no advice")
