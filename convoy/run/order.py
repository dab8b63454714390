# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Scenarios to device runs: who is started how often, in which order; and who cannot take part.

A device run is one device, started once, with one setup and all frame sizes. Devices alternate:
A B C, then A B C again, and the first of them as its own A/A control: what it differs from itself
by is noise.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from convoy.dut.base import Device, Flows, PortAt, Presence, Setup
from convoy.dut.functions import STATEFUL
from convoy.errors import InputError
from convoy.results.documents import Cannot, Chosen
from convoy.results.scenario import Scenario, SetupSpec
from convoy.results.trials import Role, display_name
from convoy.run.application import application
from convoy.run.simulated import SIMULATED_S
from convoy.run.two_hosts import BEHIND, KINDS, both_ways
from convoy.run.workload import function
from convoy.search.goals import PROFILES, SMOKE

PORT_KINDS = ("vhost-user", "memif", "virtio-user", "af_packet", "af_xdp", "dpdk", "dummy")
PROBE_FLOWS = 4096
FORGOTTEN_S = 3  # idle, for flows of new connections
START_S = 2.5  # of a device, as a first estimate
LATENCY_S = 0.5
SEARCH_TRIALS = 12.0
NO_RACE = "not comparable"  # in the remark of a device that is no evidence
MEMORY_S = 3.0  # of a program that measures in memory
APPLICATION_S = {SMOKE: 1, "quick": 1, "standard": 5, "full": 30}  # of each client: whole seconds


@dataclass(frozen=True)
class DeviceRun:
    """A device, started once."""

    scenario: str
    setup: str
    spec: SetupSpec
    device: Device
    role: Role
    port_kind: str
    cpu_speed: float
    repeat: int
    remark: str = ""  # belongs beside each of its results
    applications: tuple[str, ...] = ()  # rather than a tester's packets
    cores: tuple[int, ...] = ()  # the device's, where they are not the run's
    sizes: tuple[str, ...] = ()  # only these frame sizes; none: all of the scenario
    again: bool = False  # a round beyond those that were asked for

    @property
    def name(self) -> str:
        """Return who is measured, as progress shows it."""
        return display_name(self.device.name, self.role)

    @property
    def what(self) -> str:
        """Return the device run as progress shows it."""
        if self.applications:
            return f"{self.scenario}: {self.name}, {self.setup}, {', '.join(self.applications)}"
        speed = f" at {self.cpu_speed:.0%}" if self.cpu_speed != 1 else ""
        bytes_ = [size for size in self.sizes if size.isdigit()]
        others = [size for size in self.sizes if not size.isdigit()]
        sizes = (f", {', '.join(bytes_)} B" if bytes_ else "") + "".join(f", {o}" for o in others)
        again = " repeated" if self.again else ""
        return f"{self.scenario}: {self.name}, {self.setup}{speed}{sizes}{again}"


@dataclass(frozen=True)
class Order:
    """What a run does."""

    device_runs: tuple[DeviceRun, ...]
    cannot: tuple[Cannot, ...]


def setup_of(
    device: Device, spec: SetupSpec, kind: str, cores: tuple[int, ...], folder: Path
) -> Setup:
    """Return a device's configuration, between two meeting points in a folder."""
    options = spec.options.get(device.name, {})
    left, right = (PortAt(kind, address, spec.queues) for address in addresses(kind, folder))
    remembered = flows_of(spec)
    count = remembered.count if remembered else 0
    functions = tuple(function(name, spec.entries, count) for name in spec.functions)
    return Setup(
        functions,
        left,
        right,
        cores,
        folder,
        deployment=spec.deployment,
        options=options,
        flows=remembered,
        oversubscribed=spec.chains > spec.cores,
        spec=spec,
    )


def flows_of(spec: SetupSpec) -> Flows | None:
    """Return what stateful functions are to remember: all flows, and those of probes.

    Flows of new connections are forgotten soon: those of a few seconds must fit.
    """
    if not set(spec.functions) & set(STATEFUL):
        return None
    count = (spec.flows or 0) + (spec.flows or 0) // 4 + PROBE_FLOWS
    return Flows(count, FORGOTTEN_S if spec.connections else None)


