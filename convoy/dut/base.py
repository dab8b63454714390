# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A device under test: something that takes packets from one port to another through functions.

Life: ability and presence are asked first, and start nothing; start gives a Running, used with
`with`; ready waits until the device's own word says it forwards; at the end nothing is left.
"""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from convoy.errors import InputError
from convoy.host.cpu_time import CoreTime, core_time, cpu_ns
from convoy.host.run_queue import ThreadTime, thread_times
from convoy.host.scope import Scope
from convoy.results.scenario import SetupSpec


@dataclass(frozen=True)
class Function:
    """A network function with its configuration, as a chain descriptor writes it.

    files: texts by key of the configuration, which has the path of a file with each.
    """

    type: str
    config: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PortAt:
    """Where a device and the tester meet.

    vhost-user: the device has the switch's side and makes the socket at address. Of a device that
    connects instead (Device.tester_port says so) the tester makes it. virtio-user: the device has
    the guest's side and connects; the tester makes the socket. virtio-user-server: the same, but
    the device makes the socket, for a switch that connects. memif: the device makes the socket.
    af_packet, af_xdp: the device makes a pair of veth; address is the name of the tester's end,
    to which the tester attaches in that way. tap: the device makes an interface of that name.

    nic: it is there already, and wired to the tester's: address is an interface's name (af_packet,
    af_xdp) or PCI address (dpdk). Only the device uses it.
    """

    kind: str  # as in chain descriptors: vhost-user, memif, af_packet ...
    address: str  # a socket's path or an interface's name
    queues: int = 1  # pairs
    slots: int | None = None  # of each ring; None: as many as the device has
    nic: bool = False


@dataclass(frozen=True)
class Flows:
    """What stateful functions are to remember at once."""

    count: int
    idle_s: int | None = None  # all time-outs, whatever the protocol; None: the device's own


@dataclass(frozen=True)
class Setup:
    """What a device is to do for one measurement: from left to right, through functions."""

    functions: tuple[Function, ...]
    left: PortAt
    right: PortAt
    cores: tuple[int, ...]  # the device's own, one for each worker
    folder: Path  # its private place for files, which exists
    hugepages: bool = False  # where not all devices get them, none does
    deployment: str = "inline"
    options: Mapping[str, str] = field(default_factory=dict)  # the device's own: Ability.options
    # From right to left, for applications, whose answers come back. None: nothing comes that way.
    back: tuple[Function, ...] | None = None
    # Of stateful functions: what comes from the right goes back through the same ones. None: there
    # are none.
    flows: Flows | None = None
    oversubscribed: bool = False  # others poll on its cores: its loops yield to them
    # Of a switch: ports of the VNFs behind it, two for each. What comes by the left port leaves by
    # the first of them, what comes by the second by the third, and by the last one by the right.
    behind: tuple[PortAt, ...] = ()
    spec: SetupSpec | None = None  # what a scenario says, of which this was made

    @property
    def ports(self) -> tuple[PortAt, ...]:
        """Return all ports. What comes by one with an even index leaves by the one after it."""
        return (self.left, *self.behind, self.right)

    @property
    def path(self) -> str:
        """Return the functions' types, as reports name the setup."""
        return " → ".join(function.type for function in self.functions) or "no function"


@dataclass(frozen=True)
class Ability:
    """What a kind of device can do at all."""

    functions: frozenset[str]
    port_kinds: frozenset[str]
    nics: frozenset[str] = frozenset()  # kinds of ports that it has on interfaces that are there
    deployments: frozenset[str] = frozenset({"inline"})
    chains: bool = True  # several functions, one after another
    queues: int = 1  # most, of a port
    cores: int = 1  # most, that it uses
    both_ways: bool = False  # knows Setup.back
    remembers: bool = False  # knows Setup.flows
    yields: bool = False  # knows Setup.oversubscribed, or has no poll loop
    switches: bool = False  # knows Setup.behind
    changes: bool = False  # knows Running.change
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values, default first
    reorders: Mapping[str, str] = field(default_factory=dict)  # options with which it may


