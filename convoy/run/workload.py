# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What scenarios' functions do, and the traffic that meets all of it."""

from typing import Any

from convoy.dut import functions as described
from convoy.dut.addresses import DESTINATIONS, DPORT, FEW, INSIDE, LEFT_MAC
from convoy.dut.base import Function
from convoy.host.programs import SCENARIOS

FLOWS = 1000
SIZE_FILES = {"facebook-like": SCENARIOS / "traffic/facebook-like.csv"}


def function(kind: str, entries: int, flows: int = 1 << 16) -> Function:
    """Return a function with so many routes or rules, for so many flows."""
    if kind == "nat":
        return described.nat(flows)
    return described.WORKLOADS[kind](entries)


def size_of(size: str) -> int | str | dict[str, str]:
    """Return a frame size or a mix's name as a trial's specification writes it."""
    if size in SIZE_FILES:
        return {"file": str(SIZE_FILES[size])}
    return int(size) if size.isdigit() else size


def flows(count: int = FLOWS, entries: int = 1, service: str | None = None) -> dict[str, Any]:
    """Return the flows as a trial's specification writes them, to all that a router knows.

    entries: its routes. service: the only destination, of a balancer.
    1,000 sources, 1,024 destinations and 64,512 ports: millions of flows.
    """
    near = entries <= FEW.num_addresses
    return {
        "count": count,
        "order": "shuffle",
        "src_ip": "198.18.0.1-198.18.3.232",
        "dst_ip": service or (str(FEW) if near else str(DESTINATIONS)),
        "src_port": "1024-65535",
        "dst_port": str(DPORT),
        "dst_mac": LEFT_MAC,
    }


PORTS = 63  # of each host, as in CSIT's tests of nat44-ed
SERVERS = "198.19.0.0/22"


def hosts_of(count: int) -> int:
    """Return of how many hosts so many flows are, of PORTS ports each.

    Flow i is of host i % hosts and of port i % PORTS: the two must have no divisor in common.
    """
    hosts = -(-count // PORTS)
    while hosts % 3 == 0 or hosts % 7 == 0:
        hosts += 1
    return hosts


def stateful_flows(
    count: int, protocol: str = "udp", first: int = 0, far: bool = True
) -> dict[str, Any]:
    """Return flows from inside to servers outside.

    first: flow that a trial begins with, in an order in which none is near the one before (far), or
    from the first to the last one.
    """
    begin = INSIDE[1]
    return {
        "count": count,
        "order": "shuffle" if far else "sequential",
        "written": "sending",
        "first": first % count,
        "protocol": protocol,
        "src_ip": f"{begin}-{begin + hosts_of(count) - 1}",
        "dst_ip": SERVERS,
        "src_port": f"1024-{1024 + PORTS - 1}",
        "dst_port": str(DPORT),
        "dst_mac": LEFT_MAC,
    }
