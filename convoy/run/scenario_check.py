# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a scenario names must exist: devices and their options, functions, setups, references.

All of it is asked before anything is measured: a mistake must not end hours of measuring, nor leave
a setup out. Whether this machine can do a setup is another question (convoy/run/order.py).
"""

from collections.abc import Collection, Iterator, Mapping

from pydantic import ValidationError

from convoy import reference
from convoy.base.problem import Loc, Problem, known, shown
from convoy.dut.base import Device
from convoy.dut.devices import DEVICES
from convoy.dut.functions import GROWING, STATEFUL, WORKLOADS
from convoy.dut.variants import variant
from convoy.errors import InputError, first_problem
from convoy.results.scenario import (
    MIXES,
    Applications,
    Capture,
    Pacing,
    Scenario,
    SetupSpec,
)
from convoy.run.two_hosts import BEHIND


def _named(
    loc: Loc, noun: str, names: Collection[str] | None, there: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each name of a list that does not exist."""
    for i, name in enumerate(names or ()):
        if name not in there:
            yield Problem((*loc, i), "there is none called so", known(noun, name, there),
                          shown(name))  # fmt: skip


def _options(loc: Loc, spec: SetupSpec, devices: Mapping[str, Device]) -> Iterator[Problem]:
    """Yield what is wrong with the options that a setup has for each device."""
    for name, options in spec.options.items():
        at = (*loc, "options", name)
        if name not in devices:
            yield Problem(at, "there is no such device", known("devices", name, devices))
            continue
        if spec.devices is not None and name not in spec.devices:
            yield Problem(at, "options of a device that does not take part",
                          f"add {name} to the setup's devices, or remove them")  # fmt: skip
        has = devices[name].ability.options
        for key, value in options.items():
            if key not in has:
                yield Problem((*at, key), f"{name} has no such option",
                              known("options", key, has))  # fmt: skip
            elif value not in has[key]:
                fix = known("values", value, has[key])
                yield Problem((*at, key), f"{name} knows no such value", fix, shown(value))


def _pacing(loc: Loc, pacing: Pacing | None) -> Iterator[Problem]:
    if pacing is not None and (pacing.on_us is None) != (pacing.off_us is None):
        yield Problem(loc, "on-us and off-us go together", "give both or neither")


def _changes(loc: Loc, spec: SetupSpec) -> Iterator[Problem]:
    if spec.changes is None:
        return
    try:
        variant([WORKLOADS[name](spec.entries) for name in spec.functions], spec.changes.replace)
    except InputError as error:
        yield Problem(loc, str(error), "add one of them to the functions, or remove it")
    if spec.deployment == "process" or spec.chains > 1:
        yield Problem(loc, "configurations of one process are replaced",
                      "remove chains, and deployment: process")  # fmt: skip


def _setup(loc: Loc, spec: SetupSpec, devices: Mapping[str, Device]) -> Iterator[Problem]:
    yield from _named((*loc, "devices"), "devices", spec.devices, devices)
    yield from _options(loc, spec, devices)
    wrong = list(_named((*loc, "functions"), "functions", spec.functions, WORKLOADS))
    yield from wrong
    if wrong:
        return
    for kind in dict.fromkeys(spec.functions):
        try:
            WORKLOADS[kind](spec.entries)
        except InputError as error:
            what, _, fix = str(error).partition("; ")
            yield Problem((*loc, "entries"), what, fix, shown(spec.entries))
    yield from _pacing((*loc, "pacing"), spec.pacing)
    yield from _changes((*loc, "changes"), spec)
    if set(spec.functions) & set(STATEFUL) and spec.flows is None:
        yield Problem(loc, "stateful functions remember flows",
                      "say how many there are: flows: 65536")  # fmt: skip
    if spec.connections is not None and not set(spec.functions) & set(STATEFUL):
        yield Problem((*loc, "connections"), "needs a stateful function",
                      f"add {' or '.join(STATEFUL)} to the functions, or remove it",
                      shown(spec.connections))  # fmt: skip
    if set(spec.functions) & set(STATEFUL) and (spec.convoys or spec.chains > 1):
        yield Problem((*loc, "functions"), "stateful functions are measured on one chain, "
                      "packet by packet", "remove chains and convoys")  # fmt: skip


