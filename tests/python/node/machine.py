# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual machine of Debian's kernel, virtio-net and a shell on its serial console."""

import re
import shutil
from pathlib import Path

from convoy.host import guest, qemu
from convoy.host.initramfs import Initramfs, module_files
from convoy.host.process import Process
from convoy.host.scope import Scope

MAC = "02:00:00:00:00:02"
BOOT_DEADLINE_S = 120.0  # without KVM every instruction is emulated
_MODULES = ("virtio_pci", "virtio_net")
_APPLETS = (
    *("sh", "mount", "insmod", "ip", "ping", "poweroff", "cat", "grep", "nc", "sleep"),
    "sha256sum",
)
_READY = "machine: ready"
_INIT = """\
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo 1 > /proc/sys/kernel/printk
for each in $(cat /modules/order); do insmod /modules/$each; done
ip link set lo up
ip addr add {address} dev eth0
ip link set eth0 up
echo "{ready}"
n=0
while read -r line; do
	n=$((n + 1))
	sh -c "$line" 2>&1
	echo "answer $n: $?"
done
poweroff -f
"""


def missing() -> str:
    """Return what such a machine cannot be made without, or the empty string."""
    if not qemu.installed():
        return qemu.HOW
    if shutil.which("iperf3") is None:
        return "not installed: iperf3 (Debian: apt-get install iperf3)"
    return guest.missing(_MODULES)


class Machine(Scope):
    """A virtual machine behind a vhost-user socket. Use it with `with`."""

    def __init__(
        self,
        socket: Path,
        address: str,
        folder: Path,
        modules: tuple[str, ...] = (),
        programs: tuple[str, ...] = (),
    ) -> None:
        """Boot it, and wait until it answers. address: its interface's, with the prefix.

        modules, programs: what it has beside its own; programs of a busybox's name are in /bin.
        """
        image = guest.kernel()
        assert image is not None, "ask missing() first"
        files = _files(image, address, _MODULES + modules, programs)
        (folder / "initramfs").write_bytes(files)
        accelerator = qemu.accelerator()
        # Emulated, this QEMU (7.2) crashes when the guest masks a vector of the control queue.
        vectors = "" if accelerator == "kvm" else ",vectors=0"
        self._queries = 0
        self._process = Process(
            [
                qemu.PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-accel", accelerator, "-cpu", "host" if accelerator == "kvm" else "max",
                "-m", "256M", "-object", "memory-backend-memfd,id=memory,size=256M,share=on",
                "-machine", "pc,memory-backend=memory",
                "-kernel", image, "-initrd", folder / "initramfs",
                "-append", "console=ttyS0 quiet panic=-1",
                "-chardev", f"socket,id=c,path={socket}",
                "-netdev", "vhost-user,id=n,chardev=c",
                "-device", f"virtio-net-pci,netdev=n,mac={MAC}{vectors}",
                "-serial", "stdio",
            ],
            takes_input=True,
        )  # fmt: skip
        try:
            self._process.wait_line(lambda line: _READY in line, BOOT_DEADLINE_S, "it had booted")
        except BaseException:
            self._process.close()
            raise

    def run(self, command: str, deadline_s: float = 60.0) -> str:
        """Run a command in its shell; return what it printed. It must succeed."""
        self._queries += 1
        before = len(self._process.stdout.text().splitlines())
        self._process.say(command)
        wanted = re.compile(rf"answer {self._queries}: (\d+)")
        line = self._process.wait_line(
            lambda text: wanted.search(text) is not None, deadline_s, f"done with {command}"
        )
        output = "\n".join(self._process.stdout.text().splitlines()[before:])
        code = wanted.search(line)
        assert code is not None
        assert code[1] == "0", output
        return output

    def _leave(self) -> None:
        self._process.close()


def _files(image: Path, address: str, modules: tuple[str, ...], programs: tuple[str, ...]) -> bytes:
    made = Initramfs()
    made.console()
    for folder in ("proc", "sys", "dev", "tmp"):
        made.folder(folder)
    made.program("busybox")
    for applet in _APPLETS:
        made.link(f"bin/{applet}", "busybox")
    for program in ("iperf3", *programs):
        made.program(program)
    made.mirror(guest.LIBGCC)
    files = module_files(guest.modules_of(image), modules)
    for file in files:
        made.copy(file, f"modules/{file.name}")
    made.file("modules/order", "\n".join(file.name for file in files).encode() + b"\n")
    made.file("init", _INIT.format(address=address, ready=_READY).encode(), 0o755)
    return made.archive()
