# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Virtual machines by QEMU: a kernel, its first file system, and virtio network devices.

Uses KVM where that works, which is tried and not believed: /dev/kvm may be there and no guest run.
Elsewhere QEMU emulates every instruction (TCG), some tens of times slower.
"""

import functools
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convoy.chain.machine import guest_slot
from convoy.host.command import CommandError, run

PROGRAM = "qemu-system-x86_64"
HOW = "not installed: QEMU (Debian: apt-get install qemu-system-x86)"
_KVM_DEADLINE_S = 30.0
_KVM_CPU_S = 2  # not waiting for a busy machine's cores: that is no sign
# A boot sector. It counts ecx down from 2^25, which takes a processor 0.01 s and QEMU's own
# emulation less than 1 s. Where /dev/kvm is there but emulates each instruction, it takes minutes;
# no kernel boots there in useful time. Then it writes 0x10 to port 0xf4, which ends QEMU with
# (0x10 << 1) | 1.
_COUNT = bytes([0x66, 0xB9, 0, 0, 0, 2, 0x66, 0x49, 0x75, 0xFC])
_BOOT = (_COUNT + bytes([0xB0, 0x10, 0xE6, 0xF4, 0xF4])).ljust(510, b"\0") + b"\x55\xaa"
_BOOTED = 0x21


def installed() -> bool:
    """Return whether QEMU is here."""
    return shutil.which(PROGRAM) is not None


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


def accelerator() -> str:
    """Return what guests run on here: kvm or tcg."""
    return "kvm" if kvm_works() else "tcg"


@dataclass(frozen=True)
class NetDevice:
    """A network device of a guest."""

    kind: str  # vhost-user, vhost-user-server (QEMU makes the socket) or tap
    address: str  # the socket's path or the TAP's name
    mac: str
    model: str = "virtio-net-pci"  # by vhost-user there is no other
    offloads: bool = True  # of virtio, as far as both ends have them

    def options(self, number: int, accelerator: str) -> list[str]:
        """Return QEMU's options; number: of the device, from 0."""
        slot = f"addr=0x{guest_slot(number):x}"
        vectors = _vectors(accelerator) if self.model.startswith("virtio") else ""
        plain = "" if self.offloads else "".join(f",{name}=off" for name in _OFFLOADS)
        device = f"{self.model},netdev=n{number},mac={self.mac},{slot}{vectors}{plain}"
        if self.kind == "tap":
            tap = f"tap,id=n{number},ifname={self.address},script=no,downscript=no"
            return ["-netdev", tap, "-device", device]
        # A switch that connects finds a socket that QEMU made, and waits at.
        how = "server=on" if self.kind == "vhost-user-server" else "reconnect=1"
        return [
            "-chardev", f"socket,id=c{number},path={self.address},{how}",
            "-netdev", f"vhost-user,id=n{number},chardev=c{number}",
            "-device", device,
        ]  # fmt: skip


_OFFLOADS = (
    "csum", "guest_csum", "gso", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo", "host_tso4",
    "host_tso6", "host_ecn", "host_ufo",
)  # fmt: skip


def _vectors(accelerator: str) -> str:
    # Emulated, this QEMU (7.2) crashes when the guest masks a vector of the control queue.
    return ",vectors=0" if accelerator == "tcg" else ""


def serial_port(path: Path, accelerator: str) -> list[str]:
    """Return QEMU's options for a virtio serial port that is a socket here."""
    return [
        "-chardev", f"socket,id=serial,path={path},server=on,wait=off",
        "-device", f"virtio-serial-pci,max_ports=2{_vectors(accelerator)}",
        "-device", "virtserialport,chardev=serial,nr=1",
    ]  # fmt: skip


def command(
    accelerator: str,
    cores: Sequence[int],
    memory_mb: int,
    image: Path,
    initramfs: Path,
    devices: Sequence[NetDevice],
    hugepages: int = 0,
    more: Sequence[str] = (),
) -> list[str]:
    """Return the command of a virtual machine whose console is its standard input and output.

    cores: where it runs; it has as many processors.
    hugepages: of 2 MiB, of its kernel's.
    """
    cpu = "host" if accelerator == "kvm" else "max"
    memory = f"memory-backend-memfd,id=memory,size={memory_mb}M,share=on"
    pages = f" hugepages={hugepages}" if hugepages else ""
    ports = [word for i, device in enumerate(devices) for word in device.options(i, accelerator)]
    return [
        "taskset", "-c", ",".join(map(str, cores)),
        PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-accel", accelerator, "-cpu", cpu, "-smp", str(len(cores)),
        "-m", f"{memory_mb}M", "-object", memory, "-machine", "pc,memory-backend=memory",
        "-kernel", str(image), "-initrd", str(initramfs),
        "-append", f"console=ttyS0 panic=-1{pages}",
        *ports,
        *more,
        "-serial", "stdio",
    ]  # fmt: skip