def _captures(scenario: Scenario) -> Iterator[Problem]:
    """Yield why captures cannot be sizes of a scenario, or not under their names."""
    names: list[str] = []
    for i, size in enumerate(scenario.sizes):
        if not isinstance(size, Capture):
            continue
        name = str(size)
        if name.isdecimal() or name in MIXES or name in names or not name.isprintable():
            yield Problem(("sizes", i), "a frame size or another capture is called so, or it does "
                          "not print", "give it another name: {capture: FILE, name: NAME}",
                          shown(name))  # fmt: skip
        names.append(name)
    if not names:
        return
    for setup, spec in scenario.setups.items():
        at: Loc = ("setups", setup)
        if set(spec.functions) & set(STATEFUL):
            yield Problem((*at, "functions"), "stateful functions are measured with made packets",
                          "remove the captures from sizes, or this setup")  # fmt: skip
        if set(spec.functions) & set(GROWING):
            yield Problem((*at, "functions"), "a capture's full packets have no room to grow in",
                          "remove the captures from sizes, or this setup")  # fmt: skip
        if spec.queues > 1:
            yield Problem((*at, "queues"), "a capture is sent by one queue",
                          "remove queues, or the captures from sizes",
                          shown(spec.queues))  # fmt: skip


def _applications(
    loc: Loc, applications: Applications | None, setups: Mapping[str, SetupSpec], whose: str
) -> Iterator[Problem]:
    for i, name in enumerate((applications.setups if applications else None) or ()):
        at = (*loc, "setups", i)
        if name not in setups:
            yield Problem(at, f"is none of {whose}", known("setups", name, setups), shown(name))
        elif setups[name].functions not in BEHIND:
            yield Problem(at, "has other functions than one firewall or router",
                          "give setups of one", shown(name))  # fmt: skip


def _quick(scenario: Scenario) -> Iterator[Problem]:
    """Yield why --quick would leave no whole scenario."""
    quick, setups = scenario.quick, scenario.setups
    unknown = list(_named(("quick", "setups"), "setups", quick.setups, setups))
    yield from unknown
    if unknown:
        return
    left = {name: setups[name] for name in (setups if quick.setups is None else quick.setups)}
    if quick.applications is not None:
        where: Loc = ("quick", "applications")
        yield from _applications(where, quick.applications, left, "quick.setups")
    elif scenario.applications is not None:
        for name in scenario.applications.setups or ():
            if name in setups and name not in left:
                fix = "add it to quick.setups, or give quick.applications.setups"
                yield Problem(("quick", "setups"), f"lack '{name}' of applications.setups", fix)
    try:
        scenario.quickly()
    except ValidationError as error:
        yield Problem(("quick",), f"leaves no whole scenario: {first_problem(error)}")


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield everything that a scenario names and that does not exist."""
    devices = {device.name: device for device in DEVICES}
    setups = scenario.setups
    yield from _named(("devices",), "devices", scenario.devices, devices)
    yield from _named(("quick", "devices"), "devices", scenario.quick.devices, devices)
    yield from _pacing(("pacing",), scenario.pacing)
    yield from _named(("references",), "references", scenario.references, reference.names())
    yield from _captures(scenario)
    for name, spec in setups.items():
        yield from _setup(("setups", name), spec, devices)
    for i, one in enumerate(scenario.compare):
        for key, named in (("setup", one.setup), ("over", one.over)):
            if named not in setups:
                fix = known("setups", named, setups)
                yield Problem(("compare", i, key), "is none of the setups", fix, shown(named))
        for j, size in enumerate(one.sizes or ()):
            if size not in scenario.sizes:
                fix = known("sizes", size, map(str, scenario.sizes))
                yield Problem(("compare", i, "sizes", j), "is none of the sizes", fix, shown(size))
    for i, target in enumerate(scenario.targets):
        at: Loc = ("targets", i)
        if target.setup not in setups:
            fix = known("setups", target.setup, setups)
            yield Problem((*at, "setup"), "is none of the setups", fix, shown(target.setup))
        for key, device in (("device", target.device), ("over", target.over)):
            if device is not None and device not in devices:
                fix = known("devices", device, devices)
                yield Problem((*at, key), "there is no such device", fix, shown(device))
    yield from _applications(("applications",), scenario.applications, setups, "the setups")
    yield from _quick(scenario)