def chains_of(
    device: Device, spec: SetupSpec, kind: str, cores: tuple[int, ...], folder: Path
) -> tuple[Setup, ...]:
    """Return a setup for each of the independent chains; several have folders of their own."""
    if spec.chains == 1:
        return (setup_of(device, spec, kind, cores, folder),)
    # Interfaces are named after their folder's last letters.
    places = [folder / f"{folder.name[-5:]}{number}" for number in range(spec.chains)]
    own = spec.cores >= spec.chains
    return tuple(
        setup_of(device, spec, kind, cores[number : number + 1] if own else cores, place)
        for number, place in enumerate(places)
    )


def both_ways_setup(
    device: Device, spec: SetupSpec, kind: str, cores: tuple[int, ...], folder: Path
) -> Setup:
    """Return the configuration of a device that stands between a client and a server."""
    there, back = both_ways(spec.functions[0], spec.entries)
    plain = setup_of(device, spec, kind, cores, folder)
    return replace(plain, functions=(there,), back=(back,))


def addresses(kind: str, folder: Path) -> tuple[str, str]:
    """Return where a device and the tester meet: sockets in a folder, or interfaces."""
    if kind.startswith("af_") or kind == "tap":
        mark = folder.name[-6:]
        return f"cvl{mark}", f"cvr{mark}"
    return str(folder / "left.sock"), str(folder / "right.sock")


def port_kind(device: Device, spec: SetupSpec) -> str:
    """Return a setup's kind of ports, or the first that a device has of those that compare best."""
    if spec.ports is not None and device.name != "dummy":
        return spec.ports
    kinds = device.ability.port_kinds
    return next((kind for kind in PORT_KINDS if kind in kinds), "vhost-user")


def lacking(scenario: Scenario, cores: int, numa_nodes: int, virtual_functions: bool) -> str:
    """Return why a scenario cannot run on such a machine, or the empty string."""
    if scenario.pending:
        return scenario.pending
    if scenario.needs.numa_nodes > numa_nodes:
        return f"needs {scenario.needs.numa_nodes} NUMA nodes; this machine has {numa_nodes}"
    if scenario.needs.virtual_functions and not virtual_functions:
        return (
            "needs virtual functions of a network card as the device's ports (bench run "
            "--device-host, --device-ports dpdk:PCI-ADDRESS)"
        )
    if scenario.needs.cores > cores:
        return f"needs {scenario.needs.cores} cores; this process may use {cores}: see taskset"
    return ""


def _contenders(
    name: str,
    scenario: Scenario,
    devices: Mapping[str, Device],
    presence_of: Callable[[str], Presence | None],
    unplaced: Mapping[str, str],
) -> tuple[dict[tuple[str, str], str], list[Cannot]]:
    """Return who does which setup, in the order of a round, with remarks; and who cannot."""
    contenders: dict[tuple[str, str], str] = {}
    cannot: list[Cannot] = []
    for word in scenario.devices:
        device, presence = devices.get(word), presence_of(word)
        if device is None or presence is None:
            cannot.append(Cannot(name, "", word, "there is no such device in this version"))
        elif not presence.here:
            cannot.append(Cannot(name, "", word, presence.missing))
        else:
            for setup, spec in scenario.setups.items():
                if spec.devices is not None and word not in spec.devices:
                    continue
                if setup in unplaced:
                    continue  # reported once, for all devices
                configuration = setup_of(device, spec, port_kind(device, spec), (1,), Path("none"))
                why = device.cannot(configuration)
                if spec.changes is not None and not device.ability.changes:
                    why = why or f"{word} is not told of changes while packets flow"
                if why:
                    cannot.append(Cannot(name, setup, word, why))
                else:
                    remark = presence.remark or device.remark(configuration)
                    contenders[setup, word] = remark
    return contenders, cannot


