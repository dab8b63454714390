# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""VPP with its own vhost-user or memif ports: `vpp`, found by CONVOY_VPP or on PATH, and vppctl
beside it. Its plugins it finds by itself: in lib/, beside the folder that it is in.

Its main thread does everything, polling and commands, on the device's one core. Sockets, files and
shared memory are its own: a VPP that serves this machine is not touched.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from convoy.chain.meaning import types_of
from convoy.dut import third_party
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Ability, Cost, Device, Flows, PortAt, Presence, Running, Setup
from convoy.dut.functions import tracks
from convoy.dut.process import RunningProcess
from convoy.dut.vpp_commands import MEANINGS, commands, joined, tracking
from convoy.dut.vpp_counters import errors, idle_clocks, interfaces, nodes, spent
from convoy.errors import ConvoyError, InputError
from convoy.host.command import output
from convoy.host.priority import prefer
from convoy.host.process import Process, wait_for

VARIABLE = "CONVOY_VPP"
PAGE = "https://s3-docs.fd.io/vpp/latest/gettingstarted/installing/"
HOW = f"not installed: vpp and vppctl ({PAGE}; then on PATH, or {VARIABLE}=the folder of both)"
BUFFERS = 32768
PLUGINS = {
    "vhost-user": "vhost_plugin.so",
    "memif": "memif_plugin.so",
    "af_packet": "af_packet_plugin.so",
}
ACL, NAT = "acl_plugin.so", "nat_plugin.so"
HEAP_MB = 256
FLOW_BYTES = 640  # a session, and its two places in a hash table that is doubled while it grows
_ERRORS = re.compile(r"unknown input|failed|error|invalid|parse", re.IGNORECASE)


def startup(setup: Setup) -> str:
    """Return the startup configuration."""
    at, pages = setup.folder, "default-hugepage" if setup.hugepages else "default"
    heap_mb = HEAP_MB + (setup.flows.count * FLOW_BYTES >> 20 if setup.flows else 0)
    enabled = "\n".join(f"  plugin {name} {{ enable }}" for name in _plugins(setup))
    return f"""\
unix {{ nodaemon nobanner nocolor cli-no-pager runtime-dir {at} cli-listen {at}/vpp.ctl
  log {at}/vpp.log pidfile {at}/vpp.pid }}
cpu {{ main-core {setup.cores[0]} }}
memory {{ main-heap-size {heap_mb}M main-heap-page-size {pages} }}
buffers {{ buffers-per-numa {BUFFERS} page-size {pages} }}
statseg {{ socket-name {at}/vpp.stats size 32M page-size default }}
socksvr {{ socket-name {at}/vpp.api }}
api-segment {{ prefix convoy-{os.getpid()} }}
plugins {{
  plugin default {{ disable }}
{enabled}
}}
"""


def _plugins(setup: Setup) -> list[str]:
    nat = [NAT] if setup.flows is not None else []
    return [ACL, *nat, *dict.fromkeys(PLUGINS[port.kind] for port in setup.ports)]


def script(setup: Setup) -> list[str]:
    """Return the commands that make the ports and the chain. Raises InputError."""
    if setup.left.kind != setup.right.kind:
        raise InputError("its ports are of one kind")
    macs = [LEFT_MAC, *([None] * len(setup.behind)), RIGHT_MAC]
    lines = [
        line
        for index, (port, mac) in enumerate(zip(setup.ports, macs, strict=True))
        for line in _port(index, port, mac)
    ]
    interfaces = _interfaces(setup.ports)
    if setup.behind:
        return lines + joined(interfaces)
    if tracks(setup.functions):
        return lines + tracking(setup.functions, setup.flows or Flows(0), *interfaces)
    return lines + commands(setup.functions, *interfaces)


def _port(index: int, port: PortAt, mac: str | None) -> list[str]:
    if port.kind == "vhost-user":
        own = f" hwaddr {mac}" if mac else ""
        return [f"create vhost-user socket {port.address} server{own}"]
    if port.kind == "af_packet":
        return [f"create host-interface name {port.address}"]
    own = f" hw-addr {mac}" if mac else ""
    return [
        f"create memif socket id {index + 1} filename {port.address}",
        f"create interface memif id 0 socket-id {index + 1} master{own}",
    ]


