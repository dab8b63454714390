# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual machine with functions in it: QEMU, behind vhost-user.

The option `guest` says whose they are: its kernel's (of a chain, each in a container of its own),
or our own node's, which runs there on virtio, or (`nic`) on cards that QEMU emulates.

Without KVM it is emulated: good to see that it works, and marked as not comparable wherever a
result of it is shown.

QEMU has the guest's side of the ports and waits for the other side: the tester must be there.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from convoy.chain.functions import FUNCTIONS
from convoy.chain.machine import guest_device
from convoy.dut import convoy, guest
from convoy.dut.base import Ability, Device, PortAt, Presence, Running, Setup
from convoy.dut.linux import scripts
from convoy.errors import ConvoyError, InputError
from convoy.host import qemu
from convoy.host.command import run
from convoy.host.guest import FAILED, HOW, NIC_DRIVERS, READY, kernel, node_guest
from convoy.host.priority import prefer
from convoy.host.process import Process, output_of

EMULATED = "emulated: not comparable"
MEMORY_MB = {"kernel": 384, "convoy": 1024}
ANSWER_S = 30.0
PCI = tuple(map(guest_device, range(2)))
HUGEPAGES = 200  # of 2 MiB, of a node


def _device(at: PortAt, mac: str, nic: str, offloads: bool) -> qemu.NetDevice:
    server = at.kind == "virtio-user-server"
    kind = at.kind if at.kind == "tap" else "vhost-user-server" if server else "vhost-user"
    model = "virtio-net-pci" if nic == "virtio" else nic
    return qemu.NetDevice(kind, at.address, mac, model, offloads)


