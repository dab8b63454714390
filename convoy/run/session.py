# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run from beginning to end: its folder, its machine, its device runs. Begun anew, or resumed."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from convoy.chain.nic import Nic
from convoy.dut.devices import DEVICES
from convoy.errors import InputError
from convoy.host import priority
from convoy.host.interface import Lent, described
from convoy.results.device_host import DeviceHost
from convoy.results.documents import BenchPlan, Chosen
from convoy.results.folder import HOST, RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import Scenario
from convoy.results.simulated import Simulated
from convoy.results.trial_result import SelfTest
from convoy.run import replay
from convoy.run import scenario as scenarios_of
from convoy.run.adaptive_repetition import TIME_SHARE
from convoy.run.baseline_rate import BaselineRate
from convoy.run.bench import BASELINE, Bench, Step
from convoy.run.device_machine import DeviceMachine, cores, this_one
from convoy.run.environment import environment
from convoy.run.in_memory import command, measure
from convoy.run.order import MEMORY_S, Order, order, seconds
from convoy.run.packet_run import Settings
from convoy.run.remote.connection import Connection
from convoy.run.remote.device import other_one
from convoy.run.simulated import SIMULATED_S, simulate
from convoy.run.simulated import command as simulation
from convoy.search.goals import SMOKE, goals

REPEATS = 5
QUICK_REPEATS = 3
LATENCY_S = {SMOKE: 0.1, "quick": 0.2, "standard": 1.0, "full": 5.0}

OnStep = Callable[[Step], None]
# Of a scenario by name: what is to be measured of it, and at which points.
Choose = Callable[[str, Scenario], tuple[Scenario, tuple[Chosen, ...]]]


