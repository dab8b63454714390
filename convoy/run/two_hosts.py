# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A client's host and a server's, with a device between them: two network namespaces.

Each gets the end of a wire that the device made (PortAt: af_packet, tap), an address, and a
permanent neighbour: nobody has to ask for addresses, and functions that pass no ARP do.
"""

import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Function, Setup
from convoy.dut.functions import router as many_routes
from convoy.errors import ConvoyError, InputError
from convoy.host.namespace import Namespace, shell
from convoy.host.offload import turn_off
from convoy.host.process import wait_for
from convoy.host.scope import Scope

KINDS = ("af_packet", "tap")  # of ports that can be given to a host, the best to compare first
BEHIND = (("firewall",), ("router",))  # functions that applications are run behind
CLIENT, SERVER = "198.18.0.1", "198.19.0.1"
CLIENT_MAC, SERVER_MAC = "02:00:00:00:0f:01", "02:00:00:00:0f:02"
NETWORK_BITS = 15  # both are in 198.18.0.0/15: no host needs a route
HTTP, FTP, FTP_DATA, IPERF = 80, 21, 20, 5201
_TRY_S = 0.3  # of one connection
_SERVICES = (("tcp", HTTP), ("tcp", f"{FTP_DATA}-{FTP}"), ("tcp", IPERF), ("udp", IPERF))


def both_ways(kind: str, entries: int) -> tuple[Function, Function]:
    """Return a function of so many rules or routes, and the same for what comes back.

    As in the third paper: the firewall lets pass what goes to the servers' ports, and what comes
    from them; the rules before these deny others. Raises InputError for another function.
    """
    if kind == "firewall":
        return _firewall(entries, "dst", "dport"), _firewall(entries, "src", "sport")
    if kind == "router":
        return _router(entries), _router_back()
    raise InputError(f"applications are run behind firewall and router, not {kind}")


def _firewall(rules: int, address: str, port: str) -> Function:
    if rules < len(_SERVICES):
        raise InputError(f"firewall: {rules} rules; for these applications give 4 or more")
    deny: list[dict[str, Any]] = [
        {"deny": {"src": f"10.{i >> 8}.{i & 255}.0/24", "proto": "tcp", "dport": 1 + i % 4000}}
        for i in range(rules - len(_SERVICES))
    ]
    allow = [
        {"allow": {address: f"{SERVER}/32", "proto": proto, port: number}}
        for proto, number in _SERVICES
    ]
    return Function("firewall", {"default": "deny", "rules": [*deny, *allow]})


def _router(routes: int) -> Function:
    """Return the usual router, with the server for each next hop."""
    config = dict(many_routes(routes).config)
    config["neighbours"] = dict.fromkeys(config["neighbours"], SERVER_MAC)
    return Function("router", config)


def _router_back() -> Function:
    via = "192.0.2.254"
    return Function(
        "router",
        {"routes": [f"198.18.0.0/16 via {via} dev left"], "neighbours": {via: CLIENT_MAC}},
    )


class TwoHosts(Scope):
    """Made before the device is asked for anything; use it with `with`. Needs root."""

    def __init__(self, core: int) -> None:
        """core: of both hosts, and of what they do with packets that come in."""
        self._kept = ExitStack()
        self._core = core
        try:
            self.client = self._kept.enter_context(Namespace())
            self.server = self._kept.enter_context(Namespace())
        except BaseException:
            self._kept.close()
            raise

    def join(self, setup: Setup) -> None:
        """Give each host its end of the device's wires. Raises ConvoyError."""
        routed = any(function.type == "router" for function in setup.functions)
        there, back = (LEFT_MAC, RIGHT_MAC) if routed else (SERVER_MAC, CLIENT_MAC)
        ends = (
            (setup.left.address, self.client, CLIENT, CLIENT_MAC, SERVER, there),
            (setup.right.address, self.server, SERVER, SERVER_MAC, CLIENT, back),
        )
        for end, host, own, own_mac, other, next_mac in ends:
            turn_off(end)
            shell(f"ip link set {end} netns {host.pid} name eth0")
            # The core that sent a packet would do the receiver's work too: the device's.
            host.run(
                "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6\n"
                f"echo {1 << self._core:x} > /sys/class/net/eth0/queues/rx-0/rps_cpus\n"
                f"ip link set lo up\nip link set eth0 address {own_mac} promisc off up\n"
                f"ip address add {own}/{NETWORK_BITS} dev eth0\n"
                f"ip neigh replace {other} lladdr {next_mac} dev eth0 nud permanent\n"
            )

    def until_connected(self, deadline_s: float) -> None:
        """Connect to a port of the server until that works. Raises ConvoyError."""
        end = time.monotonic() + deadline_s
        with self.server.tcp_socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((SERVER, HTTP))
            listener.listen()
            while time.monotonic() < end:
                with self.client.tcp_socket() as one:
                    one.settimeout(_TRY_S)
                    with suppress(OSError):
                        one.connect((SERVER, HTTP))
                        return
        raise ConvoyError(f"no connection from client to server within {deadline_s:g} s")

    def until_listening(self, port: int, deadline_s: float) -> None:
        """Wait until somebody listens to a TCP port at the server. Raises ConvoyError."""
        tables = [Path(f"/proc/{self.server.pid}/net/{name}") for name in ("tcp", "tcp6")]

        def listening() -> bool:
            for table in tables:
                for line in table.read_text().splitlines()[1:] if table.exists() else ():
                    words = line.split()
                    if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                        return True
            return False

        wait_for(listening, deadline_s, f"a server on port {port}")

    def _leave(self) -> None:
        self._kept.close()
