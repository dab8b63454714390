# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network namespace without a name: it lives as long as the process that holds it.

That process dies with us, and with the namespace go its interfaces and the other ends of its veth
pairs. Nothing has to be found and cleaned up after a crash.
"""

import ctypes
import os
import socket
import threading
from itertools import count
from pathlib import Path

from convoy.errors import ConvoyError
from convoy.host.command import run
from convoy.host.offload import turn_off
from convoy.host.process import Process
from convoy.host.scope import Scope

DEADLINE_S = 30.0
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_made = count()
# With a /sys of its own: files about interfaces are those of the namespace that mounted it.
_HOLD = "mount -t sysfs sysfs /sys && mount -o remount,rw /sys && echo held && exec sleep infinity"


class Namespace(Scope):
    """A network namespace. Use it with `with`. Needs root."""

    def __init__(self, of: int | None = None) -> None:
        """Make it, or hold a process's. Raises ProcessError where that is not possible."""
        net = ["unshare", "--net"] if of is None else ["nsenter", f"--target={of}", "--net"]
        self._holder = Process([*net, "unshare", "--mount", "sh", "-c", _HOLD])
        try:
            self._holder.wait_line(lambda line: line == "held", DEADLINE_S, "it had a namespace")
        except BaseException:
            self._holder.close()
            raise

    @property
    def pid(self) -> int:
        """The process that holds it, as `ip link set … netns` takes it."""
        return self._holder.pid

    def alive(self) -> bool:
        """Return whether it is still there."""
        return self._holder.running()

    def command(self, *words: str) -> tuple[str, ...]:
        """Return a command that runs inside."""
        return ("nsenter", f"--target={self.pid}", "--net", "--mount", *words)

    def run(self, script: str) -> str:
        """Run a shell script inside; return what it printed. Raises ConvoyError at an error."""
        return shell(script, self.command("sh", "-es"))

    def tcp_socket(self, family: int = socket.AF_INET) -> socket.socket:
        """Return a TCP socket that is inside, whoever uses it. Raises ConvoyError."""
        made: list[socket.socket] = []

        def make() -> None:  # a thread enters alone, and ends there
            with Path(f"/proc/{self.pid}/ns/net").open("rb") as net:
                if _libc.setns(net.fileno(), _CLONE_NEWNET) == 0:
                    made.append(socket.socket(family, socket.SOCK_STREAM))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if not made:
            raise ConvoyError("a network namespace cannot be entered (it needs root)")
        return made[0]

    def stop(self) -> None:
        """Let it go."""
        self._holder.close()

    def _leave(self) -> None:
        self.stop()


def shell(script: str, command: tuple[str, ...] = ("sh", "-es")) -> str:
    """Run a script; return what it printed. Raises ConvoyError with its last words."""
    # sbin: where ip, nft and sysctl are, and what the PATH of a user may lack.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    ended = run(command, DEADLINE_S, script, {"PATH": path})
    if ended.exit_code != 0:
        raise ConvoyError(f"{command[0]}: {ended.lines()[0]}")
    return ended.stdout


def join(*ends: tuple[Namespace, str], mtu: int = 1500) -> None:
    """Join two namespaces by a veth pair without offloads; ends: where, and what it is called."""
    names = [f"cv{os.getpid() % 10**6}x{next(_made)}" for _ in ends]
    shell(f"ip link add {names[0]} mtu {mtu} type veth peer {names[1]} mtu {mtu}")
    for name, (namespace, interface) in zip(names, ends, strict=True):
        turn_off(name)
        shell(f"ip link set {name} netns {namespace.pid} name {interface}")
