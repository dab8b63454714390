# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Wires of the kernel: veth pairs between the tester and a device, and inside of it.

The tester's ends are called as the setup says and stay outside, where it finds them. The device's
are `left` and `right`, each in the namespace of the function it belongs to. Where the setup's ports
are interfaces that are there already, `left` and `right` are macvlan of these in mode passthru:
they get and send all that the interface does, share its MAC address, and go with the namespace.
"""

from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from convoy.dut.base import PortAt, Setup
from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, shell

KINDS = ("af_packet", "af_xdp")
ATTACHED = {kind: f"tester attached by {kind} to a veth" for kind in KINDS}
PASSED = "interfaces passed into its namespace by macvlan"


def made(setup: Setup) -> bool:
    """Return whether the tester and the device are to meet at veth pairs."""
    return setup.left.kind in KINDS and not setup.left.nic


def attached(setup: Setup) -> str:
    """Return what results say about a device with such wires."""
    return PASSED if setup.left.nic else ATTACHED[setup.left.kind]


def wiring(pids: list[int], setup: Setup) -> list[str]:
    """Return the commands that join the tester and namespaces, one after another.

    pids: the processes that hold these. What comes in is steered to the device's cores; the
    sender's core would do all the work otherwise.
    """
    mask = f"{sum(1 << core for core in setup.cores):x}"
    left, right = setup.left.address, setup.right.address
    lines = [_outer(left, "left", pids[0], setup)]
    for one, two in pairwise(pids):
        peer = f"ip link add right type veth peer name left netns {two}"
        lines.append(f"nsenter --target={one} --net {peer}")
    lines.append(_outer(right, "right", pids[-1], setup))
    for end in (left, right) if made(setup) else ():
        lines.append(f"echo 1 > /proc/sys/net/ipv6/conf/{end}/disable_ipv6")
        lines.append(f"ip link set {end} up promisc on")
    for pid, end in ((pids[0], "left"), (pids[-1], "right")):  # the kernel says nothing of its own
        silence = f"echo 1 > /proc/sys/net/ipv6/conf/{end}/disable_ipv6"
        lines.append(f"nsenter --target={pid} --net --mount sh -ec '{silence}'")
    if setup.left.nic:
        return lines  # what comes is steered where it comes in
    lines.append(_steering(pids[0], "left", mask))
    if setup.back is not None or setup.flows is not None:
        lines.append(_steering(pids[-1], "right", mask))
    return lines


def _outer(outside: str, inside: str, pid: int, setup: Setup) -> str:
    if setup.left.nic:
        return f"ip link add link {outside} name {inside} netns {pid} type macvlan mode passthru"
    return f"ip link add {outside} type veth peer name {inside} netns {pid}"


def _steering(pid: int, end: str, mask: str) -> str:
    steering = f"echo {mask} > /sys/class/net/{end}/queues/rx-0/rps_cpus"
    return f"nsenter --target={pid} --net --mount sh -ec '{steering}'"


def take_in(apart: Namespace, ports: Iterable[PortAt]) -> None:
    """Move interfaces that are there, of VNFs behind a switch, into the switch's namespace."""
    for name in (port.address for port in ports if port.nic):
        shell(f"ip link set {name} netns {apart.pid}")
        # The kernel says nothing of its own there, either.
        silence = f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6"
        apart.run(f"{silence}\nip link set {name} up promisc on")


def unwire(pids: list[int], setup: Setup) -> None:
    """Remove the tester's ends, and with them the others; or what was put on interfaces.

    They go with the namespaces too, but only when the kernel finds the time: maybe just now.
    """
    if setup.left.nic:
        for pid, end in ((pids[0], "left"), (pids[-1], "right")) if pids else ():
            with suppress(ConvoyError):  # the namespace is gone, and it too
                shell(f"nsenter --target={pid} --net ip link del {end}")
        return
    for end in (setup.left.address, setup.right.address):
        if Path(f"/sys/class/net/{end}").exists():
            shell(f"ip link del {end} 2>/dev/null || test ! -e /sys/class/net/{end}")
