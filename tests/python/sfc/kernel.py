# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Linux's seg6 and seg6local between two links: frames in by one, frames out by both."""

import json
from collections.abc import Sequence
from types import TracebackType

from convoy.errors import ConvoyError
from convoy.host.command import run
from convoy.host.namespace import Namespace, shell

from .conftest import IN_MAC, OUT_MAC

PEER, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:99"
DEADLINE_S = 60.0
WIRING = f"""
sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv4.ip_forward=1
sysctl -qw net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.default.seg6_enabled=1
sysctl -qw net.ipv6.conf.left.seg6_enabled=1 net.ipv6.conf.right.seg6_enabled=1
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.left.rp_filter=0
sysctl -qw net.ipv6.icmp.ratelimit=0 net.ipv6.icmp.ratemask=
sysctl -qw net.ipv6.conf.left.accept_dad=0 net.ipv6.conf.right.accept_dad=0
ip link set lo up
ip link set left address {IN_MAC} up
ip link set right address {OUT_MAC} up
ip address add 2001:db8:1::a/64 dev left nodad
ip address add 2001:db8:2::b/64 dev right nodad
ip address add 10.0.2.11/24 dev right
ip -6 neigh add 2001:db8:1::1 lladdr {PEER} dev left nud permanent
ip -6 neigh add 2001:db8:2::9 lladdr {NEXT} dev right nud permanent
ip neigh add 10.0.2.9 lladdr {NEXT} dev right nud permanent
"""
# Sends frames by left; what came by either, until the last of them came by right.
WIRE = """
import json, select, socket, sys, time
frames = [bytes.fromhex(line) for line in sys.stdin.read().split()]
links = {}
for name in ("left", "right"):
    links[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    links[name].bind((name, 0))
    links[name].setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
came = {name: [] for name in links}
end = time.monotonic() + 50
for frame in frames:
    links["left"].send(frame)
while time.monotonic() < end:
    for name in links:
        while select.select([links[name]], [], [], 0.01)[0]:
            data, address = links[name].recvfrom(65536)
            if address[2] != 4:  # not what was sent
                came[name].append(data.hex())
    if any(frames[-1].hex()[108:] in data for data in came["right"]):
        break
print(json.dumps(came))
"""


class Kernel:
    """A namespace that forwards, and one with its neighbours."""

    def __init__(self, setup: str) -> None:
        """setup: commands that make its routes."""
        self._setup = setup
        self._held: list[Namespace] = []

    def __enter__(self) -> "Kernel":
        try:
            for _ in range(2):
                self._held.append(Namespace())
            router, peers = (each.pid for each in self._held)
            for name in ("left", "right"):
                shell(f"ip link add {name} netns {router} type veth peer name {name} netns {peers}")
            self._held[1].run(
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=1\n"
                f"ip link set left address {PEER} up\nip link set right address {NEXT} up"
            )
            self._held[0].run(WIRING + self._setup)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._held:
            each.stop()

    def through(self, frames: Sequence[bytes]) -> dict[str, list[bytes]]:
        """Return what came out, by link. The last frame's payload must come by right."""
        command = self._held[1].command("python3", "-c", WIRE)
        ended = run(command, DEADLINE_S, "\n".join(frame.hex() for frame in frames))
        if ended.exit_code != 0:
            raise ConvoyError(ended.output)
        return {
            name: [frame for frame in map(bytes.fromhex, came) if not _own(frame)]
            for name, came in json.loads(ended.stdout).items()
        }


def _own(frame: bytes) -> bool:
    """Return whether it is of the kernel's own life: multicast, discovery."""
    return bool(frame[0] & 1) or (
        frame[12:14] == b"\x86\xdd" and frame[54:55] in b"\x85\x86\x87\x88"
    )