def wanted(
    names: Sequence[str],
    devices: Sequence[str] | None = None,
    quick: bool = False,
    repeats: int | None = None,
    profile: str | None = None,
    goal_names: Sequence[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    device_host: DeviceHost | None = None,
    choose: Choose | None = None,
) -> BenchPlan:
    """Return what these options mean. choose: instead of what --quick leaves.

    Raises InputError.
    """
    known = {device.name for device in DEVICES}
    for name in devices or ():
        if name not in known:
            raise InputError(f"--devices: '{name}': choose of {', '.join(sorted(known))}")
    result, only = {}, {}
    for name in dict.fromkeys(names):
        one, stem = scenarios_of.load(name), Path(name).stem
        if choose is not None:
            one, only[stem] = choose(stem, one)
        elif quick:
            one = one.quickly()
        result[stem] = scenarios_of.choose(one, devices).model_copy(update=changes)
    profile = profile or ("quick" if quick else "standard")
    chosen = tuple(goal_names or (("pdr",) if quick else ("ndr", "pdr")))
    goals(chosen, profile)
    return BenchPlan(
        quick=quick,
        profile=profile,
        goals=chosen,
        repeats=repeats or (QUICK_REPEATS if quick else REPEATS),
        scenarios=result,
        device_host=device_host,
        only=only,
    )


def read_plan(folder: RunFolder) -> BenchPlan:
    """Return what a run's folder was made for. Raises InputError."""
    plan = folder.plan()
    goals(plan.goals, plan.profile)
    return plan


@contextmanager
def device_machine(
    bench_plan: BenchPlan, ssh_config: Path | None = None
) -> Iterator[DeviceMachine]:
    """Yield the machine that a plan's devices are started on: this one, or one that ssh reaches.

    ssh_config: a file for ssh. Raises InputError, also where that machine is not reached.
    """
    priority.wanted()  # so that a wrong word is said before anything is made
    host = bench_plan.device_host
    if host is None:
        yield this_one(cores()[1])
        return
    with ExitStack() as kept:
        nics = tuple(map(Nic.read, host.tester_ports))
        connection = kept.enter_context(Connection(host, ssh_config))
        kept.enter_context(Lent(nics))
        yield other_one(connection, nics)


def tester_core() -> int:
    """Return the tester's core."""
    allowed = sorted(os.sched_getaffinity(0))
    return cores()[0] if len(allowed) > 1 else allowed[0]


def order_here(bench_plan: BenchPlan, machine: DeviceMachine | None = None) -> Order:
    """Return the device runs, and what cannot be done. machine: of the devices; default: this."""
    at = machine or this_one(max(os.sched_getaffinity(0)))
    return order(
        bench_plan.scenarios,
        at.devices,
        bench_plan.repeats,
        at.allowed,
        at.numa_nodes,
        at.no_speeds,
        at.place,
        at.elsewhere is not None,
        bench_plan.only,
        at.virtual_functions,
    )


def execute(
    folder: RunFolder,
    bench_plan: BenchPlan,
    progress: OnStep,
    machine: DeviceMachine | None = None,
    time_limit_s: float = math.inf,
) -> int:
    """Do a run, or what is left of it. Raises InputError before anything is started.

    machine: of the devices; default: this one. Returns how many device runs the time limit leaves
    out.
    """
    end = time.monotonic() + time_limit_s
    for scenario in bench_plan.scenarios.values():
        replay.check(scenario)
    at = machine or this_one(cores()[1])
    core, tester = at.core, tester_core()
    plan = order_here(bench_plan, at)
    here = at.elsewhere is None
    in_memory = here and any(one.in_memory for one in bench_plan.scenarios.values())
    simulated = any(one.simulated for one in bench_plan.scenarios.values())
    if not plan.device_runs and not in_memory and not simulated:
        raise InputError(
            "; ".join(dict.fromkeys(f"{c.device or c.scenario}: {c.why}" for c in plan.cannot))
        )
    real = any(
        device_run.device.name != "dummy" and not device_run.applications
        for device_run in plan.device_runs
    )
    _write_host(folder, plan, tester, at, bench_plan.device_host)
    # It is that of sockets, and says nothing of what interfaces carry.
    known = real and here
    baseline = BaselineRate(tester, core, partial(_write_baseline, folder)) if known else None
    if baseline is not None:
        left_s = seconds(plan.device_runs, bench_plan.scenarios, bench_plan.profile)
        progress(Step(BASELINE, 0, len(plan.device_runs), left_s))
        baseline.measure()
    if in_memory:
        _in_memory(folder, bench_plan, progress)
    if simulated:
        _simulated(folder, bench_plan, progress)
    settings = Settings(
        tester,
        (core,),
        at.hugepages,
        bench_plan.profile,
        bench_plan.goals,
        LATENCY_S[bench_plan.profile],
        0.0 if bench_plan.profile == SMOKE else TIME_SHARE,
    )
    bench = Bench(folder, bench_plan.scenarios, settings, progress, baseline)
    return bench.run(plan.device_runs, end)


def _in_memory(folder: RunFolder, bench_plan: BenchPlan, progress: OnStep) -> None:
    """Measure what scenarios have measured in memory; what is there already is not done again."""
    folder.repair()
    wanted = ((name, one.in_memory) for name, one in bench_plan.scenarios.items())
    todo = _left(wanted, folder.memory())
    for index, (name, what) in enumerate(todo):
        left = (len(todo) - index) * MEMORY_S
        progress(Step(f"{name}: {what}, in memory", index, len(todo), left))
        result = measure(what)
        folder.append(Memory(scenario=name, what=what, command=command(what), result=result))


def _simulated(folder: RunFolder, bench_plan: BenchPlan, progress: OnStep) -> None:
    """Simulate what scenarios have simulated; what is there already is not done again."""
    folder.repair()
    wanted = ((name, one.simulated) for name, one in bench_plan.scenarios.items())
    todo = _left(wanted, folder.simulated())
    for index, (name, what) in enumerate(todo):
        left = (len(todo) - index) * SIMULATED_S
        progress(Step(f"{name}: {what}, simulated", index, len(todo), left))
        result = simulate(what)
        folder.append(Simulated(scenario=name, what=what, command=simulation(what), result=result))


def _left(
    wanted: Iterable[tuple[str, Sequence[str]]], there: Iterable[Memory | Simulated]
) -> list[tuple[str, str]]:
    """Return the parts of scenarios that no line is about yet."""
    done = {(one.scenario, one.what) for one in there}
    return [(name, what) for name, parts in wanted for what in parts if (name, what) not in done]


def _write_baseline(folder: RunFolder, self_test: SelfTest) -> None:
    """Keep the highest self-test beside what machine this is."""
    host = folder.host()
    if (self_test.baseline_pps or 0.0) > (host.baseline_pps or 0.0):
        folder.write_host(host.model_copy(update={"self_test": self_test}))


def _write_host(
    folder: RunFolder, plan: Order, tester: int, at: DeviceMachine, other: DeviceHost | None
) -> None:
    """Write what machine this is; of a resumed run, under "resumed"."""
    devices = {
        device_run.device.name: device_run.device.presence() for device_run in plan.device_runs
    }
    nics = map(Nic.read, other.tester_ports) if other is not None else ()
    here: dict[str, Any] = {
        "tester_core": tester,
        "device_core": at.core,
        "hugepages": at.hugepages,
        "devices": {name: presence.version for name, presence in devices.items()},
        "remarks": {name: p.remark for name, p in devices.items() if p.remark},
        "cannot": plan.cannot,
        "nics": {nic.name: described(nic) for nic in nics},
        "device_host": at.elsewhere,
    }
    host = environment().model_copy(update=here)
    if (folder.path / HOST).exists():
        first = folder.host()
        host = first.model_copy(update={"resumed": (*first.resumed, host)})
    folder.write_host(host)
