# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What runs in a virtual machine: Debian's cloud kernel, and a file system of a few programs.

Its first process loads modules, calls the two network devices `left` and `right`, runs the script
it was given and says READY on the serial console. Then it answers there: `counters` with a line
of JSON.
"""

import shutil
from pathlib import Path

from convoy.errors import ConvoyError
from convoy.host.initramfs import Initramfs, module_files

READY = "convoy guest: ready"
FAILED = "convoy guest: failed"
HOW = (
    "a Debian cloud kernel and busybox (Debian: apt-get install linux-image-cloud-amd64 "
    "busybox-static)"
)
MODULES = ("virtio_pci", "virtio_net", "bridge", "nf_tables", "nft_fwd_netdev", "nft_meta_bridge")
LEFT, RIGHT = "02:00:00:00:0d:01", "02:00:00:00:0d:02"  # the devices', unless a script says else
# Applets that the scripts use.
APPLETS = ("sh", "cat", "echo", "insmod", "mount", "poweroff", "mkdir", "ls", "grep", "sleep")

# Busybox's shell would take its own ip before the real one.
_REAL = 'ip() { /bin/ip "$@"; }\n'

_INIT = f"""\
#!/bin/sh
export PATH=/bin
{_REAL}mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo 1 > /proc/sys/kernel/printk
for each in $(cat /modules/order); do insmod /modules/$each || echo "{FAILED}: $each"; done
for each in /sys/class/net/*; do
	case $(cat $each/address) in
	{LEFT}) ip link set ${{each##*/}} name left ;;
	{RIGHT}) ip link set ${{each##*/}} name right ;;
	esac
done
if sh -e /function.sh > /said 2>&1; then
	echo "{READY}"
else
	echo "{FAILED}: $(cat /said)"
fi
while read -r line; do
	case $line in
	counters) ip -json -statistics link ;;
	esac
done
poweroff -f
"""


def kernel() -> Path | None:
    """Return the newest cloud kernel whose modules are here, or None."""
    images = sorted(Path("/boot").glob("vmlinuz-*-cloud-*"))
    return next((image for image in reversed(images) if modules_of(image).is_dir()), None)


def modules_of(image: Path) -> Path:
    """Return the folder of a kernel's modules."""
    return Path("/lib/modules") / image.name.removeprefix("vmlinuz-")


def missing() -> str:
    """Return what a guest cannot be made without, or the empty string."""
    image = kernel()
    if image is None or busybox() is None:
        return HOW
    try:
        module_files(modules_of(image), MODULES)
    except ConvoyError as error:
        return str(error)
    return ""


def busybox() -> str | None:
    """Return a busybox, or None."""
    return shutil.which("busybox", path="/bin:/usr/bin:/usr/sbin")


def initramfs(image: Path, function: str) -> bytes:
    """Return the file system that a kernel starts with, to run the script of a function."""
    made = Initramfs()
    made.console()
    for folder in ("proc", "sys", "dev", "tmp"):
        made.folder(folder)
    made.program("busybox")
    for applet in APPLETS:
        made.link(f"bin/{applet}", "busybox")
    made.program("ip")
    made.program("nft")
    files = module_files(modules_of(image), MODULES)
    for file in files:
        made.copy(file, f"modules/{file.name}")
    made.file("modules/order", "\n".join(file.name for file in files).encode() + b"\n")
    made.file("init", _INIT.encode(), 0o755)
    made.file("function.sh", (_REAL + function).encode())
    return made.archive()