@dataclass(frozen=True)
class Presence:
    """Whether a device is installed here."""

    version: str  # empty: it is not
    missing: str = ""  # then: "not installed: ..." with the way to get it
    remark: str = ""  # belongs beside each of its results: "emulated: not comparable"

    @property
    def here(self) -> bool:
        """Return whether it is."""
        return not self.missing


@dataclass(frozen=True)
class Cost:
    """What a device says it spent since it started; two of these make a difference."""

    busy_cycles: int  # TSC ticks spent on packets, by its own account
    packets: int
    source: str  # who counted: "convoyd's workers", "pmd-stats-show"


class Changer(Scope):
    """Makes a running device go over to other configurations; used by one thread."""

    @abstractmethod
    def change(self, number: int) -> None:
        """Go over to one of them, by its place; return when it is in effect. Raises ConvoyError."""

    @abstractmethod
    def threads(self) -> tuple[int, ...]:
        """Return the device's threads that do it."""


class Running(Scope):
    """A device that was started."""

    # What was run, for the results. ("#", text): what it was told in another way.
    commands: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()  # what must be said wherever a result of it is shown
    polls_alone = True  # its poll loop, if it has one, needs no other thread in order to go on
    # The kernel does a part of its work, on any core, where others interrupt it at any time.
    in_kernel = False
    elsewhere = False  # on another machine: nothing of it is seen in this one's /proc

    @property
    def command_lines(self) -> list[str]:
        """Return the commands as a shell takes them."""
        return [
            f"# {command[1]}" if command[0] == "#" else shlex.join(command)
            for command in self.commands
        ]

    @abstractmethod
    def ready(self, deadline_s: float) -> None:
        """Wait until it says that it forwards. Raises ConvoyError with its words if it does not."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether its processes still run."""

    def watched(self) -> tuple[int, ...]:
        """Return the processes with its poll loops: who keeps these off their cores disturbs it.

        None where there is no such loop, or where several share a core, which is then measured.
        """
        return ()

    def cooperative_threads(self) -> tuple[int, ...]:
        """Return the threads that share a core and give it to each other by sched_yield(2).

        Under fair scheduling that reaches no further than a session, and each process has its own;
        as SCHED_FIFO they take turns.
        """
        return ()

    def poll_threads(self) -> tuple[int, ...]:
        """Return the threads with its poll loops; none: they cannot be told from others."""
        return ()

    def counters(self) -> dict[str, Any] | None:
        """Return what it counts, by its own names, or None: it cannot be asked."""
        return None

    def cost(self) -> Cost | None:
        """Return what packets cost by its own counters, or None: it does not count that."""
        return None

    def part_costs(self) -> Mapping[str, Cost]:
        """Return the same for each of its parts that counts, by name; none: it is one program."""
        return {}

    def output(self) -> Mapping[str, str]:
        """Return what its processes said, by their names; also after it was stopped."""
        return {}

    def processes(self) -> tuple[int, ...]:
        """Return the ids of its processes, whose CPU time is its own; none: the kernel's work."""
        return ()

    def cpu_ns(self) -> int | None:
        """Return the CPU time of its processes; None: it has none."""
        return cpu_ns(self.processes()) if self.processes() else None

    def thread_times(self) -> Mapping[int, ThreadTime]:
        """Return the times of all threads of the processes that are watched."""
        return thread_times(self.watched())

    def process_times(self) -> Mapping[int, ThreadTime]:
        """Return the times of all threads of its processes."""
        return thread_times(self.processes())

    def core_time(self, core: int) -> CoreTime:
        """Return what one of its cores did, whoever used it."""
        return core_time(core, wake=not (self.processes() or self.watched()))

    def changer(self, setups: Sequence[Setup]) -> "Changer":
        """Return what makes it run other configurations, while packets flow."""
        raise NotImplementedError

    @abstractmethod
    def stop(self) -> None:
        """End it. Nothing of it is left: no process, no socket."""

    def _leave(self) -> None:
        self.stop()


