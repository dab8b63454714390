# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench list, run, resume, compare: scenarios, measured."""

import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console

from convoy.base.clock import folder_timestamp
from convoy.base.problem import shown
from convoy.cli.console import messages
from convoy.cli.options import Devices, NewFolder, Rounds, TimeLimit, split
from convoy.cli.progress import Bar, elapsed
from convoy.cli.result import Json, Result
from convoy.errors import InputError, message
from convoy.host.programs import LEDGER, SCENARIOS
from convoy.results.device_host import DeviceHost
from convoy.results.documents import BenchPlan
from convoy.results.folder import RunFolder
from convoy.run import session
from convoy.run.bench import Step
from convoy.run.device_machine import DeviceMachine
from convoy.run.order import seconds
from convoy.run.remote.agent import serve
from convoy.run.remote.connection import ConnectionLostError
from convoy.run.scenario import names
from convoy.search.goals import PROFILES

NIC_FORMS = "give two as LEFT,RIGHT: NAME, af_xdp:NAME or dpdk:0000:01:00.0"
NIC_HELP = "NAME (af_packet), af_xdp:NAME or dpdk:PCI-ADDRESS."
SshConfig = Annotated[
    Path | None,
    typer.Option(help="Configuration of ssh, for --device-host.", metavar="FILE"),
]


