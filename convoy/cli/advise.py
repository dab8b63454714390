# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy advise: where a chain's functions should run, by what was measured."""

import datetime
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.advise.choose import Advice, advise
from convoy.advise.traffic import parse
from convoy.advise.words import age_days, closing, lines
from convoy.base.clock import now
from convoy.chain.load import load
from convoy.cli.console import messages
from convoy.cli.result import Json, Result
from convoy.errors import ConvoyError
from convoy.host.machine import this_machine
from convoy.report.run_data import Run, read


@dataclass(frozen=True)
class Advised(Result):
    """Advice for each chain of a descriptor."""

    chain: Path
    advice: tuple[Advice, ...]
    run: Run
    when: datetime.datetime

    @property
    def exit_code(self) -> int:
        """1 where a function of a chain was not measured."""
        return ConvoyError.exit_code if any(one.refusal for one in self.advice) else 0

    def document(self) -> dict[str, Any]:
        """See Result."""
        ages = zip(self.run.folders, age_days(self.run, self.when), strict=True)
        return {
            "schema": "convoy.advice/3",
            "chains": [asdict(one) for one in self.advice],
            "results": [{"folder": str(each), "age_days": round(days, 2)} for each, days in ages],
        }

    def show(self, out: Console) -> None:
        """Print it, and what it rests on."""
        for one in self.advice:
            for line in lines(one, self.run):
                out.print(line, markup=False)
        for line in closing(self.run, self.when):
            out.print(line, markup=False)


def command(
    chain: Annotated[Path, typer.Argument(help="Chain descriptor.")],
    traffic: Annotated[
        str, typer.Option(help="Rate and size: '2 Mpps 64', '20 Mpps 64 in convoys of 22'.")
    ],
    results: Annotated[list[Path], typer.Option(help="A run's folder; may be given again.")],
    as_json: Json = False,
) -> Result:
    """Say where each function should run, how many cores that takes, and by which numbers.

    Exit code 1 where a function of a chain was not measured.
    """
    wanted, run = parse(traffic), read(results)
    descriptor = load(chain, this_machine()).descriptor
    result = []
    for name, one in descriptor.chains.items():
        types = [next(iter(descriptor.functions[f].model_fields_set)) for f in one.path]
        result.append(advise(name, tuple(types), wanted, run.rows))
    advised = Advised(chain, tuple(result), run, now())
    if advised.exit_code:
        refused = ", ".join(one.chain for one in result if one.refusal)
        messages().print(f"convoy: {chain}: {refused}: not measured, so no advice", markup=False)
    return advised
