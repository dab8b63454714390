# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the quick benchmark's functions are told to do, and the traffic that goes with it.

1,024 destinations, ten networks: six /25 and four /26 of 198.19.0.0/22 (addresses that RFC 2544
sets aside for benchmarks). Each is a route and an allowing rule; the 1,000 flows meet all of them.
"""

from ipaddress import IPv4Address
from typing import Any

from convoy.dut.base import Function

FLOWS = 1000
_BASE = int(IPv4Address("198.19.0.0"))
_NETWORKS = [(i * 128, 25) for i in range(6)] + [(768 + i * 64, 26) for i in range(4)]
PREFIXES = tuple(f"{IPv4Address(_BASE + offset)}/{length}" for offset, length in _NETWORKS)

FIREWALL = Function(
    "firewall",
    {
        "default": "deny",
        "rules": [
            {
                "allow": {
                    "src": "198.18.0.0/15",
                    "dst": prefix,
                    "proto": "udp",
                    "dport": "1024-65535",
                }
            }
            for prefix in PREFIXES
        ],
    },
)
ROUTER = Function(
    "router",
    {
        "routes": [f"{prefix} via 192.0.2.{i + 1} dev right" for i, prefix in enumerate(PREFIXES)],
        "neighbours": {
            f"192.0.2.{i + 1}": f"02:00:00:00:01:{i + 1:02x}" for i in range(len(PREFIXES))
        },
    },
)
L2FWD = Function("l2fwd", {"mode": "rewrite", "dst": "02:00:00:00:02:01"})
CHAIN = (FIREWALL, ROUTER, L2FWD)


def flows() -> dict[str, Any]:
    """Return the flows as a trial's specification writes them."""
    return {
        "count": FLOWS,
        "order": "shuffle",
        "src_ip": "198.18.0.1-198.18.3.232",
        "dst_ip": "198.19.0.0/22",
        "src_port": "1024-65535",
        "dst_port": "4096",
    }