class Device(ABC):
    """A kind of device under test."""

    name: ClassVar[str]  # as commands and results write it
    ability: ClassVar[Ability]
    connects: ClassVar[bool] = False  # its vhost-user ports connect; the other side makes sockets
    # Kinds of ports on which l2fwd writes a source address of the device's own.
    own_source_on: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def presence(self) -> Presence:
        """Look whether it is installed; start nothing that stays."""

    @abstractmethod
    def start(self, setup: Setup) -> Running:
        """Start it. Raises ConvoyError with its words if it does not run."""

    def remark(self, setup: Setup) -> str:
        """Return what belongs beside its results in a setup, besides what presence() says."""
        return ""

    def tester_port(self, port: PortAt, index: int) -> str:
        """Return how the tester attaches to a port, as convoy-gen --port takes it.

        index: of the port, 0 or 1.
        """
        queues = f",queues={port.queues}" if port.queues > 1 else ""
        return {
            "vhost-user": f"vhost-user:{port.address}{queues}",
            "virtio-user": f"dev:net_vhost{index},iface={port.address}{queues}",
            "memif": f"dev:net_memif{index},role=client,socket={port.address}",
            "af_packet": f"dev:net_af_packet{index},iface={port.address}",
            "af_xdp": f"dev:net_af_xdp{index},iface={port.address}",
        }[port.kind]

    def cannot(self, setup: Setup) -> str:
        """Return why this device cannot do that, or the empty string: it can."""
        types: Sequence[str] = [function.type for function in setup.functions]
        for kind in types:
            if kind not in self.ability.functions:
                return f"{self.name} has no {kind}"
        if len(types) > 1 and not self.ability.chains:
            return f"{self.name} runs one function, not a chain of {len(types)}"
        for port in (setup.left, setup.right):
            if port.kind not in (self.ability.nics if port.nic else self.ability.port_kinds):
                return f"{self.name} has no {port.kind} ports"
        if setup.deployment not in self.ability.deployments:
            return f"{self.name} cannot be deployed as {setup.deployment}"
        if max(setup.left.queues, setup.right.queues) > self.ability.queues:
            return f"{self.name} has at most {self.ability.queues} queue(s) a port"
        for key, value in setup.options.items():
            values = self.ability.options.get(key, ())
            if value not in values:
                known = ", ".join(f"{k}={'|'.join(v)}" for k, v in self.ability.options.items())
                return f"{self.name} has no option {key}={value} (it has: {known or 'none'})"
        if setup.back is not None and not self.ability.both_ways:
            return f"{self.name} is told only of packets from left to right"
        if setup.flows is not None and not self.ability.remembers:
            return f"{self.name} is compared without stateful functions"
        if setup.oversubscribed and not self.ability.yields:
            return f"{self.name} has poll loops that do not yield to others on their core"
        if setup.behind and not self.ability.switches:
            return f"{self.name} is no switch for VNFs behind it"
        try:
            self.check(setup)
        except InputError as error:
            return f"{self.name}: {error}"
        return ""

    def check(self, setup: Setup) -> None:  # noqa: B027 some have nothing more to ask
        """Raise InputError for what only this device cannot do, of what its ability allows.

        Most ask what turns functions into the device's language.
        """

    def keeps_order(self, setup: Setup) -> bool:
        """Return whether packets of a flow must leave in the order in which they came."""
        return all(setup.options.get(key) != value for key, value in self.ability.reorders.items())

    def option(self, setup: Setup, key: str) -> str:
        """Return the value of one of its options: the setup's, or the default."""
        return setup.options.get(key, self.ability.options[key][0])
