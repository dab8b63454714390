# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices on another machine, as this one sees them: each does what its class does there."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from convoy.chain.nic import Nic
from convoy.dut.base import Ability, Cost, Device, PortAt, Presence, Running, Setup
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError, InputError
from convoy.host.cpu_time import CoreTime
from convoy.host.run_queue import ThreadTime
from convoy.results.scenario import SetupSpec
from convoy.run.device_machine import DeviceMachine
from convoy.run.remote import messages
from convoy.run.remote.connection import START_S, Connection

MARGIN_S = 15.0  # for the way
NO_SPEEDS = "CPU speeds: cores of another machine are not slowed down"


def _times(times: Sequence[messages.Times]) -> dict[int, ThreadTime]:
    return {one.thread: ThreadTime(one.ran_ns, one.waited_ns) for one in times}


class RemoteRunning(Running):
    """A device that was started on another machine. Times of this one are not compared with its."""

    polls_alone = False
    elsewhere = True

    def __init__(self, connection: Connection, request: messages.Start) -> None:
        self._connection, self._core = connection, request.cores[0]
        self._output: Mapping[str, str] = {}
        started = connection.ask(request, messages.Started, START_S)
        self.commands = started.commands
        self.notes = (*started.notes, f"on another machine: {connection.host.host}")

    def ready(self, deadline_s: float) -> None:
        """Wait until it says so there."""
        request = messages.Ready(deadline_s=deadline_s)
        self._connection.ask(request, messages.Done, deadline_s + MARGIN_S)

    def _look(self, core: int) -> messages.Seen:
        return self._connection.ask(messages.Look(core=core), messages.Seen)

    def alive(self) -> bool:
        """Return whether its processes still run."""
        return self._look(self._core).alive

    def cpu_ns(self) -> int | None:
        """Return the CPU time of its processes."""
        return self._look(self._core).cpu_ns

    def thread_times(self) -> Mapping[int, ThreadTime]:
        """Return the times of the threads that are watched."""
        return _times(self._look(self._core).watched)

    def process_times(self) -> Mapping[int, ThreadTime]:
        """Return the times of all threads of its processes."""
        return _times(self._look(self._core).processes)

    def core_time(self, core: int) -> CoreTime:
        """Return what one of its cores did."""
        seen = self._look(core)
        return CoreTime(seen.core_idle_ns, seen.core_at_ns)

    def counters(self) -> dict[str, Any] | None:
        """Return what it counts."""
        return self._connection.ask(messages.Count(), messages.Counters).counters

    def cost(self) -> Cost | None:
        """Return what packets cost by its own counters."""
        cost = self._costs().cost
        return None if cost is None else _cost(cost)

    def part_costs(self) -> Mapping[str, Cost]:
        """Return what a switch and each VNF behind it spend."""
        return {name: _cost(one) for name, one in self._costs().parts.items()}

    def _costs(self) -> messages.Costs:
        return self._connection.ask(messages.Charge(), messages.Costs)

    def output(self) -> Mapping[str, str]:
        """Return what its processes said."""
        return self._output

    def stop(self) -> None:
        """End it. Where the connection is lost, that has ended it."""
        if not self._connection.lost:
            self._output = self._connection.ask(messages.Stop(), messages.Stopped).output


def _cost(spent: messages.Spent) -> Cost:
    return Cost(spent.busy_cycles, spent.packets, spent.source)


class RemoteDevice(Device):
    """A kind of device, on another machine."""

    def __init__(self, device: Device, connection: Connection, nics: Sequence[Nic]) -> None:
        """nics: the tester's, wired to the device's."""
        self.name = device.name  # type: ignore[misc]  # each is a kind of its own
        kinds = device.ability.nics & {connection.host.kind}
        self.ability = Ability(device.ability.functions, kinds)  # type: ignore[misc]
        self.own_source_on = device.own_source_on  # type: ignore[misc]
        self._can = bool(device.ability.nics)
        self._connection, self._nics = connection, nics

    @cached_property
    def _presence(self) -> Presence:
        if not self._can:
            can = ", ".join(one.name for one in DEVICES if one.ability.nics)
            return Presence("", f"not started on another machine; those that are: {can}")
        reply = self._connection.ask(messages.IsPresent(device=self.name), messages.Present)
        if reply.missing:
            return Presence("", f"{self._connection.host.host}: {reply.missing}")
        return Presence(reply.version, "", reply.remark)

    def presence(self) -> Presence:
        """Return whether it is installed there; asked once."""
        return self._presence

    def tester_port(self, port: PortAt, index: int) -> str:
        """Return the tester's own interface."""
        nic = self._nics[index]
        if nic.kind == "dpdk":
            return f"dev:{nic.name}"
        return f"dev:net_{nic.kind}{index},iface={nic.name}"

    def cannot(self, setup: Setup) -> str:
        """Ask there; but some things need both sides on one machine."""
        spec, kind = setup.spec, self._connection.host.kind
        if spec is None or setup.back is not None:
            return "applications run on the machine of the device"
        if kind not in self.ability.port_kinds:
            return f"{self.name} has no {kind} ports to another machine"
        if spec.ports is not None and spec.ports != kind:
            return f"ports: {spec.ports}: the ports to the other machine are {kind}"
        if spec.chains > 1:
            return "several chains need a pair of ports each; there is one to the other machine"
        if spec.changes is not None:
            return "changes while packets flow are made from the device's own machine"
        return self._connection.ask(
            messages.Cannot(device=self.name, setup=spec), messages.Reason
        ).why

    def start(self, setup: Setup) -> Running:
        """Start it there."""
        if setup.spec is None:
            raise ConvoyError(f"{self.name}: only a scenario's setup is started elsewhere")
        request = messages.Start(
            device=self.name, setup=setup.spec, cores=setup.cores, hugepages=setup.hugepages
        )
        return RemoteRunning(self._connection, request)


def other_one(connection: Connection, nics: Sequence[Nic]) -> DeviceMachine:
    """Return the machine that a connection leads to. nics: the tester's, wired to its."""
    request = messages.Begin(ports=connection.host.device_ports)
    machine = connection.ask(request, messages.Machine)

    def place(spec: SetupSpec) -> tuple[int, ...]:
        reply = connection.ask(messages.Place(setup=spec), messages.Placed)
        if not reply.cores:
            raise InputError(f"{connection.host.host}: {reply.why}")
        return reply.cores

    return DeviceMachine(
        {device.name: RemoteDevice(device, connection, nics) for device in DEVICES},
        machine.core,
        machine.allowed + 1,  # the tester's is another machine's
        machine.numa_nodes,
        machine.hugepages,
        NO_SPEEDS,
        place,
        machine.host,
        machine.virtual_functions,
    )
