# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual machine with functions in it: QEMU, behind vhost-user.

The option `guest` says whose they are: its kernel's (of a chain, each in a container of its own),
or our own node's, which runs there on virtio.

Uses KVM where that works, which is tried and not believed: /dev/kvm may be there and no guest run.
Elsewhere QEMU emulates every instruction (TCG), some tens of times slower: good to see that it
works, and marked as not comparable wherever a result of it is shown.

QEMU has the guest's side of the ports and waits for the other side: the tester must be there.
"""

import functools
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from convoy.chain.functions import FUNCTIONS
from convoy.dut import convoy, guest
from convoy.dut.base import Ability, Device, PortAt, Presence, Running, Setup
from convoy.dut.linux import scripts
from convoy.errors import ConvoyError, InputError
from convoy.host.command import CommandError, run
from convoy.host.priority import prefer
from convoy.host.process import Process, output_of

PROGRAM = "qemu-system-x86_64"
HOW = "not installed: QEMU (Debian: apt-get install qemu-system-x86)"
EMULATED = "emulated: not comparable"
MEMORY_MB = {"kernel": 384, "convoy": 1024}
ANSWER_S = 30.0
_KVM_DEADLINE_S = 30.0
_KVM_CPU_S = 2  # not waiting for a busy machine's cores: that is no sign
# A boot sector. It counts ecx down from 2^25, which takes a processor 0.01 s and QEMU's own
# emulation less than 1 s. Where /dev/kvm is there but emulates each instruction, it takes minutes;
# no kernel boots there in useful time. Then it writes 0x10 to port 0xf4, which ends QEMU with
# (0x10 << 1) | 1.
_COUNT = bytes([0x66, 0xB9, 0, 0, 0, 2, 0x66, 0x49, 0x75, 0xFC])
_BOOT = (_COUNT + bytes([0xB0, 0x10, 0xE6, 0xF4, 0xF4])).ljust(510, b"\0") + b"\x55\xaa"
_BOOTED = 0x21


@functools.cache
def kvm_works() -> bool:
    """Return whether a guest runs under KVM here."""
    if not Path("/dev/kvm").exists():
        return False
    with tempfile.NamedTemporaryFile(prefix="convoy-boot-") as disk:
        disk.write(_BOOT)
        disk.flush()
        command = [
            "prlimit", f"--cpu={_KVM_CPU_S}",
            PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-accel", "kvm", "-cpu", "host", "-m", "16",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
            "-drive", f"file={disk.name},format=raw,if=ide,readonly=off",
        ]  # fmt: skip
        try:
            return run(command, _KVM_DEADLINE_S).exit_code == _BOOTED
        except CommandError:
            return False


def command(setup: Setup, accelerator: str, image: Path, inside: str) -> list[str]:
    """Return the command of a virtual machine. inside: which guest."""
    cpu = "host" if accelerator == "kvm" else "max"
    size = f"{MEMORY_MB[inside]}M"
    memory = f"memory-backend-memfd,id=memory,size={size},share=on"
    hugepages = f" hugepages={guest.HUGEPAGES}" if inside == "convoy" else ""
    ports = [
        *_port(0, setup.left, guest.LEFT, accelerator),
        *_port(1, setup.right, guest.RIGHT, accelerator),
    ]
    return [
        "taskset", "-c", ",".join(map(str, setup.cores)),
        PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-accel", accelerator, "-cpu", cpu, "-smp", str(len(setup.cores)),
        "-m", size, "-object", memory, "-machine", "pc,memory-backend=memory",
        "-kernel", str(image), "-initrd", str(setup.folder / "initramfs"),
        "-append", f"console=ttyS0 panic=-1{hugepages}",
        *ports,
        "-serial", "stdio",
    ]  # fmt: skip


def _port(number: int, at: PortAt, mac: str, accelerator: str) -> list[str]:
    # Emulated, this QEMU (7.2) crashes when the guest masks a vector of the control queue.
    vectors = ",vectors=0" if accelerator == "tcg" else ""
    device = f"virtio-net-pci,netdev=n{number},mac={mac},addr=0x{4 + number}{vectors}"
    if at.kind == "tap":
        tap = f"tap,id=n{number},ifname={at.address},script=no,downscript=no"
        return ["-netdev", tap, "-device", device]
    # A switch that connects finds a socket that QEMU made, and waits at.
    how = "server=on" if at.kind == "virtio-user-server" else "reconnect=1"
    return [
        "-chardev", f"socket,id=c{number},path={at.address},{how}",
        "-netdev", f"vhost-user,id=n{number},chardev=c{number}",
        "-device", device,
    ]  # fmt: skip


def node_plan(setup: Setup) -> dict[str, Any]:
    """Return the plan of our node inside: on the guest's cores, devices and hugepages."""
    ends = [PortAt("dpdk", address) for address in guest.PCI]
    plan = convoy.plan(replace(setup, left=ends[0], right=ends[1], hugepages=False))
    for core, worker in enumerate(plan["workers"]):
        worker["core"] = core
    plan["eal"] |= {"hugepages": True, "memory_mb": guest.HUGEPAGES * 2 * 3 // 4}
    return plan


class _Running(Running):
    polls_alone = False  # a virtual processor waits for QEMU's other threads

    def __init__(self, setup: Setup, accelerator: str, inside: str) -> None:
        image = guest.kernel()
        if image is None:
            raise ConvoyError(f"not installed: {guest.HOW}")
        if inside == "convoy":
            plan = node_plan(setup)
            files = guest.node_guest(image, plan)
            words = f"inside: convoyd with the plan {json.dumps(plan)}"
        else:
            functions = scripts(setup)
            files = guest.kernel_guest(image, functions)
            words = "".join(f"inside: {function}" for function in functions)
        (setup.folder / "initramfs").write_bytes(files)
        self.notes = (EMULATED,) if accelerator == "tcg" else ()
        self.notes += (
            "functions in the guest's kernel" if inside == "kernel" else "convoyd in the guest",
        )
        self._inside = inside
        self._links = max(1, len(setup.functions))  # lines that an answer has
        self._process = Process(command(setup, accelerator, image, inside), takes_input=True)
        self._process.name = PROGRAM
        prefer(self._process.pid)
        self._answers = 0
        self.commands = (self._process.command, ("#", words))

    def ready(self, deadline_s: float) -> None:
        """Wait while its console goes on: an emulated guest may be slow, but not silent."""

        def decided(line: str) -> bool:
            return guest.READY in line or guest.FAILED in line

        what = "its guest was ready"
        line = self._process.wait_line(decided, deadline_s, what, renewed=True)
        if guest.FAILED in line:
            raise ConvoyError(f"{PROGRAM}: {line.strip()}")

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
        options={"guest": ("kernel", "convoy"), "accelerator": ("best", "kvm", "tcg")},
    )

    def presence(self) -> Presence:
        """Look for QEMU and what a guest is made of, and try KVM."""
        if shutil.which(PROGRAM) is None:
            return Presence("", HOW)
        if guest.missing():
            return Presence("", f"not installed: {guest.missing()}")
        version = re.search(r"version (\S+)", run([PROGRAM, "--version"]).stdout)
        image = guest.kernel()
        assert image is not None
        version_text = f"QEMU {version[1] if version else 'unknown'}, {image.name}"
        if kvm_works():
            return Presence(f"{version_text}, KVM")
        return Presence(f"{version_text}, no KVM that works", remark=EMULATED)

    def check(self, setup: Setup) -> None:
        """Ask the kernel's script too."""
        if setup.options.get("accelerator") == "kvm" and not kvm_works():
            raise InputError("KVM does not work here; use accelerator=tcg, which emulates")
        if self.option(setup, "guest") == "convoy":
            return
        scripts(setup)

    def start(self, setup: Setup) -> Running:
        """Boot it."""
        accelerator = self.option(setup, "accelerator")
        if accelerator == "best":
            accelerator = "kvm" if kvm_works() else "tcg"
        return _Running(setup, accelerator, self.option(setup, "guest"))