class _Points:
    """Of a scenario, what is to be measured."""

    def __init__(self, chosen: Sequence[Chosen] | None) -> None:
        """chosen: None: all of it."""
        self._chosen = chosen

    def has(self, setup: str, device: str) -> bool:
        """Return whether packets are to pass a device in a setup, at whatever speed."""
        chosen = self._chosen
        if chosen is None:
            return True
        return any((one.setup, one.device) == (setup, device) and one.sizes for one in chosen)

    def sizes(self, setup: str, device: str, speed: float) -> tuple[str, ...] | None:
        """Return the frame sizes of a device run, () for all; None: it is not to be done."""
        if self._chosen is None:
            return ()
        return next((one.sizes for one in self._of(setup, device, speed) if one.sizes), None)

    def applications(self, setup: str, device: str, all_: tuple[str, ...]) -> tuple[str, ...]:
        """Return which applications are to run."""
        if self._chosen is None:
            return all_
        wanted = {name for one in self._of(setup, device, 1.0) for name in one.applications}
        return tuple(name for name in all_ if name in wanted)

    def _of(self, setup: str, device: str, speed: float) -> list[Chosen]:
        key = setup, device, speed
        return [c for c in self._chosen or () if (c.setup, c.device, c.cpu_speed) == key]


def order(
    scenarios: Mapping[str, Scenario],
    devices: Mapping[str, Device],
    repeats: int,
    cores: int,
    numa_nodes: int,
    no_speeds: str = "",
    place: Callable[[SetupSpec], tuple[int, ...]] = lambda spec: (),
    elsewhere: bool = False,
    only: Mapping[str, Sequence[Chosen]] = {},
    virtual_functions: bool = False,
) -> Order:
    """Return the device runs of a run, and what is left out. no_speeds: why no core can
    be slowed down. elsewhere: devices are on another machine. only: of some scenarios, the points
    that are measured. virtual_functions: devices' ports are such of a network card.

    place: cores for a setup that asks for its own; raises InputError where there are none.
    """
    device_runs: list[DeviceRun] = []
    cannot: list[Cannot] = []

    @cache
    def presence_of(word: str) -> Presence | None:
        """Look for a device, once; None: there is none called so."""
        device = devices.get(word)
        return device.presence() if device is not None else None

    for name, scenario in scenarios.items():
        why = lacking(scenario, cores, numa_nodes, virtual_functions)
        if why:
            cannot.append(Cannot(name, "", "", why))
            continue
        if elsewhere and scenario.in_memory:
            cannot.append(Cannot(name, "", "", "in memory: measured on the tester's machine only"))
        if no_speeds and any(speed != 1.0 for speed in scenario.cpu_speeds):
            cannot.append(Cannot(name, "", "", no_speeds))
        if not scenario.setups:
            continue  # measured in memory, or simulated
        placed: dict[str, tuple[int, ...]] = {}
        unplaced: dict[str, str] = {}
        for setup, spec in scenario.setups.items():
            try:
                placed[setup] = place(spec) if spec.placement or spec.cores > 1 else ()
            except InputError as error:
                unplaced[setup] = str(error)
        cannot += [Cannot(name, setup, "", why) for setup, why in unplaced.items()]
        remarks, missing = _contenders(name, scenario, devices, presence_of, unplaced)
        points = _Points(only.get(name))
        if not scenario.packets:
            remarks, missing = {}, [c for c in missing if not c.setup]
        cannot += missing
        contenders = [key for key in remarks if points.has(*key)]
        if name in only:  # for claims, of which it is no evidence
            emulated = [key for key in contenders if NO_RACE in remarks[key]]
            cannot += [Cannot(name, *key, remarks[key]) for key in emulated]
            contenders = [key for key in contenders if key not in emulated]
        first = next(iter(scenario.setups))
        control = next((c for c in contenders if c[0] == first and c[1] != "dummy"), None)
        control = (control or next(iter(contenders), None)) if scenario.noise else None
        for repeat in range(repeats):
            for speed in scenario.cpu_speeds:
                if speed != 1.0 and no_speeds:
                    continue
                for setup in scenario.setups:
                    here: list[tuple[Role, str]] = [
                        ("device", word) for s, word in contenders if s == setup
                    ]
                    if control is not None and control[0] == setup and speed == 1.0:
                        here.append(("control", control[1]))
                    for role, word in here:
                        spec, device = scenario.setups[setup], devices[word]
                        kind = port_kind(device, spec)
                        remark = remarks[setup, word]
                        sizes = points.sizes(setup, device.name, speed)
                        if sizes is None:
                            continue
                        device_runs.append(
                            DeviceRun(name, setup, spec, device, role, kind, speed, repeat, remark,
                                 cores=placed[setup], sizes=sizes)
                        )  # fmt: skip
            served = list(
                _with_applications(
                    name, scenario, devices, presence_of, repeat, points, name in only
                )
            )
            device_runs += [device_run for device_run, _ in served if device_run is not None]
            cannot += [why for _, why in served if why is not None and repeat == 0]
    return Order(tuple(device_runs), tuple(cannot))


