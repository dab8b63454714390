# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Wires of the kernel: veth pairs between the tester and a device, and inside of it.

The tester's ends are called as the setup says and stay outside, where it finds them. The device's
are `left` and `right`, each in the namespace of the function it belongs to.
"""

from itertools import pairwise
from pathlib import Path

from convoy.dut.base import Setup
from convoy.host.namespace import shell

KINDS = ("af_packet", "af_xdp")
ATTACHED = {kind: f"tester attached by {kind} to a veth" for kind in KINDS}


def wiring(pids: list[int], setup: Setup) -> list[str]:
    """Return the commands that join the tester and namespaces, one after another.

    pids: the processes that hold these. What comes in is steered to the device's cores; the
    sender's core would do all the work otherwise.
    """
    mask = f"{sum(1 << core for core in setup.cores):x}"
    left, right = setup.left.address, setup.right.address
    lines = [f"ip link add {left} type veth peer name left netns {pids[0]}"]
    for one, two in pairwise(pids):
        peer = f"ip link add right type veth peer name left netns {two}"
        lines.append(f"nsenter --target={one} --net {peer}")
    lines.append(f"ip link add {right} type veth peer name right netns {pids[-1]}")
    for end in (left, right):
        lines.append(f"echo 1 > /proc/sys/net/ipv6/conf/{end}/disable_ipv6")
        lines.append(f"ip link set {end} up promisc on")
    for pid, end in ((pids[0], "left"), (pids[-1], "right")):  # the kernel says nothing of its own
        silence = f"echo 1 > /proc/sys/net/ipv6/conf/{end}/disable_ipv6"
        lines.append(f"nsenter --target={pid} --net --mount sh -ec '{silence}'")
    lines.append(_steering(pids[0], "left", mask))
    if setup.back is not None or setup.flows is not None:
        lines.append(_steering(pids[-1], "right", mask))
    return lines


def _steering(pid: int, end: str, mask: str) -> str:
    steering = f"echo {mask} > /sys/class/net/{end}/queues/rx-0/rps_cpus"
    return f"nsenter --target={pid} --net --mount sh -ec '{steering}'"


def unwire(setup: Setup) -> None:
    """Remove the tester's ends, and with them the others.

    They go with the namespaces too, but only when the kernel finds the time: maybe just now.
    """
    for end in (setup.left.address, setup.right.address):
        if Path(f"/sys/class/net/{end}").exists():
            shell(f"ip link del {end} 2>/dev/null || test ! -e /sys/class/net/{end}")
