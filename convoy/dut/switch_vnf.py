# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual switch with VNFs behind it, as the papers have it: port, switch, VNF, switch, … port.

Each function of the setup runs in a VNF of its own: a process or a QEMU guest, which the switch
joins to the next one by vhost-user, or a network namespace (what a container is), by veth and
af_packet. Without a function there is one VNF that only forwards. Options say what the VNFs are,
whether they are in OCI containers, and where packets are aggregated: in the VNFs themselves
(native), under the switch (libconvoy_vhost), under the guests (libconvoy_ethdev), or under both.
For applications, whose answers come back, the switch joins its ports in both directions, and each
VNF works in both.

With a core for each, each has its own. With fewer, switch and VNFs share the first one: they yield
to each other where all can, and get the core in turn where one cannot (convoy/host/turns.py). A
guest's processors are threads of QEMU that sleep without packets: the kernel's scheduler divides
the core between them and the switch. A namespace's packets are handled where they come in, by the
kernel, which interrupts the switch for them.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

from convoy.dut import container
from convoy.dut.base import Ability, Cost, Device, PortAt, Presence, Running, Setup
from convoy.dut.bess import Bess
from convoy.dut.convoy import NATIVE, SLOTS, Convoy
from convoy.dut.linux import Linux
from convoy.dut.ovs_dpdk import OvsDpdk
from convoy.dut.testpmd import Testpmd
from convoy.dut.vm import Vm
from convoy.dut.vpp import Vpp
from convoy.errors import ConvoyError, InputError
from convoy.host.process import wait_for
from convoy.host.turns import TURN_US, in_turn

VNFS: dict[str, Device] = {
    "convoy": Convoy(),
    "testpmd": Testpmd(),
    "vm": Vm(),
    "linux": Linux(),
}
SWITCH, GUEST, BOTH = "switch", "guest", "both"  # whose library aggregates
TURN_SLOTS = 1024
YIELDING = ("convoy",)  # whose loops yield under load too
SCHEDULED = ("vm", "linux")  # without a poll loop
_made = count()


def _own(setup: Setup) -> bool:
    """Return whether the switch and each VNF have a core of their own."""
    return len(setup.cores) > max(1, len(setup.functions))


def _cooperative(switch: str, vnf: str) -> bool:
    return switch in YIELDING and vnf in YIELDING


def parts(switch: Device, setup: Setup) -> tuple[Setup, list[Setup]]:
    """Return what the switch is to do, and what each VNF is."""
    vnf, convoys = setup.options.get("vnf", "convoy"), setup.options.get("convoys", "no")
    vnfs_wanted = max(1, len(setup.functions))
    own = _own(setup)
    # What a loop takes before it yields; or, where nobody yields, more than comes in a turn.
    shared = SLOTS if _cooperative(switch.name, vnf) else TURN_SLOTS
    slots = None if own or vnf != "convoy" else shared
    # An end at a VNF, and the switch's.
    if vnf == "linux":
        names = [f"cv{os.getpid() % 10**6}v{next(_made)}" for _ in range(2 * vnfs_wanted)]
        at_vnf = [PortAt("af_packet", name) for name in names]
        behind = [replace(port, nic=True) for port in at_vnf]
    else:
        addresses = [str(setup.folder / f"vnf{i}") for i in range(2 * vnfs_wanted)]
        kind = "virtio-user-server" if switch.connects else "virtio-user"
        at_vnf = [PortAt(kind, address, slots=slots) for address in addresses]
        behind = [PortAt("vhost-user", address) for address in addresses]
    options = {"convoys": {"convoy": NATIVE, "testpmd": "ethdev-view"}.get(vnf, "no")}
    of_vnf = options if convoys in (NATIVE, GUEST, BOTH) else {}
    if vnf == "vm":
        of_vnf = {"guest": setup.options.get("guest", "kernel")}
        of_vnf |= {"offloads": "no"} if convoys in (SWITCH, BOTH) else {}
        of_vnf |= {"convoys": "ethdev-view"} if convoys in (GUEST, BOTH) else {}
    of_vnf |= {key: setup.options[key] for key in container.OPTION if key in setup.options}
    back = None if setup.back is None else setup.back[::-1]
    vnfs = [
        replace(
            setup,
            functions=setup.functions[i : i + 1],
            back=None if back is None else back[i : i + 1],
            left=at_vnf[2 * i],
            right=at_vnf[2 * i + 1],
            cores=(setup.cores[(i + 1) % len(setup.cores)] if own else setup.cores[0],),
            folder=setup.folder / f"v{i}",
            options=of_vnf,
            oversubscribed=not own,
        )
        for i in range(vnfs_wanted)
    ]
    # What a VNF sends in convoys travels inside others, which are to be opened at the right port.
    networks = {SWITCH: "both", BOTH: "left"}
    under = {"convoys": "vhost", "networks": networks[convoys]} if convoys in networks else {}
    return replace(
        setup,
        functions=(),
        back=None if back is None else (),
        behind=tuple(behind),
        cores=setup.cores[:1],
        folder=setup.folder / "s",
        options=under,
        oversubscribed=not own,
    ), vnfs