def _with_applications(
    name: str,
    scenario: Scenario,
    devices: Mapping[str, Device],
    presence_of: Callable[[str], Presence | None],
    repeat: int,
    points: _Points,
    for_claims: bool,
) -> Iterator[tuple[DeviceRun | None, Cannot | None]]:
    """Yield the device runs of one round, and what is left out. for_claims: what is emulated is."""
    if scenario.applications is None:
        return
    configuration = scenario.applications
    for app in map(application, configuration.run):
        if app.missing():
            yield None, Cannot(name, f"all, with {app.name}", "", app.missing())
    here = tuple(app for app in configuration.run if not application(app).missing())
    if os.geteuid() != 0:
        yield None, Cannot(name, "all, with applications", "", "their two hosts need root")
        return
    one = [name for name, spec in scenario.setups.items() if spec.functions in BEHIND]
    for setup in (configuration.setups or one) if here else ():
        spec = scenario.setups[setup]
        for word in scenario.devices:
            device, presence = devices.get(word), presence_of(word)
            if device is None or presence is None or not presence.here or word == "dummy":
                continue  # was reported for its packets
            if spec.devices is not None and word not in spec.devices:
                continue
            run = points.applications(setup, word, here)
            if not run:
                continue
            kind = next((kind for kind in KINDS if kind in device.ability.port_kinds), "")
            why = "it has no ports that a host's interface can be" if not kind else ""
            between = both_ways_setup(device, spec, kind, (1,), Path("none"))
            why = why or device.cannot(between)
            remark = "" if why else presence.remark or device.remark(between)
            why = why or (remark if for_claims and NO_RACE in remark else "")
            if why:
                yield None, Cannot(name, f"{setup}, with applications", word, why)
            else:
                yield (
                    DeviceRun(name, setup, spec, device, "device", kind, 1.0, repeat, remark, run),
                    None,
                )


def estimate_s(device_run: DeviceRun, scenario: Scenario, profile: str) -> float:
    """Return how long a device run takes, before anybody has measured one."""
    if device_run.device.name == "dummy":
        return 0.1
    if device_run.applications and scenario.applications is not None:
        each = [len(scenario.applications.sizes) if application(name).by_size else 1
                for name in device_run.applications]  # fmt: skip
        return START_S + sum(each) * (APPLICATION_S[profile] + 0.5)
    sizes = len(device_run.sizes or scenario.sizes)
    per_point = LATENCY_S * (len(scenario.latency) + len(scenario.rates_pps) + scenario.saturation)
    if scenario.search:
        trial_s = (PROFILES[profile] or (1.0, 21.0, 0.005))[0]
        total_s = (PROFILES[profile] or (1.0, 21.0, 0.005))[1]
        per_point += SEARCH_TRIALS * (trial_s + 0.05) if total_s < 2 else 10 * total_s
    return START_S + sizes * per_point


def seconds(
    device_runs: Sequence[DeviceRun], scenarios: Mapping[str, Scenario], profile: str
) -> float:
    """Return the estimate for many device runs, and for what needs no device."""
    parts = sum(MEMORY_S * len(one.in_memory) for one in scenarios.values())
    parts += sum(SIMULATED_S * len(one.simulated) for one in scenarios.values())
    return parts + sum(
        estimate_s(device_run, scenarios[device_run.scenario], profile)
        for device_run in device_runs
    )
