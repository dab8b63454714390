# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run from beginning to end: its folder, its machine, its turns. Begun anew, or resumed."""

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from convoy.dut.base import Device
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError, InputError
from convoy.host.cpu_speed import how
from convoy.host.machine import nodes, this_machine
from convoy.host.placement import place
from convoy.host.placement import read as read_topology
from convoy.results.documents import PLAN_SCHEMA, wrong
from convoy.results.folder import HOST, PLAN, RunFolder
from convoy.results.memory import Memory
from convoy.run import memory
from convoy.run import scenario as scenarios_of
from convoy.run.bench import CEILING, Bench, Settings, Step
from convoy.run.ceiling import Ceiling
from convoy.run.environment import environment
from convoy.run.once_more import TIME_SHARE
from convoy.run.order import MEMORY_S, Order, order
from convoy.run.scenario import Scenario, SetupSpec
from convoy.search.goals import PROFILES, goals

HUGEPAGES_MB = 1024  # for a device; the tester needs none
REPEATS = 5
QUICK_REPEATS = 3
LATENCY_S = {"quick": 0.2, "standard": 1.0, "full": 5.0}

Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Wanted:
    """What a user asks for."""

    scenarios: Mapping[str, Scenario]
    quick: bool
    profile: str
    goals: tuple[str, ...]
    repeats: int

    def as_plan(self) -> dict[str, Any]:
        """Return it as a run's plan.yaml keeps it: whole, so that no scenario file is needed."""
        return {
            "schema": PLAN_SCHEMA,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "quick": self.quick,
            "search": self.profile,
            "goals": list(self.goals),
            "repeats": self.repeats,
            "scenarios": {
                name: scenario.model_dump(mode="json", by_alias=True, exclude={"quick"})
                for name, scenario in self.scenarios.items()
            },
        }