class _Running(Running):
    def __init__(self, switch: Device, setup: Setup) -> None:
        self._kept = ExitStack()
        self._parts: dict[str, Running] = {}
        self._turns = False
        try:
            self._start(switch, setup)
        except BaseException:
            self.stop()
            raise

    def _start(self, switch: Device, setup: Setup) -> None:
        of_switch, of_vnfs = parts(switch, setup)
        vnf = setup.options.get("vnf", "convoy")
        for folder in (of_switch.folder, *(one.folder for one in of_vnfs)):
            folder.mkdir()
        # A switch connects to interfaces that are there, as VNFs do to its sockets.
        first = [("switch", switch, of_switch)]
        then = [(f"VNF {number}", VNFS[vnf], one) for number, one in enumerate(of_vnfs, 1)]
        for name, device, one in [*then, *first] if vnf == "linux" else [*first, *then]:
            self._add(name, device.start(one))
        self._parts = {name: self._parts[name] for name, *_ in [*first, *then]}
        self.commands = tuple(c for part in self._parts.values() for c in part.commands)
        each = "a VNF" if len(of_vnfs) == 1 else f"{len(of_vnfs)} VNFs"
        self.notes = (f"{switch.name} with {each} behind it: {vnf}", *self._notes())
        self._cooperative = _cooperative(switch.name, vnf)
        self.in_kernel = vnf == "linux"
        self._own, self._core = _own(setup), setup.cores[0]
        self._in_turn = False
        if self._own:
            self.notes += ("switch and VNFs have a core each",)
        elif self._cooperative:
            self.notes += ("switch and VNFs share a core: their loops yield to each other",)
        elif vnf == "linux":
            self.notes += ("switch and VNFs share a core: the kernel interrupts the switch there",)
        elif vnf in SCHEDULED:
            self.notes += ("switch and guests share a core: the kernel's scheduler divides it",)
        else:
            self._in_turn = True
            self.notes += (f"switch and VNFs share a core: each gets it for {TURN_US} us in turn",)

    def _add(self, name: str, part: Running) -> None:
        self._parts[name] = self._kept.enter_context(part)

    def _notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for part in self._parts.values() for note in part.notes))

    def ready(self, deadline_s: float) -> None:
        for part in self._parts.values():
            part.ready(deadline_s)
        if not self._in_turn or self._turns:
            return

        loops: list[tuple[int, ...]] = []

        def polls() -> bool:  # a guest's loop begins when it has found its sockets
            loops[:] = [part.poll_threads() for part in self._parts.values()]
            return all(loops) or not self.alive()

        wait_for(polls, deadline_s, "poll loops of switch and VNFs")
        for name, part in self._parts.items():
            if not part.alive():
                raise ConvoyError(f"{name}: it ended before it polled")
        self._kept.enter_context(in_turn(self._core, [t for each in loops for t in each]))
        self._turns = True

    def alive(self) -> bool:
        return all(part.alive() for part in self._parts.values())

    def watched(self) -> tuple[int, ...]:
        # On a shared core they wait mostly for each other: that is the setup, no disturbance.
        return tuple(pid for part in self._parts.values() for pid in part.watched() if self._own)

    def cooperative_threads(self) -> tuple[int, ...]:
        return self.poll_threads() if self._cooperative and not self._own else ()

    def poll_threads(self) -> tuple[int, ...]:
        return tuple(t for part in self._parts.values() for t in part.poll_threads())

    def counters(self) -> dict[str, Any] | None:
        return {name: part.counters() or {} for name, part in self._parts.items()}

    def _counts_own_time(self) -> bool:
        """Return whether cycles that parts count are their own, not also others' on their core."""
        return self._own or self._cooperative

    def cost(self) -> Cost | None:
        if not self._counts_own_time():
            return None
        costs = [part.cost() for part in self._parts.values()]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        source = " + ".join(dict.fromkeys(cost.source for cost in known))
        # Packets pass the switch several times, the first VNF once.
        return Cost(sum(cost.busy_cycles for cost in known), known[1].packets, source)

    def part_costs(self) -> Mapping[str, Cost]:
        if not self._counts_own_time():
            return {}
        costs = {name: part.cost() for name, part in self._parts.items()}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def processes(self) -> tuple[int, ...]:
        each = [part.processes() for part in self._parts.values()]
        # Where the kernel does a part of the work, the core's time is what is known.
        return tuple(pid for pids in each for pid in pids) if all(each) else ()

    def output(self) -> Mapping[str, str]:
        return {
            f"{name}: {process}": text
            for name, part in self._parts.items()
            for process, text in part.output().items()
        }

    def stop(self) -> None:
        self._kept.close()


