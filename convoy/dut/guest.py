# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What runs in a virtual machine: Debian's cloud kernel, and a file system of a few programs.

Its first process loads modules, runs the script it was given and says READY on the serial console.
Then it answers there: `counters` with a line of JSON for each function. There are two guests:
functions in the kernel, whose network devices are called `left` and `right`; and our own node,
which drives these devices itself (DPDK's virtio driver, by uio_pci_generic: this kernel has no VFIO
without IOMMU).
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.initramfs import Initramfs, module_files
from convoy.host.programs import need

ROOT = Path("/")
READY = "convoy guest: ready"
FAILED = "convoy guest: failed"
HOW = (
    "a Debian cloud kernel and busybox (Debian: apt-get install linux-image-cloud-amd64 "
    "busybox-static)"
)
KERNEL_MODULES = (
    "virtio_pci",
    "virtio_net",
    "bridge",
    "nf_tables",
    "nft_fwd_netdev",
    "nft_meta_bridge",
)
NODE_MODULES = ("uio_pci_generic",)
HUGEPAGES = 200  # of 2 MiB, of a node
PCI = ("0000:00:04.0", "0000:00:05.0")
_PMDS = Path("/usr/lib/x86_64-linux-gnu/dpdk")
LIBGCC = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")  # the C library loads it to end a thread
_DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_virtio")
LEFT, RIGHT = "02:00:00:00:0d:01", "02:00:00:00:0d:02"  # the devices', unless a script says else
# Applets that the scripts use.
APPLETS = (
    "sh",
    "cat",
    "echo",
    "insmod",
    "mount",
    "poweroff",
    "mkdir",
    "ls",
    "grep",
    "kill",
    "sleep",
)

# Busybox's shell would take its own ip before the real one.
_REAL = 'ip() { /bin/ip "$@"; }\n'

_COUNTERS = "ip -json -statistics link\n"

_NAME_THEM = f"""\
for each in /sys/class/net/*; do
	case $(cat $each/address) in
	{LEFT}) ip link set ${{each##*/}} name left ;;
	{RIGHT}) ip link set ${{each##*/}} name right ;;
	esac
done
"""

# Says nothing before the node does.
_RUN_NODE = f"""\
mkdir -p /dev/hugepages /run
mount -t hugetlbfs none /dev/hugepages
for each in {" ".join(PCI)}; do
	echo uio_pci_generic > /sys/bus/pci/devices/$each/driver_override
	if [ -e /sys/bus/pci/devices/$each/driver ]; then # the kernel's own, where it is built in
		echo $each > /sys/bus/pci/devices/$each/driver/unbind
	fi
	echo $each > /sys/bus/pci/drivers_probe
done
RUNTIME_DIRECTORY=/run convoyd /plan.json > /ready 2> /words &
while ! grep -q '"ready"' /ready; do
	kill -0 $! 2> /output || {{ cat /words; exit 1; }}
	sleep 0.1
done
"""

_INIT = f"""\
#!/bin/sh
export PATH=/bin
{_REAL}mount -t proc proc /proc
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
	case $line in
	counters) sh /counters.sh ;;
	esac
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


def missing() -> str:
    """Return what a guest cannot be made without, or the empty string."""
    image = kernel()
    if image is None or busybox() is None:
        return HOW
    try:
        module_files(modules_of(image), KERNEL_MODULES + NODE_MODULES)
    except ConvoyError as error:
        return str(error)
    return ""


def busybox() -> str | None:
    """Return a busybox, or None."""
    return shutil.which("busybox", path="/bin:/usr/bin:/usr/sbin")


def kernel_guest(image: Path, functions: Sequence[str]) -> bytes:
    """Return the file system of a guest whose kernel runs the scripts of a chain's functions.

    One runs as it is; of several each has a network namespace, joined by veth: containers.
    """
    if len(functions) == 1:
        made = _common(image, KERNEL_MODULES, _NAME_THEM + functions[0], _COUNTERS)
    else:
        joined, queries = _containers(len(functions))
        made = _common(image, (*KERNEL_MODULES, "veth"), _NAME_THEM + joined, queries)
        for number, function in enumerate(functions):
            made.file(f"function{number}.sh", (_REAL + function).encode())
    made.program("nft")
    return made.archive()


def _containers(number: int) -> tuple[str, str]:
    """Return a script that makes so many containers, and one that prints their counters."""
    names = [f"f{each}" for each in range(number)]
    lines = ["mkdir -p /run", *(f"ip netns add {name}" for name in names)]
    lines += [f"ip link set left netns {names[0]}", f"ip link set right netns {names[-1]}"]
    for one, two in pairwise(names):
        lines.append(f"ip -n {one} link add right type veth peer name left netns {two}")
    for each, name in enumerate(names):
        lines.append(f"ip netns exec {name} sh -e /function{each}.sh")
    queries = [f"ip -n {name} -json -statistics link" for name in names]
    return "\n".join(lines) + "\n", "\n".join(queries) + "\n"


def node_guest(image: Path, plan: Mapping[str, Any]) -> bytes:
    """Return the file system of a guest in which convoyd runs a plan."""
    made = _common(image, NODE_MODULES, _RUN_NODE, _COUNTERS)
    made.file("plan.json", json.dumps(plan).encode())
    convoyd = need("convoyd")
    made.copy(convoyd, "bin/convoyd")
    made.libraries(convoyd)
    made.mirror(LIBGCC)
    for driver in _DRIVERS:
        for path in _PMDS.glob(f"pmds-*/librte_{driver}.so*"):
            made.mirror(path)
            made.libraries(path)
    return made.archive()


def _common(image: Path, modules: tuple[str, ...], script: str, counters: str) -> Initramfs:
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
    made.file("function.sh", (_REAL + script).encode())
    made.file("counters.sh", (_REAL + counters).encode())
    return made
