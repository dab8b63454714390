# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual machine with functions in it: QEMU, behind vhost-user.

The option `guest` says whose they are: its kernel's (of a chain, each in a container of its own),
our own node's, which runs there on virtio, or (`nic`) on cards that QEMU emulates, or those of
DPDK's testpmd, beneath which our library may be (`convoys`).

Without KVM it is emulated: good to see that it works, and marked as not comparable wherever a
result of it is shown.

QEMU has the guest's side of the ports and waits for the other side: the tester must be there.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from convoy.chain.functions import FUNCTIONS
from convoy.chain.machine import guest_device
from convoy.dut import convoy, guest, testpmd
from convoy.dut.base import Ability, Device, PortAt, Presence, Running, Setup
from convoy.dut.linux import scripts
from convoy.errors import ConvoyError, InputError
from convoy.host import qemu
from convoy.host.command import run
from convoy.host.guest import (
    FAILED,
    HOW,
    NIC_DRIVERS,
    READY,
    TESTPMD_READY,
    kernel,
    node_guest,
    testpmd_guest,
)
from convoy.host.priority import prefer
from convoy.host.process import Process, output_of
from convoy.host.programs import need

EMULATED = "emulated: not comparable"
ANSWER_S = 30.0
PCI = tuple(map(guest_device, range(2)))


class _Inside(NamedTuple):
    note: str
    memory_mb: int  # of the guest
    hugepages: int  # of 2 MiB, of these


INSIDE = {
    "kernel": _Inside("functions in the guest's kernel", 384, 0),
    "convoy": _Inside("convoyd in the guest", 1024, 200),
    "testpmd": _Inside("testpmd in the guest", 1536, 300),
}


def _device(at: PortAt, mac: str, nic: str, offloads: bool) -> qemu.NetDevice:
    server = at.kind == "virtio-user-server"
    kind = at.kind if at.kind == "tap" else "vhost-user-server" if server else "vhost-user"
    model = "virtio-net-pci" if nic == "virtio" else nic
    return qemu.NetDevice(kind, at.address, mac, model, offloads)


def _inside(setup: Setup) -> Setup:
    """Return a setup as it is in the guest: on its devices."""
    left, right = (PortAt("dpdk", address) for address in PCI)
    return replace(setup, left=left, right=right)


def node_plan(setup: Setup) -> dict[str, Any]:
    """Return the plan of our node inside: on the guest's cores, devices and hugepages."""
    plan = convoy.plan(replace(_inside(setup), hugepages=False))
    for core, worker in enumerate(plan["workers"]):
        worker["core"] = core
    plan["eal"] |= {"hugepages": True, "memory_mb": INSIDE["convoy"].hugepages * 2 * 3 // 4}
    return plan


def _guest(image: Path, setup: Setup, inside: str, nic: str, convoys: str) -> tuple[bytes, str]:
    """Return a guest's file system, and what runs there in words. Raises ConvoyError."""
    if inside == "convoy":
        plan = node_plan(setup)
        words = f"inside: convoyd with the plan {json.dumps(plan)}"
        return node_guest(image, plan, PCI, nic).archive(), words
    if inside == "testpmd":
        program, before = testpmd.program(), testpmd.preloaded(convoys)
        command = [
            *before,
            *testpmd.command(program, replace(_inside(setup), cores=(0,), hugepages=True)),
        ]
        used = [Path(program), *([need(testpmd.LIBRARY)] if before else [])]
        files = testpmd_guest(image, command, used, PCI).archive()
        return files, f"inside: {shlex.join(command)}"
    functions = scripts(setup)
    words = "".join(f"inside: {each.program}{each.text}" for each in functions)
    return guest.kernel_guest(image, functions), words


class _Running(Running):
    polls_alone = False  # a virtual processor waits for QEMU's other threads

    def __init__(
        self, setup: Setup, accelerator: str, inside: str, nic: str, offloads: bool, convoys: str
    ) -> None:
        image = kernel()
        if image is None:
            raise ConvoyError(f"not installed: {HOW}")
        files, words = _guest(image, setup, inside, nic, convoys)
        (setup.folder / "initramfs").write_bytes(files)
        self.notes = (EMULATED,) if accelerator == "tcg" else ()
        self.notes += (INSIDE[inside].note,)
        if convoys != "no":
            self.notes += (f"packets are aggregated there: {testpmd.LIBRARY}, {convoys}",)
        if nic != "virtio":
            self.notes += (f"on {nic}, which QEMU emulates: not comparable",)
        self._inside = inside
        self._links = max(1, len(setup.functions))  # lines that an answer has
        command = qemu.command(
            accelerator,
            setup.cores,
            INSIDE[inside].memory_mb,
            image,
            setup.folder / "initramfs",
            [
                _device(port, mac, nic, offloads)
                for port, mac in ((setup.left, guest.LEFT), (setup.right, guest.RIGHT))
            ],
            INSIDE[inside].hugepages,
        )
        self._process = Process(command, takes_input=True)
        self._process.name = qemu.PROGRAM
        prefer(self._process.pid)
        self._answers = 0
        self.commands = (self._process.command, ("#", words))

    def ready(self, deadline_s: float) -> None:
        """Wait while its console goes on: an emulated guest may be slow, but not silent."""

        ready = TESTPMD_READY if self._inside == "testpmd" else READY

        def decided(line: str) -> bool:
            return ready in line or FAILED in line

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
        """Return what the guest's interfaces counted; a program that has them cannot be asked."""
        if self._inside != "kernel":
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
            "guest": tuple(INSIDE),
            "convoys": testpmd.CONVOYS,  # under a guest's testpmd
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
        convoys = self.option(setup, "convoys")
        if nic != "virtio" and setup.left.kind != "tap":
            raise InputError(
                f"nic={nic}: by {setup.left.kind} QEMU has virtio only; use ports of kind tap"
            )
        if nic != "virtio" and inside == "kernel":
            raise InputError(
                f"nic={nic}: Debian's cloud kernel does not drive it; use guest=convoy"
            )
        if nic != "virtio" and inside == "testpmd":
            raise InputError(f"nic={nic}: testpmd is measured on virtio; use guest=convoy")
        if convoys != "no" and inside != "testpmd":
            raise InputError(f"convoys={convoys}: the library goes under guest=testpmd")
        if inside == "kernel":
            scripts(setup)
        if inside == "testpmd":
            self._check_testpmd(setup, convoys)

    @staticmethod
    def _check_testpmd(setup: Setup, convoys: str) -> None:
        if len(setup.functions) > 1:
            raise InputError("guest=testpmd: it runs one function")
        testpmd.program()
        testpmd.mode(setup.functions)
        testpmd.preloaded(convoys)

    def start(self, setup: Setup) -> Running:
        """Boot it."""
        accelerator = self.option(setup, "accelerator")
        if accelerator == "best":
            accelerator = qemu.accelerator()
        inside, nic = self.option(setup, "guest"), self.option(setup, "nic")
        offloads = self.option(setup, "offloads") == "yes"
        convoys = self.option(setup, "convoys")
        return _Running(setup, accelerator, inside, nic, offloads, convoys)