class Show:
    """Tells what is done now and how long it will take: a bar, or lines where there is none."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._out = messages()

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if self._out.is_terminal:
            self._bar.show(f"{step.what}, about {elapsed(step.left_s)} left", step.done, step.of)
        else:
            left = f"  about {elapsed(step.left_s)} left" if step.left_s else ""
            self._out.print(f"{step.done:4}/{step.of}  {step.what}{left}", markup=False)


def measure(
    folder: RunFolder, plan: BenchPlan, machine: DeviceMachine, time_limit_s: float | None = None
) -> Result:
    """Do a run, or what is left of it, with progress shown; write its report."""
    began = time.monotonic()
    try:
        with Bar(messages()) as bar:
            limit_s = math.inf if time_limit_s is None else time_limit_s
            left_out = session.execute(folder, plan, Show(bar), machine, limit_s)
    except (KeyboardInterrupt, SystemExit, ConnectionLostError):
        messages().print(
            f"interrupted; what was measured is kept: convoy bench resume {folder.path}",
            markup=False,
        )
        raise
    from convoy.cli.measured import finish  # only now: see there

    return finish(folder, began, left_out)


def new_folder(output: Path | None, name: str) -> RunFolder:
    """Return the folder that --output names, or one of this moment."""
    now = folder_timestamp()
    return RunFolder(output or Path("results") / f"{now}-{name}")


def begin(
    plan: BenchPlan,
    folder: RunFolder,
    ssh_config: Path | None = None,
    time_limit_s: float | None = None,
) -> Result:
    """Do a run from its beginning. Raises InputError before it starts."""
    with session.device_machine(plan, ssh_config) as machine:
        folder.create(plan)
        return measure(folder, plan, machine, time_limit_s)


def _device_host(
    host: str | None,
    tester_ports: list[str] | None,
    device_ports: list[str] | None,
    command: str | None,
) -> DeviceHost | None:
    """Return what --device-host and its companions say. Raises InputError."""
    options = {
        "--tester-ports": tester_ports,
        "--device-ports": device_ports,
        "--device-command": command,
    }
    if host is None:
        for name, value in options.items():
            if value:
                raise InputError(f"{name}: is of a device on another machine; add --device-host")
        return None
    for name in ("--tester-ports", "--device-ports"):
        if not options[name]:
            raise InputError(
                f"{name}: missing; name the two interfaces that the other machine is wired to: "
                f"{name} LEFT,RIGHT"
            )
    given = {
        "host": host,
        "tester_ports": split("--tester-ports", tester_ports),
        "device_ports": split("--device-ports", device_ports),
        **({"command": command} if command is not None else {}),
    }
    try:
        return DeviceHost.model_validate(given)
    except ValidationError as error:
        raise InputError(_refused(error)) from None


_FORMS = {
    "host": ("--device-host", "give it as ssh takes it: HOST or USER@HOST"),
    "command": ("--device-command", "give a path, without spaces"),
    "tester_ports": ("--tester-ports", NIC_FORMS),
    "device_ports": ("--device-ports", NIC_FORMS),
}


def _refused(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    option, form = _FORMS[str(first["loc"][0])]
    value = first["input"]
    words = [value] if isinstance(value, str) else value
    text = shown(",".join(map(str, words)))
    what = f" {message(first)};" if first["type"] == "value_error" else ""
    return f"{option}: {text}:{what} {form}"


def run(
    scenarios: Annotated[
        list[str] | None, typer.Argument(help="Names, or files of your own.")
    ] = None,
    devices: Devices = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About two minutes a scenario; wider intervals.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Every scenario of `convoy bench list`.")
    ] = False,
    for_claims: Annotated[
        bool,
        typer.Option(
            "--for-claims",
            help="Only what the papers' claims are about; without names all of their scenarios.",
        ),
    ] = False,
    repeats: Rounds = None,
    time_limit: TimeLimit = None,
    search: Annotated[
        str | None,
        typer.Option(help=f"How long to search: {', '.join(PROFILES)}.  [standard, --quick quick]"),
    ] = None,
    goal: Annotated[
        list[str] | None, typer.Option(help="ndr, pdr, rfc2544, tst009.  [ndr,pdr; quick pdr]")
    ] = None,
    output: NewFolder = None,
    device_host: Annotated[
        str | None,
        typer.Option(
            help="Start the devices on another machine, by ssh: USER@HOST.", metavar="USER@HOST"
        ),
    ] = None,
    tester_ports: Annotated[
        list[str] | None,
        typer.Option(help=f"This machine's interfaces to it. {NIC_HELP}", metavar="LEFT,RIGHT"),
    ] = None,
    device_ports: Annotated[
        list[str] | None,
        typer.Option(help="The other machine's interfaces, likewise.", metavar="LEFT,RIGHT"),
    ] = None,
    device_command: Annotated[
        str | None, typer.Option(help="The command there; default: convoy.", metavar="PATH")
    ] = None,
    ssh_config: SshConfig = None,
    as_json: Json = False,
) -> Result:
    """Measure scenarios; results and a report go to one folder."""
    if search is not None and search not in PROFILES:
        raise InputError(f"--search: '{search}': choose of {', '.join(PROFILES)}")
    device = _device_host(device_host, tester_ports, device_ports, device_command)
    choose, called = None, ""
    if everything:
        if scenarios or for_claims:
            other = shown(scenarios[0]) if scenarios else "--for-claims"
            raise InputError(f"--all: it is every scenario; leave it or {other} out")
        scenarios, called = list(names()), "all"
    elif for_claims:
        scenarios, choose = _for_claims(scenarios)
    elif not scenarios:
        raise InputError(
            "no scenario: name some of `convoy bench list`, or add --all or --for-claims"
        )
    plan = session.wanted(
        scenarios,
        split("--devices", devices),
        quick,
        repeats,
        search,
        split("--goal", goal),
        device_host=device,
        choose=choose,
    )
    called = called or "-".join(plan.scenarios)[:60]
    return begin(plan, new_folder(output, called), ssh_config, time_limit)


def _for_claims(scenarios: list[str] | None) -> tuple[list[str], session.Choose]:
    """Return the scenarios that claims are about, or those of a user; and what is needed of each.

    Raises InputError.
    """
    from convoy.report.ledger import load, needed  # only here: most runs do without

    there = load.scenarios(SCENARIOS)
    ledger = load.load(LEDGER, there)
    return scenarios or needed.scenarios(ledger, there), partial(needed.needed, ledger)


def resume(
    folder: Annotated[Path, typer.Argument(help="Of a run that was interrupted, or out of time.")],
    time_limit: TimeLimit = None,
    ssh_config: SshConfig = None,
    as_json: Json = False,
) -> Result:
    """Resume a run that was interrupted, killed or out of time; nothing is measured twice."""
    kept = RunFolder(folder)
    plan = session.read_plan(kept)
    with session.device_machine(plan, ssh_config) as machine:
        return measure(kept, plan, machine, time_limit)


def device_agent() -> None:
    """Start devices for a tester on another machine; `bench run --device-host` runs this by ssh."""
    why = serve()
    messages().print(f"device agent: {why}", markup=False)


@dataclass(frozen=True)
class Listed(Result):
    """The scenarios: what they ask, how long they take here, what cannot run and why."""

    listed: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.bench.list/1", "scenarios": self.listed}

    def show(self, out: Console) -> None:
        """Print them; a device that is not here is named once."""
        absent: dict[str, str] = {}
        for one in self.listed:
            runs = (
                f"{elapsed(one['seconds'])}, --quick {elapsed(one['quick_seconds'])}"
                if one["seconds"]
                else "not here"
            )
            out.print(f"[bold]{one['name']}[/]  {runs}  ({one['from']})")
            out.print(f"    {one['asks']}", markup=False)
            alike: dict[tuple[str, str], list[str]] = {}  # device, reason: its setups
            for cannot in one["cannot"]:
                device, why = cannot["device"], cannot["why"]
                if why.startswith("not installed"):
                    absent[device] = why
                else:
                    alike.setdefault((device, why.removeprefix(f"{device}: ")), []).append(
                        cannot["setup"]
                    )
            for (device, why), setups in alike.items():
                who = ", ".join(filter(None, (device, *setups)))
                out.print(f"    {who + ': ' if who else ''}{why}", markup=False)
        if absent:
            out.print("[bold]not available here[/]")
        for device, why in absent.items():
            out.print(f"    {device}: {why}", markup=False)


def show_list(as_json: Json = False) -> Result:
    """Show the scenarios: what they ask, how long they take here, and what cannot run and why."""
    full, quick = session.wanted(names()), session.wanted(names(), quick=True)
    here, short = session.order_here(full), session.order_here(quick)
    listed: list[dict[str, Any]] = []
    for name, scenario in full.scenarios.items():
        own = [one for one in here.device_runs if one.scenario == name]
        own_quick = [one for one in short.device_runs if one.scenario == name]
        listed.append(
            {
                "name": name,
                "title": scenario.title,
                "from": scenario.source,
                "asks": scenario.asks,
                "seconds": round(seconds(own, {name: scenario}, full.profile)),
                "quick_seconds": round(
                    seconds(own_quick, {name: quick.scenarios[name]}, quick.profile)
                ),
                "cannot": [one.as_json() for one in here.cannot if one.scenario == name],
            }
        )
    return Listed(listed)
