# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Virtual machines whose kernels run functions; network devices are called `left` and `right`.

`counters` on their console is answered with a line of JSON for each function.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from convoy.dut import kernel
from convoy.dut.kernel import Script
from convoy.host import guest

MODULES = (
    "virtio_pci",
    "virtio_net",
    "bridge",
    "nf_tables",
    "nft_fwd_netdev",
    "nft_meta_bridge",
)
LEFT, RIGHT = "02:00:00:00:0d:01", "02:00:00:00:0d:02"  # the devices', unless a script says else

_COUNTERS = "ip -json -statistics link\n"

_NAME_THEM = f"""\
for each in /sys/class/net/*; do
	case $(cat $each/address) in
	{LEFT}) ip link set ${{each##*/}} name left ;;
	{RIGHT}) ip link set ${{each##*/}} name right ;;
	esac
done
"""


def missing() -> str:
    """Return what a guest, of the kernel or of our node, cannot be made without, or nothing."""
    return guest.missing((*MODULES, *kernel.MODULES, *guest.NODE_MODULES))


def kernel_guest(image: Path, functions: Sequence[Script]) -> bytes:
    """Return the file system of a guest whose kernel runs the scripts of a chain's functions.

    One runs as it is; of several each has a network namespace, joined by veth: containers.
    """
    modules = [*MODULES, *(module for function in functions for module in function.modules)]
    if len(functions) == 1:
        text = _NAME_THEM + _text(functions[0])
        made = guest.guest(image, modules, text, {"counters": _COUNTERS})
    else:
        joined, queries = _containers(len(functions))
        made = guest.guest(image, [*modules, "veth"], _NAME_THEM + joined, {"counters": queries})
        for number, function in enumerate(functions):
            made.file(f"function{number}.sh", (guest.REAL + _text(function)).encode())
    if any(function.program for function in functions):
        made.program("tayga")
    made.program("nft")
    return made.archive()


def _text(function: Script) -> str:
    """Return a script that begins the function's program, too."""
    if not function.program:
        return function.text
    return f"sh -e <<'PROGRAM' &\n{function.program}PROGRAM\n{function.text}"


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
