# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What runs in a virtual machine: Debian's cloud kernel, and a file system of a few programs.

Its first process loads modules, runs the script it was given and says READY on the serial console.
Then each word that is written there runs the script of that name. Two such guests are made here:
our own node, and DPDK's testpmd. Both drive the network devices themselves (by DPDK and
uio_pci_generic: this kernel has no VFIO without IOMMU).
"""

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convoy.chain.plan import files_of
from convoy.errors import ConvoyError
from convoy.host.initramfs import Initramfs, module_files
from convoy.host.programs import need

ROOT = Path("/")
READY = "convoy guest: ready"
FAILED = "convoy guest: failed"
TESTPMD_READY = "packets/burst="  # what testpmd says when it begins to forward
HOW = (
    "a Debian cloud kernel and busybox (Debian: apt-get install linux-image-cloud-amd64 "
    "busybox-static)"
)
NODE_MODULES = ("virtio_pci", "virtio_console", "uio_pci_generic")
HUGEPAGE_MB = 2
_PMDS = Path("/usr/lib/x86_64-linux-gnu/dpdk")
LIBGCC = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")  # the C library loads it to end a thread
_DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring")
# DPDK's drivers of network devices, by the names that QEMU's devices have.
NIC_DRIVERS = {"virtio": "net_virtio", "e1000e": "net_e1000", "vmxnet3": "net_vmxnet3"}
# Applets that the scripts use.
APPLETS = (
    "sh",
    "cat",
    "echo",
    "env",
    "insmod",
    "mount",
    "poweroff",
    "mkdir",
    "ls",
    "grep",
    "kill",
    "sleep",
    "tail",
)

# Busybox's shell would take its own ip before the real one.
REAL = 'ip() { /bin/ip "$@"; }\n'

# The devices become DPDK's.
_BIND = """\
mkdir -p /dev/hugepages /run
mount -t hugetlbfs none /dev/hugepages
for each in {devices}; do
	echo uio_pci_generic > /sys/bus/pci/devices/$each/driver_override
	if [ -e /sys/bus/pci/devices/$each/driver ]; then # the kernel's own, where it is built in
		echo $each > /sys/bus/pci/devices/$each/driver/unbind
	fi
	echo $each > /sys/bus/pci/drivers_probe
done
"""
# Says nothing before the node does.
_RUN_NODE = (
    _BIND
    + """\
(
	RUNTIME_DIRECTORY=/run convoyd /plan.json > /said 2> /words &
	echo $! > /pid
	wait $! || true
	echo > /ended
	if [ -e /ran ] && [ ! -e /stopping ]; then
		echo "{failed}: convoyd: $(tail -n 1 /words)" > /dev/console
		poweroff -f
	fi
) &
while ! grep -q '"ready"' /said; do
	if [ -e /ended ]; then cat /words; exit 1; fi
	sleep 0.1