def _ability(switch: Device) -> Ability:
    return Ability(
        functions=Convoy.ability.functions,
        # By af_packet a host is joined to it, for applications.
        port_kinds=switch.ability.port_kinds & {"vhost-user", "af_packet"},
        cores=64,
        nics=switch.ability.nics,
        both_ways=switch.ability.both_ways,
        options={
            "vnf": tuple(VNFS),
            "guest": Vm.ability.options["guest"],  # whose functions a vm has
            "convoys": ("no", NATIVE, SWITCH, GUEST, BOTH),
            **container.OPTION,  # of the VNFs
        },
    )


class SwitchVnf(Device):
    """What all switches with VNFs behind them are alike in."""

    switch: ClassVar[Device]

    def presence(self) -> Presence:
        """Look for the switch; its VNFs are looked for where a setup has them."""
        return self.switch.presence()

    def tester_port(self, port: PortAt, index: int) -> str:
        """As the switch's own ports."""
        return self.switch.tester_port(port, index)

    def remark(self, setup: Setup) -> str:
        """Return its VNFs', of which a setup says what they are."""
        return VNFS[self.option(setup, "vnf")].presence().remark

    def check(self, setup: Setup) -> None:
        """Ask the switch and each VNF."""
        vnf, convoys = self.option(setup, "vnf"), self.option(setup, "convoys")
        if setup.back is not None and len(setup.back) != len(setup.functions):
            raise InputError("what comes back must meet as many functions")
        if convoys == NATIVE and vnf != "convoy":
            raise InputError(f"convoys=native: {vnf} knows no convoys; use vnf=convoy, or guest")
        if convoys in (GUEST, BOTH) and vnf not in ("testpmd", "vm"):
            raise InputError(f"convoys={convoys}: the library goes under testpmd; use vnf=testpmd")
        if convoys == SWITCH and vnf == "linux":
            raise InputError("convoys=switch: the library's ports are vhost-user; leave it out")
        if convoys in (SWITCH, BOTH) and "convoys" not in self.switch.ability.options:
            raise InputError(f"convoys={convoys}: {self.switch.name} is measured without it")
        if convoys in (SWITCH, BOTH) and "vhost" not in self.switch.ability.options["convoys"]:
            raise InputError(f"convoys={convoys}: the library goes under ovs-dpdk only")
        missing = VNFS[vnf].presence().missing
        if missing:
            raise InputError(missing)
        shared = not _own(setup) and not _cooperative(self.switch.name, vnf)
        shared = shared and vnf not in SCHEDULED
        if shared and os.geteuid() != 0:
            raise InputError("poll loops that cannot yield share a core; only root gives turns")
        of_switch, of_vnfs = parts(self.switch, setup)
        for device, part in ((self.switch, of_switch), *((VNFS[vnf], one) for one in of_vnfs)):
            # Where loops do not yield they get the core in turn.
            why = device.cannot(replace(part, oversubscribed=False))
            if why:
                raise InputError(why)

    def start(self, setup: Setup) -> Running:
        """Start the switch, then the VNFs; ready() gives turns where they are needed."""
        return _Running(self.switch, setup)


class ConvoyVnf(SwitchVnf):
    """Our node as the switch."""

    name = "convoy+vnf"
    switch = VNFS["convoy"]
    ability = _ability(switch)


class TestpmdVnf(SwitchVnf):
    """testpmd as the switch: ports joined pairwise."""

    name = "testpmd+vnf"
    switch = VNFS["testpmd"]
    ability = _ability(switch)


class OvsDpdkVnf(SwitchVnf):
    """Open vSwitch with DPDK, a rule from port to port."""

    name = "ovs-dpdk+vnf"
    switch = OvsDpdk()
    ability = _ability(switch)


class VppVnf(SwitchVnf):
    """VPP as the switch: interfaces cross-connected."""

    name = "vpp+vnf"
    switch = Vpp()
    ability = _ability(switch)


class BessVnf(SwitchVnf):
    """BESS as the switch: a module that takes, connected to one that gives."""

    name = "bess+vnf"
    switch = Bess()
    ability = _ability(switch)
