# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Scenarios to turns: who is started how often, in which order; and who cannot take part.

A turn is one device, started once, with one setup and all frame sizes. Devices take turns: A B C,
then A B C again, and the first of them once more under the name "A (again)": what A differs from
itself is noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convoy.dut.base import Device, PortAt, Setup
from convoy.run.scenario import Scenario, SetupSpec
from convoy.run.workload import function
from convoy.search.goals import PROFILES

PORT_KINDS = ("vhost-user", "memif", "virtio-user", "af_packet", "af_xdp", "dummy")
AGAIN = " (again)"
START_S = 2.5  # of a device, as a first estimate
LATENCY_S = 0.5
SEARCH_TRIALS = 12.0
MEMORY_S = 3.0  # of a program that measures in memory


@dataclass(frozen=True)
class Turn:
    """A device, started once."""

    scenario: str
    setup: str
    spec: SetupSpec
    device: Device
    arm: str
    port_kind: str
    cpu_speed: float
    repeat: int
    remark: str = ""  # belongs beside each of its results

    @property
    def what(self) -> str:
        """Return the turn as progress shows it."""
        speed = f" at {self.cpu_speed:.0%}" if self.cpu_speed != 1 else ""
        return f"{self.scenario}: {self.arm}, {self.setup}{speed}"


@dataclass(frozen=True)
class Cannot:
    """Something of a scenario that is not measured here, and why."""

    scenario: str
    setup: str  # empty: all of them
    device: str  # empty: all of them
    why: str

    def as_json(self) -> dict[str, str]:
        """Return it as a run's plan keeps it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Order:
    """What a run does."""

    turns: tuple[Turn, ...]
    cannot: tuple[Cannot, ...]


def setup_of(
    device: Device, spec: SetupSpec, kind: str, cores: tuple[int, ...], folder: Path
) -> Setup:
    """Return what a device is told, between two meeting points in a folder."""
    options = spec.options.get(device.name, {})
    left, right = (PortAt(kind, address) for address in addresses(kind, folder))
    functions = tuple(function(name, spec.entries) for name in spec.functions)
    return Setup(functions, left, right, cores, folder, deployment=spec.deployment, options=options)


def addresses(kind: str, folder: Path) -> tuple[str, str]:
    """Return where a device and the tester meet: sockets in a folder, or interfaces."""
    if kind.startswith("af_"):
        mark = folder.name[-6:]
        return f"cvl{mark}", f"cvr{mark}"
    return str(folder / "left.sock"), str(folder / "right.sock")


def port_kind(device: Device) -> str:
    """Return the first kind of ports that a device has of those that compare best."""
    kinds = device.ability.port_kinds
    return next((kind for kind in PORT_KINDS if kind in kinds), "vhost-user")


def lacking(scenario: Scenario, cores: int, numa_nodes: int) -> str:
    """Return why a scenario cannot run on such a machine, or the empty string."""
    if scenario.pending:
        return scenario.pending
    if scenario.needs.numa_nodes > numa_nodes:
        return f"needs {scenario.needs.numa_nodes} NUMA nodes; this machine has {numa_nodes}"
    if scenario.needs.cores > cores:
        return f"needs {scenario.needs.cores} cores; this process may use {cores}"
    return ""


def _arms(
    name: str, scenario: Scenario, devices: Mapping[str, Device]
) -> tuple[list[tuple[str, str, Device]], dict[str, str], list[Cannot]]:
    """Return who does which setup, in the order of a round; remarks; and who cannot."""
    arms: list[tuple[str, str, Device]] = []
    remarks: dict[str, str] = {}
    cannot: list[Cannot] = []
    for word in scenario.devices:
        device = devices.get(word)
        presence = device.presence() if device is not None else None
        remarks[word] = presence.remark if presence is not None else ""
        if device is None:
            cannot.append(Cannot(name, "", word, "there is no such device in this version"))
        elif presence is not None and not presence.here:
            cannot.append(Cannot(name, "", word, presence.missing))
        else:
            for setup, spec in scenario.setups.items():
                if spec.devices is not None and word not in spec.devices:
                    continue
                asked = setup_of(device, spec, port_kind(device), (1,), Path("none"))
                why = device.cannot(asked)
                if why:
                    cannot.append(Cannot(name, setup, word, why))
                else:
                    arms.append((setup, word, device))
    return arms, remarks, cannot


def order(
    scenarios: Mapping[str, Scenario],
    devices: Mapping[str, Device],
    repeats: int,
    cores: int,
    numa_nodes: int,
    speeds: bool = True,
) -> Order:
    """Return the turns of a run, and what is left out. speeds: a core can be slowed down."""
    turns: list[Turn] = []
    cannot: list[Cannot] = []
    for name, scenario in scenarios.items():
        why = lacking(scenario, cores, numa_nodes)
        if why:
            cannot.append(Cannot(name, "", "", why))
            continue
        if not speeds and any(speed != 1.0 for speed in scenario.cpu_speeds):
            why = "CPU speeds: neither cpufreq nor root, who may emulate it"
            cannot.append(Cannot(name, "", "", why))
        if not scenario.setups:
            continue  # measured in memory
        arms, remarks, missing = _arms(name, scenario, devices)
        cannot += missing
        first = next(iter(scenario.setups))
        again = next((arm for arm in arms if arm[0] == first and arm[2].name != "dummy"), None)
        again = (again or next(iter(arms), None)) if scenario.noise else None
        for repeat in range(repeats):
            for speed in scenario.cpu_speeds:
                if speed != 1.0 and not speeds:
                    continue
                for setup in scenario.setups:
                    here = [(word, device) for s, word, device in arms if s == setup]
                    named = [(word, device) for word, device in here]
                    if again is not None and again[0] == setup and speed == 1.0:
                        named.append((again[1] + AGAIN, again[2]))
                    for arm, device in named:
                        kind = port_kind(device)
                        spec = scenario.setups[setup]
                        remark = remarks[device.name]
                        turns.append(
                            Turn(name, setup, spec, device, arm, kind, speed, repeat, remark)
                        )
    return Order(tuple(turns), tuple(cannot))


def estimate_s(turn: Turn, scenario: Scenario, profile: str) -> float:
    """Return how long a turn takes, before anybody has measured one."""
    if turn.device.name == "dummy":
        return 0.1
    sizes = len(scenario.sizes)
    per_point = LATENCY_S * (len(scenario.latency) + len(scenario.rates_pps))
    if scenario.search:
        trial_s = (PROFILES[profile] or (1.0, 21.0, 0.005))[0]
        total_s = (PROFILES[profile] or (1.0, 21.0, 0.005))[1]
        per_point += SEARCH_TRIALS * (trial_s + 0.05) if total_s < 2 else 10 * total_s
    return START_S + sizes * per_point


def seconds(turns: Sequence[Turn], scenarios: Mapping[str, Scenario], profile: str) -> float:
    """Return the estimate for many turns, and for what scenarios measure in memory."""
    in_memory = sum(MEMORY_S * len(one.in_memory) for one in scenarios.values())
    return in_memory + sum(estimate_s(turn, scenarios[turn.scenario], profile) for turn in turns)