def wanted(
    names: Sequence[str],
    devices: Sequence[str] | None = None,
    quick: bool = False,
    repeats: int | None = None,
    profile: str | None = None,
    goal_names: Sequence[str] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Wanted:
    """Return what these options mean. Raises InputError."""
    known = {device.name for device in DEVICES}
    for name in devices or ():
        if name not in known:
            raise InputError(f"--devices: '{name}': choose of {', '.join(sorted(known))}")
    found = {}
    for name in dict.fromkeys(names):
        one = scenarios_of.choose(scenarios_of.load(name), None)
        one = one.quickly() if quick else one
        found[Path(name).stem] = scenarios_of.choose(one, devices).model_copy(update=changes)
    profile = profile or ("quick" if quick else "standard")
    chosen = tuple(goal_names or (("pdr",) if quick else ("ndr", "pdr")))
    goals(chosen, profile)
    return Wanted(found, quick, profile, chosen, repeats or (QUICK_REPEATS if quick else REPEATS))


class _Plan(BaseModel):
    """A plan that can be gone on with: whole."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_tag: Literal["convoy.bench.plan/1"] = Field(alias="schema")
    quick: bool
    search: str
    goals: tuple[str, ...]
    repeats: int = Field(ge=1, le=99)
    scenarios: dict[str, Scenario]

    @field_validator("search")
    @classmethod
    def _profile(cls, value: str) -> str:
        if value not in PROFILES:
            raise ValueError(f"choose of {', '.join(PROFILES)}")
        return value


def read_plan(folder: RunFolder) -> Wanted:
    """Return what a run's folder was made for. Raises InputError."""
    try:
        plan = _Plan.model_validate(folder.plan())
    except ValidationError as error:
        raise InputError(f"{folder.path / PLAN}: {wrong(error)}; run it anew") from None
    goals(plan.goals, plan.search)
    return Wanted(plan.scenarios, plan.quick, plan.search, plan.goals, plan.repeats)


def cores() -> tuple[int, int]:
    """Return the tester's core and the device's, on one NUMA node if that has two.

    Raises InputError where there is only one.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise InputError(
            f"this process may use only core {allowed[0]}: the tester and the device need a core "
            "each; run on a machine (or in a container, or with a taskset) of two cores or more"
        )
    try:
        found = place(read_topology(), 1, "same-node", allowed)
    except ConvoyError:
        return allowed[0], allowed[1]  # no hwloc, or no node with two of these
    return found.tester, found.functions[0]


def order_here(asked: Wanted) -> Order:
    """Return the turns on this machine, and what it cannot do."""
    devices: dict[str, Device] = {device.name: device for device in DEVICES}
    allowed = os.sched_getaffinity(0)
    numa = {node for core, node in nodes().items() if core in allowed}
    speeds = bool(how(max(allowed)))
    here = len(allowed), max(1, len(numa))
    return order(asked.scenarios, devices, asked.repeats, *here, speeds, _placed)


def _placed(spec: SetupSpec) -> tuple[int, ...]:
    """Return a core for each function. Raises InputError where this machine has too few."""
    try:
        topology = read_topology()
    except ConvoyError as error:
        raise InputError(str(error)) from None
    allowed = os.sched_getaffinity(0)
    wanted = max(spec.cores, len(spec.functions) if spec.placement else 1)
    return place(topology, wanted, spec.placement or "same-node", allowed).functions


def execute(folder: RunFolder, asked: Wanted, progress: Progress) -> None:
    """Do a run, or what is left of it. Raises InputError before anything is started."""
    tester_core, core = cores()
    plan = order_here(asked)
    in_memory = any(scenario.in_memory for scenario in asked.scenarios.values())
    if not plan.turns and not in_memory:
        raise InputError("; ".join(dict.fromkeys(f"{c.device}: {c.why}" for c in plan.cannot)))
    hugepages = this_machine().hugepages_free_mb >= HUGEPAGES_MB
    real = any(turn.device.name != "dummy" and not turn.applications for turn in plan.turns)
    _write_host(folder, plan, tester_core, core, hugepages)
    ceiling = Ceiling(tester_core, core, partial(_write_ceiling, folder)) if real else None
    if ceiling is not None:
        progress(Step(CEILING, 0, len(plan.turns), 0.0))
        ceiling.look()
    _in_memory(folder, asked, progress)
    settings = Settings(
        tester_core,
        (core,),
        hugepages,
        asked.profile,
        asked.goals,
        LATENCY_S[asked.profile],
        TIME_SHARE,
    )
    Bench(folder, asked.scenarios, settings, progress, ceiling).run(plan.turns)


def _in_memory(folder: RunFolder, asked: Wanted, progress: Progress) -> None:
    """Measure what scenarios have measured in memory; what is there already is not done again."""
    folder.repair()
    done = {(one.scenario, one.what) for one in folder.memory()}
    todo = [
        (name, what)
        for name, scenario in asked.scenarios.items()
        for what in scenario.in_memory
        if (name, what) not in done
    ]
    for index, (name, what) in enumerate(todo):
        left = (len(todo) - index) * MEMORY_S
        progress(Step(f"{name}: {what}, in memory", index, len(todo), left))
        found = memory.measure(what)
        folder.append(Memory(scenario=name, what=what, command=memory.command(what), result=found))


def _write_ceiling(folder: RunFolder, self_test: Mapping[str, Any]) -> None:
    """Keep the highest self-test beside what machine this is."""
    host = folder.host()
    before = (host.get("self_test") or {}).get("ceiling_pps") or 0.0
    if self_test["ceiling_pps"] > before:
        folder.write_host(host | {"self_test": self_test})


def _write_host(
    folder: RunFolder, plan: Order, tester_core: int, core: int, hugepages: bool
) -> None:
    """Write what machine this is; of a resumed run, under "resumed"."""
    devices = {turn.device.name: turn.device.presence() for turn in plan.turns}
    host = environment() | {
        "tester_core": tester_core,
        "device_core": core,
        "hugepages": hugepages,
        "devices": {name: presence.version for name, presence in devices.items()},
        "remarks": {name: p.remark for name, p in devices.items() if p.remark},
        "cannot": [cannot.as_json() for cannot in plan.cannot],
    }
    if not (folder.path / HOST).exists():
        folder.write_host(host)
        return
    first = folder.host()
    first.setdefault("resumed", []).append(host)
    folder.write_host(first)