def node_plan(setup: Setup) -> dict[str, Any]:
    """Return the plan of our node inside: on the guest's cores, devices and hugepages."""
    ends = [PortAt("dpdk", address) for address in PCI]
    plan = convoy.plan(replace(setup, left=ends[0], right=ends[1], hugepages=False))
    for core, worker in enumerate(plan["workers"]):
        worker["core"] = core
    plan["eal"] |= {"hugepages": True, "memory_mb": HUGEPAGES * 2 * 3 // 4}
    return plan


class _Running(Running):
    polls_alone = False  # a virtual processor waits for QEMU's other threads

    def __init__(
        self, setup: Setup, accelerator: str, inside: str, nic: str, offloads: bool
    ) -> None:
        image = kernel()
        if image is None:
            raise ConvoyError(f"not installed: {HOW}")
        if inside == "convoy":
            plan = node_plan(setup)
            files = node_guest(image, plan, PCI, nic).archive()
            words = f"inside: convoyd with the plan {json.dumps(plan)}"
        else:
            functions = scripts(setup)
            files = guest.kernel_guest(image, functions)
            words = "".join(f"inside: {each.program}{each.text}" for each in functions)
        (setup.folder / "initramfs").write_bytes(files)
        self.notes = (EMULATED,) if accelerator == "tcg" else ()
        self.notes += (
            "functions in the guest's kernel" if inside == "kernel" else "convoyd in the guest",
        )
        if nic != "virtio":
            self.notes += (f"on {nic}, which QEMU emulates: not comparable",)
        self._inside = inside
        self._links = max(1, len(setup.functions))  # lines that an answer has
        command = qemu.command(
            accelerator,
            setup.cores,
            MEMORY_MB[inside],
            image,
            setup.folder / "initramfs",
            [
                _device(port, mac, nic, offloads)
                for port, mac in ((setup.left, guest.LEFT), (setup.right, guest.RIGHT))
            ],
            HUGEPAGES if inside == "convoy" else 0,
        )
        self._process = Process(command, takes_input=True)
        self._process.name = qemu.PROGRAM
        prefer(self._process.pid)
        self._answers = 0
        self.commands = (self._process.command, ("#", words))

    def ready(self, deadline_s: float) -> None:
        """Wait while its console goes on: an emulated guest may be slow, but not silent."""

        def decided(line: str) -> bool:
            return READY in line or FAILED in line

        what = "its guest was ready"
        line = self._process.wait_line(decided, deadline_s, what, renewed=True)
        if FAILED in line:
            raise ConvoyError(f"{qemu.PROGRAM}: {line.strip()}")

    def alive(self) -> bool:
        return self._process.running()

    def processes(self) -> tuple[int, ...]:
        return (self._process.pid,)

    def output(self) -> Mapping[str, str]:
        """Return its console, without what it was asked and answered by us."""
        lines = output_of(self._process).splitlines()
        mine = ("counters", "[{")
        return {"console": "\n".join(line for line in lines if not line.startswith(mine))}

    def watched(self) -> tuple[int, ...]:
        return self.processes()

    def counters(self) -> dict[str, Any] | None:
        """Return what the guest's interfaces counted; our node there cannot be asked."""
        if self._inside == "convoy":
            return None
        seen: list[str] = []
        wanted = self._answers + self._links

        def answer(line: str) -> bool:
            if line.startswith("[{"):
                seen.append(line)
            return len(seen) == wanted

        self._process.say("counters")
        self._process.wait_line(answer, ANSWER_S, "its guest answered")
        self._answers = wanted
        result: dict[str, Any] = {}
        for number, line in enumerate(seen[-self._links :]):
            links = {each["ifname"]: each["stats64"] for each in json.loads(line)}
            before = f"{number} " if self._links > 1 else ""
            result |= {f"{before}{name}": links[name] for name in ("left", "right")}
        return result

    def stop(self) -> None:
        self._process.close()


class Vm(Device):
    """A function in a QEMU guest."""

    name = "vm"
    ability = Ability(
        functions=frozenset(FUNCTIONS),
        port_kinds=frozenset({"virtio-user", "virtio-user-server", "tap"}),
        cores=4,
        both_ways=True,
        options={
            "guest": ("kernel", "convoy"),
            "accelerator": ("best", "kvm", "tcg"),
            "nic": tuple(NIC_DRIVERS),
            "offloads": ("yes", "no"),  # of virtio; libconvoy_vhost takes no guest with them
        },
    )

    def presence(self) -> Presence:
        """Look for QEMU and what a guest is made of, and try KVM."""
        if not qemu.installed():
            return Presence("", qemu.HOW)
        if guest.missing():
            return Presence("", f"not installed: {guest.missing()}")
        version = re.search(r"version (\S+)", run([qemu.PROGRAM, "--version"]).stdout)
        image = kernel()
        assert image is not None
        version_text = f"QEMU {version[1] if version else 'unknown'}, {image.name}"
        if qemu.kvm_works():
            return Presence(f"{version_text}, KVM")
        return Presence(f"{version_text}, no KVM that works", remark=EMULATED)

    def check(self, setup: Setup) -> None:
        """Ask the kernel's script too."""
        if setup.options.get("accelerator") == "kvm" and not qemu.kvm_works():
            raise InputError("KVM does not work here; use accelerator=tcg, which emulates")
        nic, inside = self.option(setup, "nic"), self.option(setup, "guest")
        if nic != "virtio" and setup.left.kind != "tap":
            raise InputError(
                f"nic={nic}: by {setup.left.kind} QEMU has virtio only; use ports of kind tap"
            )
        if nic != "virtio" and inside == "kernel":
            raise InputError(
                f"nic={nic}: Debian's cloud kernel does not drive it; use guest=convoy"
            )
        if inside == "kernel":
            scripts(setup)

    def start(self, setup: Setup) -> Running:
        """Boot it."""
        accelerator = self.option(setup, "accelerator")
        if accelerator == "best":
            accelerator = qemu.accelerator()
        inside, nic = self.option(setup, "guest"), self.option(setup, "nic")
        offloads = self.option(setup, "offloads") == "yes"
        return _Running(setup, accelerator, inside, nic, offloads)
