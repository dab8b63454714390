# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy advise: where a chain's functions should run, by what was measured."""

import datetime
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.advise import check_words, expected, simulate
from convoy.advise.chains import chain_parts
from convoy.advise.check import Check, check
from convoy.advise.choose import Advice, advise
from convoy.advise.day import Day, over, read_day
from convoy.advise.model import left_out, models
from convoy.advise.parts import Part
from convoy.advise.predict import Planned, plans
from convoy.advise.sleep import sleep_of
from convoy.advise.traffic import Traffic, parse, parse_size
from convoy.advise.words import age_days, closing, lines
from convoy.base.clock import now
from convoy.base.files import write_whole
from convoy.chain.load import load
from convoy.cli.console import messages
from convoy.cli.result import Json, Result
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.report.run_data import Run, read


@dataclass(frozen=True)
class ChainAdvice:
    """What is advised for one chain: what is expected by the model, and what was measured."""

    measured: Advice
    planned: tuple[Planned, ...]
    refused: tuple[str, ...]  # ways without a prediction, and why
    day: Day | None = None

    @property
    def empty(self) -> bool:
        """Return whether there is no advice."""
        return bool(self.measured.refusal) and not self.planned


@dataclass(frozen=True)
class Advised(Result):
    """Advice for each chain of a descriptor."""

    chain: Path
    advice: tuple[ChainAdvice, ...]
    run: Run
    when: datetime.datetime

    @property
    def exit_code(self) -> int:
        """1 where a function of a chain was not measured."""
        return ConvoyError.exit_code if any(one.empty for one in self.advice) else 0

    def document(self) -> dict[str, Any]:
        """See Result."""
        ages = zip(self.run.folders, age_days(self.run, self.when), strict=True)
        return {
            "schema": "convoy.advice/5",
            "chains": [
                {
                    **asdict(one.measured),
                    "expected": [expected.document(way) for way in one.planned],
                    "not_predicted": one.refused,
                    "day": expected.day_document(one.day) if one.day else None,
                }
                for one in self.advice
            ],
            "results": [{"folder": str(each), "age_days": round(days, 2)} for each, days in ages],
            "left_out": left_out(self.run.rows),
        }

    def show(self, out: Console) -> None:
        """Print it, and what it rests on."""
        for one in self.advice:
            for line in chain_lines(one):
                out.print(line, markup=False)
        for line in closing(self.run, self.when):
            out.print(line, markup=False)


def chain_lines(one: ChainAdvice) -> list[str]:
    """Return the sentences about one chain."""
    measured = lines(one.measured)
    if one.empty and one.refused and not any(one.measured.each.values()):
        # Rows of parts alone: what the model lacks is what is missing.
        return [measured[0], "  no advice: not all that it costs was measured",
                *(f"  not predicted: {why}" for why in one.refused)]  # fmt: skip
    if not one.planned:
        return measured + [f"  not predicted: {why}" for why in one.refused]
    whole = [option for option in one.measured.options if option.whole]
    return [
        measured[0],
        *expected.lines(one.planned, one.refused),
        *(expected.day_lines(one.day) if one.day else ()),
        *(f"  measured as it is: {option.way}: {option.used[0]}" for option in whole),
    ]


@dataclass(frozen=True)
class Checked(Result):
    """The model beside chains that it has not seen."""

    check: Check
    run: Run
    when: datetime.datetime

    @property
    def exit_code(self) -> int:
        """1 where the check fails."""
        return 0 if self.check.holds else ConvoyError.exit_code

    def document(self) -> dict[str, Any]:
        """See Result."""
        return check_words.document(self.check)

    def show(self, out: Console) -> None:
        """Print each row beside its prediction, and what follows."""
        out.print(check_words.table(self.check))
        for line in (*check_words.lines(self.check), *closing(self.run, self.when)):
            out.print(line, markup=False)


@dataclass(frozen=True)
class WrittenProfile(Result):
    """The model as a profile for the simulator."""

    profile: dict[str, Any]
    file: Path

    def document(self) -> dict[str, Any]:
        """See Result."""
        return self.profile

    def show(self, out: Console) -> None:
        """Print where it is."""
        functions = ", ".join(sorted(self.profile["costs"]["functions"]))
        out.print(f"{self.file}: {functions}", markup=False)
        out.print(f"  {self.profile['source']}", markup=False)


SIMULATED = 3  # ways that --simulate writes for each chain
TOGETHER = "all.yaml"  # their best ways at once
SMALL_BYTES = 64


def _source(run: Run) -> str:
    each = (f"{host.cpu}, convoy {host.commit or 'unknown commit'}, {(host.started or '')[:10]}"
            for host in run.hosts)  # fmt: skip
    return "; ".join(dict.fromkeys(each))


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give another place") from None


def _profile(run: Run, file: Path) -> Result:
    model = simulate.node_of(models(run.rows))
    costs = simulate.costs_of(model, SMALL_BYTES, simulate.functions_of(model.fit))
    made = simulate.profile_document(model, costs, file.stem, _source(run), SMALL_BYTES)
    _write(file, json.dumps(made, indent=2) + "\n")
    return WrittenProfile(made, file)