done
echo > /ran
"""
)
# What it says from now on goes to the console, and its read.sock is a serial port's.
_JOIN_NODE = """\
tail -n +1 -f /words > /dev/console &
for port in /dev/vport*p1; do
	if [ -e $port ]; then
		while :; do
			socat $port UNIX-CONNECT:$(ls /run/dpdk/*/read.sock) > /socat 2>&1
			sleep 0.2
		done &
	fi
done
"""
# It drains; its final counts are the last line that it says.
_STOP_NODE = """\
echo > /stopping
kill $(cat /pid)
while [ ! -e /ended ]; do sleep 0.1; done
tail -n 1 /said
poweroff -f
"""

_INIT = f"""\
#!/bin/sh
export PATH=/bin
{REAL}mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo 1 > /proc/sys/kernel/printk
for each in $(cat /modules/order); do insmod /modules/$each || echo "{FAILED}: $each"; done
if sh -e /function.sh > /output 2>&1; then
	echo "{READY}"
else
	echo "{FAILED}: $(tail -n 3 /output | tr '\\n' ' ')"
fi
while read -r line; do
	if [ -e "/$line.sh" ]; then sh "/$line.sh"; fi
done
poweroff -f
"""


def _by_version(image: Path) -> list[str | int]:
    """Return a key by which 6.1.0-10 is newer than 6.1.0-9: numbers count as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", image.name)]


def kernel(root: Path = ROOT) -> Path | None:
    """Return the newest cloud kernel whose modules are here, or None."""
    images = sorted((root / "boot").glob("vmlinuz-*-cloud-*"), key=_by_version, reverse=True)
    return next((image for image in images if modules_of(image, root).is_dir()), None)


def modules_of(image: Path, root: Path = ROOT) -> Path:
    """Return the folder of a kernel's modules."""
    return root / "lib/modules" / image.name.removeprefix("vmlinuz-")


def missing(modules: Sequence[str] = NODE_MODULES) -> str:
    """Return what a guest with these modules cannot be made without, or the empty string."""
    image = kernel()
    if image is None or busybox() is None:
        return HOW
    try:
        module_files(modules_of(image), modules)
    except ConvoyError as error:
        return str(error)
    return ""


def busybox() -> str | None:
    """Return a busybox, or None."""
    return shutil.which("busybox", path="/bin:/usr/bin:/usr/sbin")


def _drivers(nic: str) -> list[Path]:
    """Return the files of DPDK's drivers that a guest with such devices needs."""
    return [path for driver in (*_DRIVERS, NIC_DRIVERS[nic]) for path in _driver(driver)]


def _driver(name: str) -> list[Path]:
    """Return the files of one of DPDK's drivers."""
    files = sorted(_PMDS.glob(f"pmds-*/librte_{name}.so*"))
    if not files:
        raise ConvoyError(
            f"not installed: DPDK's driver {name} (Debian: apt-get install libdpdk-dev)"
        )
    return files


def node_guest(
    image: Path, plan: Mapping[str, Any], devices: Sequence[str], nic: str = "virtio"
) -> Initramfs:
    """Return the file system of a guest in which convoyd runs a plan.

    devices: PCI addresses of the plan's ports.
    nic: what they are, of NIC_DRIVERS.
    `stop` on its console ends it; it says its final counts then. Its read.sock is the first virtio
    serial port, where there is one and socat.
    Raises InputError where a file is missing that the plan names, ConvoyError where a driver is.
    """
    drivers = _drivers(nic)
    run = _RUN_NODE.format(devices=" ".join(devices), failed=FAILED)
    joined = shutil.which("socat") is not None
    made = guest(image, NODE_MODULES, run + (_JOIN_NODE if joined else ""), {"stop": _STOP_NODE})
    made.file("plan.json", json.dumps(plan).encode())
    convoyd = need("convoyd")
    made.copy(convoyd, "bin/convoyd")
    made.libraries(convoyd)
    made.mirror(LIBGCC)
    for path in drivers:
        _with_libraries(made, path)
    if joined:
        made.program("socat")
    for file in files_of(plan):
        made.copy(Path(file), file)
    return made


def testpmd_guest(
    image: Path, command: Sequence[str], files: Sequence[Path], devices: Sequence[str]
) -> Initramfs:
    """Return the file system of a guest in which testpmd runs; its console says TESTPMD_READY.

    command: as it would be here. files: the program, and what is preloaded. devices: PCI addresses
    of its ports, virtio. Raises ConvoyError where a driver is missing.
    """
    drivers = _drivers("virtio")
    bind = _BIND.format(devices=" ".join(devices))
    # On a terminal it says a line when it has one.
    run = f"{bind}RUNTIME_DIRECTORY=/run {shlex.join(command)} > /dev/console\n"
    made = guest(image, NODE_MODULES, run, {})
    made.mirror(LIBGCC)
    for path in (*files, *drivers):
        _with_libraries(made, path)
    return made


def _with_libraries(made: Initramfs, path: Path) -> None:
    made.mirror(path)
    made.libraries(path)


def guest(
    image: Path, modules: Sequence[str], script: str, answers: Mapping[str, str]
) -> Initramfs:
    """Return the file system of a guest that loads modules and runs a script.

    answers: scripts by the words on its console that run them.
    """
    made = Initramfs()
    made.console()
    for folder in ("proc", "sys", "dev", "tmp"):
        made.folder(folder)
    made.program("busybox")
    for applet in APPLETS:
        made.link(f"bin/{applet}", "busybox")
    made.program("ip")
    files = module_files(modules_of(image), modules)
    for file in files:
        made.copy(file, f"modules/{file.name}")
    made.file("modules/order", "\n".join(file.name for file in files).encode() + b"\n")
    made.file("init", _INIT.encode(), 0o755)
    made.file("function.sh", (REAL + script).encode())
    for word, answer in answers.items():
        made.file(f"{word}.sh", (REAL + answer).encode())
    return made
