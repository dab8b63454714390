# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node, over its control socket (docs/control.md).

with Client(Path("/run/node/dpdk/convoyd-1/control.sock")) as client:
    print(client.counts()["accounting"])
    client.put_next_hop({"name": "b", "port": "wire", ...})
"""

from convoy.client.client import Client, Difference, Entry
from convoy.client.connection import ClientError, Connection, Hello, RefusedError
from convoy.client.why import Packet, Step

__all__ = [
    "Client",
    "ClientError",
    "Connection",
    "Difference",
    "Entry",
    "Hello",
    "Packet",
    "RefusedError",
    "Step",
]
