# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The kernel as a router: a network namespace of its own, a veth pair for each port.

The other ends of the pairs are in a second namespace, where nothing else talks; frames are sent and
received there by packet sockets. What a kernel does beyond routing is switched off, or told
from what it forwarded: a forwarded packet ends with the mark of those that were sent and is no
ICMP error.
"""

import ctypes
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from .model import Setup, layer3
from .traffic import MARK

DEADLINE_S = 20.0
CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
PACKET_OUTGOING = 4

SWITCHED_OFF = """
net.ipv4.ip_forward=1
net.ipv4.conf.all.rp_filter=0
net.ipv4.conf.default.rp_filter=0
net.ipv4.conf.all.send_redirects=0
net.ipv4.conf.default.send_redirects=0
net.ipv6.conf.all.forwarding=1
net.ipv6.conf.all.accept_ra=0
net.ipv6.conf.default.accept_dad=0
net.ipv6.conf.default.addr_gen_mode=1
"""


class UnavailableError(Exception):
    """Namespaces cannot be made here; the text says why."""


def _do(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """Move this thread into a namespace and back."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise UnavailableError(f"setns: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.setns(home, CLONE_NEWNET)
    finally:
        os.close(home)
        os.close(there)


class Kernel:
    """Two namespaces and the wires between them. Use it with `with`."""

    def __init__(self, ports: dict[str, str]) -> None:
        """Prepare a router with these ports (MAC addresses by name)."""
        self.ports = ports
        self.router = f"cv-router-{os.getpid()}"
        self.peers = f"cv-peers-{os.getpid()}"
        self._sockets: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        """Make them. Raises UnavailableError."""
        if os.geteuid() != 0:
            raise UnavailableError("network namespaces need root")
        try:
            for name in (self.router, self.peers):
                _do("ip", "netns", "add", name)
            self._switch_off()
            # Its address makes the local table, without which no gateway is valid.
            _do("ip", "-n", self.router, "link", "set", "lo", "up")
            _do(
                "ip",
                "netns",
                "exec",
                self.peers,
                "sysctl",
                "-qw",
                "net.ipv6.conf.all.disable_ipv6=1",
            )
            _do(
                "ip",
                "netns",
                "exec",
                self.peers,
                "sysctl",
                "-qw",
                "net.ipv6.conf.default.disable_ipv6=1",
            )
            for name, mac in self.ports.items():
                pair = (
                    f"link add {name} address {mac} type veth peer name {name} netns {self.peers}"
                )
                _do("ip", "-n", self.router, *pair.split())
                _do("ip", "-n", self.router, "link", "set", name, "up")
                _do("ip", "-n", self.peers, "link", "set", name, "up", "promisc", "on")
            with _inside(self.peers):
                for name in self.ports:
                    self._sockets[name] = self._open(name)
        except (UnavailableError, OSError) as why:
            self.__exit__()
            raise UnavailableError(str(why)) from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def _switch_off(self) -> None:
        for line in SWITCHED_OFF.split():
            _do("ip", "netns", "exec", self.router, "sysctl", "-qw", line)

    @staticmethod
    def _open(name: str) -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        opened.bind((name, ETH_P_ALL))
        opened.setblocking(False)
        return opened

    def __exit__(self, *_: object) -> None:
        """Take everything away."""
        for opened in self._sockets.values():
            opened.close()
        for name in (self.router, self.peers):
            if Path(f"/run/netns/{name}").exists():
                subprocess.run(["ip", "netns", "del", name], check=False)

    def configure(self, setup: Setup) -> None:
        """Put its routes and neighbours in the place of what was there."""
        for version in (4, 6):
            family = f"-{version}"
            # Fails where the table was never used.
            flush = ["ip", family, "-n", self.router, "route", "flush", "table", "main"]
            subprocess.run(flush, capture_output=True, check=False)
            lines = []
            for name in self.ports:
                lines.append(f"neigh flush dev {name} nud all")
                lines += [
                    f"neigh replace {address} lladdr {mac} dev {name} nud permanent"
                    for address, mac in setup.neighbours.items()
                    if ip_address(address).version == version
                ]
            for route in setup.routes:
                if (":" in route.prefix) == (version == 6):
                    onlink = " onlink" if route.via else ""
                    kind = "" if route.dev else "blackhole "
                    words = route.line().removeprefix("blackhole ")
                    lines.append(f"route add {kind}{words}{onlink}")
            _do("ip", family, "-n", self.router, "-batch", "-", text="\n".join(lines) + "\n")

    def through(self, frames: list[bytes], last: bytes) -> dict[str, list[bytes]]:
        """Send frames in by the first port, and last, which must come out by it again.

        Return what was forwarded, by port and in order, cut to the length that the IP header says.
        """
        self._drain()
        first = next(iter(self.ports))
        got: dict[str, list[bytes]] = {name: [] for name in self.ports}
        for frame in [*frames, last]:
            self._sockets[first].send(frame)
        deadline = time.monotonic() + DEADLINE_S
        while True:
            for name, opened in self._sockets.items():
                got[name] += self._received(opened)
            if any(each.endswith(last[-10:]) for each in got[first]):
                break
            if time.monotonic() > deadline:
                raise AssertionError(f"the last packet did not come back in {DEADLINE_S} s")
        for name, opened in self._sockets.items():
            got[name] += self._received(opened)
        got[first] = [each for each in got[first] if not each.endswith(last[-10:])]
        return got

    def _drain(self) -> None:
        for opened in self._sockets.values():
            self._received(opened)

    @staticmethod
    def _received(opened: socket.socket) -> list[bytes]:
        frames = []
        while True:
            try:
                frame, where = opened.recvfrom(65536)
            except BlockingIOError:
                return frames
            if where[2] != PACKET_OUTGOING and _forwarded(frame):
                frames.append(cut(frame))


def cut(frame: bytes) -> bytes:
    """Return a frame without what lies behind its IP packet: a kernel does not forward that."""
    kind, at = layer3(frame)
    if kind == 0x0800:
        (total,) = struct.unpack_from(">H", frame, at + 2)
        return frame[: at + total]
    if kind == 0x86DD:
        (payload,) = struct.unpack_from(">H", frame, at + 4)
        return frame[: at + 40 + payload]
    return frame


def _forwarded(frame: bytes) -> bool:
    kind, at = layer3(frame)
    if kind == 0x0800 and frame[at + 9] == 1:  # ICMP: none was sent in
        return False
    if kind == 0x86DD and frame[at + 6] == 58:
        return False
    return kind in (0x0800, 0x86DD) and MARK in cut(frame)[-10 - len(MARK) :]