def _interfaces(ports: Sequence[PortAt]) -> list[str]:
    """Return what VPP calls ports that are made in this order."""
    vhost_user = count()  # it numbers these by themselves
    return [
        f"VirtualEthernet0/0/{next(vhost_user)}"
        if port.kind == "vhost-user"
        else f"host-{port.address}"
        if port.kind == "af_packet"
        else f"memif{index + 1}/0"
        for index, port in enumerate(ports)
    ]


class _Running(RunningProcess):
    def __init__(self, process: Process, ctl: Path, setup: Setup, lines: list[str]) -> None:
        sockets = [port.address for port in setup.ports if port.kind != "af_packet"]
        super().__init__(process, sockets)
        self._ctl = ctl
        self._socket = setup.folder / "vpp.ctl"
        self._script = setup.folder / "chain.vpp"
        self._lines = lines
        self._plugins = _plugins(setup)
        self._idle: float | None = None  # ticks of a poll that finds nothing
        self._spent = Cost(0, 0, "vppctl show runtime, less empty polls")
        self.commands = (process.command, *(("#", line) for line in lines))

    def ready(self, deadline_s: float) -> None:
        """Its CLI answers, and then it was told what to do; it is ready when that is done."""

        def answers() -> bool:
            with suppress(ConvoyError):
                return self._socket.exists() and "vpp" in self._ask("show version")
            return not self.alive()

        wait_for(answers, deadline_s, "vpp: answering")
        if not self.alive():
            raise self.died()
        self._script.write_text("\n".join(self._lines) + "\n")
        output = self._ask("exec", str(self._script))
        if _ERRORS.search(output):
            raise ConvoyError(f"vpp: {' '.join(output.split())}{self._without()}")
        self._ask("clear", "runtime")

    def _without(self) -> str:
        """Return which of its plugins it has not loaded, in words."""
        loaded = self._ask("show", "plugins")
        missing = [name for name in self._plugins if name not in loaded]
        where = re.search(r"Plugin path is: ([^\s,]+)", loaded)
        place = f" in {where[1]}" if where else ""
        return f"; it found no {', '.join(missing)}{place}" if missing else ""

    def _ask(self, *words: str) -> str:
        return output([self._ctl, "-s", self._socket, *words])

    def poll_threads(self) -> tuple[int, ...]:
        return self.processes()  # the main thread has its process's number

    def counters(self) -> dict[str, Any] | None:
        return {
            **interfaces(self._ask("show", "interface")),
            "errors": errors(self._ask("show", "errors")),
        }

    def cost(self) -> Cost | None:
        """Sum up what its nodes cost. It prints means: they are added up, and begun afresh."""
        runtime = nodes(self._ask("show", "runtime"))
        self._ask("clear", "runtime")
        self._idle = idle_clocks(runtime) or self._idle
        if self._idle is None:
            return None
        ticks, packets = spent(runtime, self._idle)
        self._spent = Cost(
            self._spent.busy_cycles + ticks, self._spent.packets + packets, self._spent.source
        )
        return self._spent


class Vpp(Device):
    """A vpp with its acl, vhost and memif plugins."""

    name = "vpp"
    ability = Ability(
        functions=types_of(MEANINGS),
        port_kinds=frozenset({"vhost-user", "memif"}),
        remembers=True,
        switches=True,
    )

    def _programs(self) -> tuple[Path, Path] | None:
        vpp = third_party.find("vpp", VARIABLE)
        if vpp is None:
            return None
        beside = vpp.resolve().parent / "vppctl"
        ctl = beside if beside.exists() else third_party.find("vppctl", "")
        return (vpp, ctl) if ctl else None

    def presence(self) -> Presence:
        """Look for vpp and vppctl, and ask vpp which it is."""
        programs = self._programs()
        if programs is None:
            return Presence("", HOW)
        try:
            words = output([programs[0], "--version"])
        except ConvoyError as error:
            return Presence("", f"{HOW}; {programs[0]} does not run: {error}")
        version = re.search(r"v(\d\d\.\d\d\S*)", words)
        return Presence(version[1] if version else "unknown")

    def check(self, setup: Setup) -> None:
        """Ask for the commands too: VPP cannot say everything."""
        script(setup)

    def start(self, setup: Setup) -> Running:
        """Start it; ready() makes its ports and tells it the chain."""
        programs = self._programs()
        if programs is None:
            raise ConvoyError(HOW)
        lines = script(setup)
        config = setup.folder / "startup.conf"
        config.write_text(startup(setup))
        process = Process([programs[0], "-c", config], folder=setup.folder)
        prefer(process.pid)
        return _Running(process, programs[1], setup, lines)
