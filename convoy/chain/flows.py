# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How many flows the stateful functions may remember, and for how long."""

from typing import Any

from pydantic import Field

from convoy.base.model import Model

_MONTH_S = 30 * 86400


def _seconds(default: int, description: str) -> Any:
    return Field(default, ge=1, le=_MONTH_S, description=f"{description}, s")


class Timeouts(Model):
    """Idle time after which a flow ends."""

    tcp_opening: int = _seconds(240, "TCP before it is established")
    tcp_established: int = _seconds(7440, "established TCP")
    tcp_closing: int = _seconds(240, "TCP closed by both ends or reset")
    udp_new: int = _seconds(120, "UDP without a reply")
    udp: int = _seconds(300, "UDP both ways")
    icmp: int = _seconds(60, "ICMP and ICMPv6")
    other: int = _seconds(600, "other protocols")
    denied: int = _seconds(5, "denied flows, until they are decided anew")


class Flows(Model):
    """Flows of stateful functions; those of each set of functions that share a look-up."""

    max: int = Field(65536, ge=64, le=1 << 30, description="IPv4 flows of all workers together")
    max_ipv6: int = Field(
        16384, ge=64, le=1 << 30, description="IPv6 flows of all workers together"
    )
    per_host: int = Field(
        0,
        ge=0,
        le=1 << 30,
        description="flows that one address may open on one worker; 0: no limit",
    )
    timeouts: Timeouts = Field(Timeouts(), description="idle times")
