# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The machine that devices are started on, and what this one has for them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from convoy.dut.base import Device
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError, InputError
from convoy.host.cpu_speed import how
from convoy.host.machine import nodes, this_machine
from convoy.host.placement import place
from convoy.host.placement import read as read_topology
from convoy.results.documents import Host
from convoy.results.scenario import SetupSpec

HUGEPAGES_MB = 1024  # for a device; the tester needs none
NO_SPEEDS = "CPU speeds: neither cpufreq nor root, who may emulate it"


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


@dataclass(frozen=True)
class DeviceMachine:
    """The machine that devices are started on, this one or another, and what it has for them."""

    devices: Mapping[str, Device]
    core: int  # of a device with one poll loop
    allowed: int  # cores, of tester and device together
    numa_nodes: int
    hugepages: bool
    no_speeds: str  # why CPU speeds cannot be had; empty: they can
    place: Callable[[SetupSpec], tuple[int, ...]]  # a core for each function. Raises InputError
    elsewhere: Host | None = None  # what another machine is
    virtual_functions: bool = False  # devices' ports are such of a network card


def this_one(core: int) -> DeviceMachine:
    """Return this machine. core: the device's."""
    allowed = os.sched_getaffinity(0)
    numa = {node for number, node in nodes().items() if number in allowed}
    return DeviceMachine(
        {device.name: device for device in DEVICES},
        core,
        len(allowed),
        max(1, len(numa)),
        this_machine().hugepages_free_mb >= HUGEPAGES_MB,
        "" if how(max(allowed)) else NO_SPEEDS,
        placed,
    )


def placed(spec: SetupSpec) -> tuple[int, ...]:
    """Return a core for each function. Raises InputError where this machine has too few."""
    try:
        topology = read_topology()
    except ConvoyError as error:
        raise InputError(str(error)) from None
    allowed = os.sched_getaffinity(0)
    wanted = max(spec.cores, len(spec.functions) if spec.placement else 1)
    try:
        return place(topology, wanted, spec.placement or "same-node", allowed).functions
    except InputError as error:
        cores = "a core" if wanted == 1 else f"{wanted} cores"
        raise InputError(f"needs {cores} beside the tester's: {error}") from None
