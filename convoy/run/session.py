# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run from beginning to end: its folder, its machine, its device runs. Begun anew, or resumed."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from convoy.dut.base import Device
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError, InputError
from convoy.host.cpu_speed import how
from convoy.host.machine import nodes, this_machine
from convoy.host.placement import place
from convoy.host.placement import read as read_topology
from convoy.results.documents import BenchPlan
from convoy.results.folder import HOST, RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import SetupSpec
from convoy.results.trial_result import SelfTest
from convoy.run import scenario as scenarios_of
from convoy.run.adaptive_repetition import TIME_SHARE
from convoy.run.baseline_rate import BaselineRate
from convoy.run.bench import BASELINE, Bench, Step
from convoy.run.environment import environment
from convoy.run.in_memory import command, measure
from convoy.run.order import MEMORY_S, Order, order
from convoy.run.packet_run import Settings
from convoy.search.goals import SMOKE, goals

HUGEPAGES_MB = 1024  # for a device; the tester needs none
REPEATS = 5
QUICK_REPEATS = 3
LATENCY_S = {SMOKE: 0.1, "quick": 0.2, "standard": 1.0, "full": 5.0}

OnStep = Callable[[Step], None]


def wanted(
    names: Sequence[str],
    devices: Sequence[str] | None = None,
    quick: bool = False,
    repeats: int | None = None,
    profile: str | None = None,
    goal_names: Sequence[str] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> BenchPlan:
    """Return what these options mean. Raises InputError."""
    known = {device.name for device in DEVICES}
    for name in devices or ():
        if name not in known:
            raise InputError(f"--devices: '{name}': choose of {', '.join(sorted(known))}")
    result = {}
    for name in dict.fromkeys(names):
        one = scenarios_of.choose(scenarios_of.load(name), None)
        one = one.quickly() if quick else one
        result[Path(name).stem] = scenarios_of.choose(one, devices).model_copy(update=changes)
    profile = profile or ("quick" if quick else "standard")
    chosen = tuple(goal_names or (("pdr",) if quick else ("ndr", "pdr")))
    goals(chosen, profile)
    return BenchPlan(
        quick=quick,
        profile=profile,
        goals=chosen,
        repeats=repeats or (QUICK_REPEATS if quick else REPEATS),
        scenarios=result,
    )


def read_plan(folder: RunFolder) -> BenchPlan:
    """Return what a run's folder was made for. Raises InputError."""
    plan = folder.plan()
    goals(plan.goals, plan.profile)
    return plan


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
        result = place(read_topology(), 1, "same-node", allowed)
    except ConvoyError:
        return allowed[0], allowed[1]  # no hwloc, or no node with two of these
    return result.tester, result.functions[0]


def order_here(bench_plan: BenchPlan) -> Order:
    """Return the device runs on this machine, and what it cannot do."""
    devices: dict[str, Device] = {device.name: device for device in DEVICES}
    allowed = os.sched_getaffinity(0)
    numa = {node for core, node in nodes().items() if core in allowed}
    speeds = bool(how(max(allowed)))
    here = len(allowed), max(1, len(numa))
    return order(bench_plan.scenarios, devices, bench_plan.repeats, *here, speeds, _placed)


def _placed(spec: SetupSpec) -> tuple[int, ...]:
    """Return a core for each function. Raises InputError where this machine has too few."""
    try:
        topology = read_topology()
    except ConvoyError as error:
        raise InputError(str(error)) from None
    allowed = os.sched_getaffinity(0)
    wanted = max(spec.cores, len(spec.functions) if spec.placement else 1)
    return place(topology, wanted, spec.placement or "same-node", allowed).functions


def execute(folder: RunFolder, bench_plan: BenchPlan, progress: OnStep) -> None:
    """Do a run, or what is left of it. Raises InputError before anything is started."""
    tester_core, core = cores()
    plan = order_here(bench_plan)
    in_memory = any(scenario.in_memory for scenario in bench_plan.scenarios.values())
    if not plan.device_runs and not in_memory:
        raise InputError("; ".join(dict.fromkeys(f"{c.device}: {c.why}" for c in plan.cannot)))
    hugepages = this_machine().hugepages_free_mb >= HUGEPAGES_MB
    real = any(
        device_run.device.name != "dummy" and not device_run.applications
        for device_run in plan.device_runs
    )
    _write_host(folder, plan, tester_core, core, hugepages)
    baseline = BaselineRate(tester_core, core, partial(_write_baseline, folder)) if real else None
    if baseline is not None:
        progress(Step(BASELINE, 0, len(plan.device_runs), 0.0))
        baseline.measure()
    _in_memory(folder, bench_plan, progress)
    settings = Settings(
        tester_core,
        (core,),
        hugepages,
        bench_plan.profile,
        bench_plan.goals,
        LATENCY_S[bench_plan.profile],
        0.0 if bench_plan.profile == SMOKE else TIME_SHARE,
    )
    Bench(folder, bench_plan.scenarios, settings, progress, baseline).run(plan.device_runs)


def _in_memory(folder: RunFolder, bench_plan: BenchPlan, progress: OnStep) -> None:
    """Measure what scenarios have measured in memory; what is there already is not done again."""
    folder.repair()
    done = {(one.scenario, one.what) for one in folder.memory()}
    todo = [
        (name, what)
        for name, scenario in bench_plan.scenarios.items()
        for what in scenario.in_memory
        if (name, what) not in done
    ]
    for index, (name, what) in enumerate(todo):
        left = (len(todo) - index) * MEMORY_S
        progress(Step(f"{name}: {what}, in memory", index, len(todo), left))
        result = measure(what)
        folder.append(Memory(scenario=name, what=what, command=command(what), result=result))


def _write_baseline(folder: RunFolder, self_test: SelfTest) -> None:
    """Keep the highest self-test beside what machine this is."""
    host = folder.host()
    if (self_test.baseline_pps or 0.0) > (host.baseline_pps or 0.0):
        folder.write_host(host.model_copy(update={"self_test": self_test}))


def _write_host(
    folder: RunFolder, plan: Order, tester_core: int, core: int, hugepages: bool
) -> None:
    """Write what machine this is; of a resumed run, under "resumed"."""
    devices = {
        device_run.device.name: device_run.device.presence() for device_run in plan.device_runs
    }
    here: dict[str, Any] = {
        "tester_core": tester_core,
        "device_core": core,
        "hugepages": hugepages,
        "devices": {name: presence.version for name, presence in devices.items()},
        "remarks": {name: p.remark for name, p in devices.items() if p.remark},
        "cannot": plan.cannot,
    }
    host = environment().model_copy(update=here)
    if (folder.path / HOST).exists():
        first = folder.host()
        host = first.model_copy(update={"resumed": (*first.resumed, host)})
    folder.write_host(host)