def _simulate(result: "Advised", wanted: Traffic, flows: int, folder: Path) -> None:
    """Write the advised ways of our node as topologies, and the profile that they use."""
    if not wanted.size.isdigit():
        raise InputError(f"--simulate: {wanted.size}: profiles are of frames of one size; give one")
    model = simulate.node_of(models(result.run.rows))
    parts: dict[str, tuple[tuple[Part, ...], int | None]] = {"none": ((), None)}
    files: dict[str, str] = {}
    best: dict[str, Planned] = {}
    for one in result.advice:
        mine = [way for way in one.planned if way.model.kind == model.kind]
        mine = [way for way in mine if not any(n.chain.link or n.chain.own for n in way.nodes)]
        if mine:
            best[one.measured.chain] = mine[0]
        for number, way in enumerate(mine[:SIMULATED], 1):
            name = f"{one.measured.chain}-{number}.yaml"
            topology = simulate.topology(way, wanted, one.measured.chain)
            files[name] = simulate.text(topology, str(folder / name))
            for node in way.nodes:
                parts[simulate.function_name(node.chain.parts)] = (node.chain.parts, flows)
    if not files:
        raise ConvoyError("--simulate: no way of our node was predicted; nothing was written")
    if len(best) > 1:
        files[TOGETHER] = simulate.text(simulate.together(best, wanted), str(folder / TOGETHER))
    costs = simulate.costs_of(model, int(wanted.size), parts)
    made = simulate.profile_document(model, costs, "advice", _source(result.run), int(wanted.size))
    _write(folder / "profile.json", json.dumps(made, indent=2) + "\n")
    for name, text in files.items():
        _write(folder / name, text)
    written = ", ".join(str(folder / name) for name in files)
    messages().print(f"written for the simulator: {written}", markup=False)


def _checked(run: Run) -> Result:
    result = check(run.rows)
    if not result.compared and not result.refused:
        raise InputError(
            "--check: the results have no held-out scenario; measure it: "
            "convoy bench run parts parts-convoys held-out held-out-convoys"
        )
    return Checked(result, run, now())


def command(
    chain: Annotated[Path | None, typer.Argument(help="Chain descriptor.")] = None,
    traffic: Annotated[
        str | None, typer.Option(help="Rate and size: '2 Mpps 64', '20 Mpps 64 in convoys of 22'.")
    ] = None,
    results: Annotated[
        list[Path] | None, typer.Option(help="A run's folder; may be given again.")
    ] = None,
    checks: Annotated[
        bool, typer.Option("--check", help="Compare predictions with the held-out scenarios.")
    ] = False,
    day: Annotated[
        Path | None,
        typer.Option(help="Rates over a day: CSV or YAML of times and Mpps; --traffic is a size."),
    ] = None,
    simulated: Annotated[
        Path | None,
        typer.Option("--simulate", help="Write the ways into a folder, for `convoy sim`."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Write the fitted model into a file, a profile of `convoy sim`."),
    ] = None,
    as_json: Json = False,
) -> Result:
    """Say where each function should run, and how many cores that takes.

    Exit code 1 where a function of a chain was not measured, or where a check fails.
    """
    if not results:
        raise InputError(
            "--results: missing: give a run's folder; measure one: convoy bench run parts"
        )
    if checks or profile:
        if any(one is not None for one in (chain, traffic, day, simulated)) or (checks and profile):
            option = "--check" if checks else "--profile"
            raise InputError(f"{option} takes --results alone; remove what else there is")
        return _checked(read(results)) if checks else _profile(read(results), Path(str(profile)))
    if chain is None or traffic is None:
        lacks = "CHAIN" if chain is None else "--traffic"
        raise InputError(f"{lacks}: missing: write convoy advise chain.yaml --traffic '2 Mpps 64'")
    periods = read_day(day) if day else ()
    peak_pps = max((one.rate_pps for one in periods), default=0.0)
    wanted = parse_size(traffic, peak_pps) if day else parse(traffic)
    run = read(results)
    loaded = load(chain, this_machine())
    descriptor = loaded.descriptor
    fitted, sleep = models(run.rows), sleep_of(run.rows)
    result = []
    for name in descriptor.chains:
        parts = chain_parts(name, descriptor, loaded.base)
        types = tuple(part.function for part in parts)
        ways, refused = plans(fitted, parts, wanted, descriptor.flows.max)
        measured = advise(name, types, wanted, run.rows)
        over_day = over(ways, periods, sleep) if day and ways else None
        result.append(ChainAdvice(measured, ways, refused, over_day))
    advised = Advised(chain, tuple(result), run, now())
    if advised.exit_code:
        without = ", ".join(one.measured.chain for one in result if one.empty)
        messages().print(f"convoy: {chain}: {without}: not measured, so no advice", markup=False)
    elif simulated:
        _simulate(advised, wanted, descriptor.flows.max, simulated)
    return advised
