# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""FastClick, a Click with batches and DPDK: `click --dpdk`, found by CONVOY_CLICK or on PATH.

One thread polls the left port, and asks between two bursts whether its control socket was written
to: its counters are read there, by Click's handlers.
"""

import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from convoy.chain.meaning import types_of
from convoy.dut import third_party
from convoy.dut.base import Ability, Cost, Device, PortAt, Presence, Running, Setup
from convoy.dut.click import IN, MEANINGS, OUT, configuration
from convoy.dut.process import RunningProcess
from convoy.errors import ConvoyError
from convoy.host.command import run
from convoy.host.priority import prefer
from convoy.host.process import Process, wait_for

VARIABLE = "CONVOY_CLICK"
PAGE = "https://github.com/tbarbette/fastclick/wiki"
HOW = f"not installed: FastClick's click with DPDK ({PAGE}; then on PATH, or {VARIABLE}=its path)"
MEMORY_MB = 512
BUFFERS = 32767
ASK_DEADLINE_S = 10.0


def command(program: Path, setup: Setup, config: Path, control: Path) -> list[str]:
    """Return the command for a setup."""
    memory = ["--single-file-segments"] if setup.hugepages else ["--no-huge"]
    return [
        str(program), "--dpdk",
        "--lcores", f"0@{setup.cores[0]}",
        *memory, "-m", str(MEMORY_MB), "--no-pci", "--no-telemetry",
        "--file-prefix", f"convoy-click-{os.getpid()}",
        *_vdev(0, setup.left), *_vdev(1, setup.right),
        "--", "-u", str(control), "-f", str(config),
    ]  # fmt: skip


def _vdev(index: int, port: PortAt) -> list[str]:
    return ["--vdev", f"net_vhost{index},iface={port.address},queues=1"]


def script(setup: Setup) -> list[str]:
    """Return Click's configuration. Raises InputError for what it cannot be told."""
    return [
        f"DPDKInfo({BUFFERS});",
        f"{IN} :: FromDPDKDevice(0);",
        # A full port loses packets, as with everybody else; Click's default is to wait for it.
        f"{OUT} :: ToDPDKDevice(1, BLOCKING false);",
        *configuration(setup.functions),
    ]


class _Running(RunningProcess):
    def __init__(self, process: Process, setup: Setup, control: Path, lines: list[str]) -> None:
        super().__init__(process, (setup.left.address, setup.right.address, control))
        self._control = control
        self.commands = (process.command, *(("#", line) for line in lines))

    def ready(self, deadline_s: float) -> None:
        """Its control socket answers when its thread runs, which is after its ports were made."""

        def answers() -> bool:
            with suppress(ConvoyError):
                return bool(self._read(f"{IN}.count"))
            return not self.alive()

        wait_for(answers, deadline_s, "click: running its configuration")
        if not self.alive():
            raise self.died()

    def _read(self, handler: str) -> str:
        """Return a handler's value; ControlSocket(n) has the protocol."""
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(ASK_DEADLINE_S)
                line.connect(str(self._control))
                with line.makefile("rwb") as stream:
                    stream.readline()  # its greeting
                    stream.write(f"READ {handler}\r\n".encode())
                    stream.flush()
                    answer = stream.readline().decode(errors="replace").strip()
                    while answer[3:4] == "-":  # more lines of the same answer
                        answer = stream.readline().decode(errors="replace").strip()
                    if not answer.startswith("200"):
                        raise ConvoyError(f"click: {handler}: {answer or 'no answer'}")
                    size = int(stream.readline().split()[1])
                    return stream.read(size).decode(errors="replace").strip()
        except (OSError, ValueError, IndexError) as error:
            raise ConvoyError(f"click: {handler}: {error}") from None

    def counters(self) -> dict[str, Any] | None:
        names = (f"{IN}.count", f"{OUT}.count", f"{OUT}.dropped")
        return {name: int(self._read(name)) for name in names}

    def cost(self) -> Cost | None:
        try:
            cycles = sum(map(int, self._read("useful_kcycles").split())) * 1000
        except ConvoyError:
            return None  # built without --enable-cpu-load
        return Cost(cycles, int(self._read(f"{IN}.count")), "click's useful_kcycles")


class FastClick(Device):
    """A click that was built with DPDK."""

    name = "fastclick"
    ability = Ability(functions=types_of(MEANINGS), port_kinds=frozenset({"vhost-user"}))

    def presence(self) -> Presence:
        """Look for click, and ask it whether it is FastClick with DPDK."""
        program = third_party.find("click", VARIABLE)
        if program is None:
            return Presence("", HOW)
        try:
            # Some builds abort as they end, with what they said still in a buffer.
            words, helps = (
                run(["stdbuf", "-oL", program, option]).output for option in ("--version", "--help")
            )
        except ConvoyError as error:
            return Presence("", f"{HOW}; {program} does not run: {error}")
        if not words.startswith("click ("):
            return Presence("", f"{HOW}; {program} does not run: {' '.join(words.split())}")
        if "--dpdk" not in helps:
            return Presence("", f"{HOW}; {program} is one without DPDK")
        version = re.search(r"^click \((\S+)\) (\S+)", words, re.MULTILINE)
        return Presence(f"{version[1]} {version[2]}" if version else "unknown")

    def check(self, setup: Setup) -> None:
        """Ask for the configuration too."""
        script(setup)

    def start(self, setup: Setup) -> Running:
        """Start it between two vhost-user sockets, which it makes."""
        program = third_party.find("click", VARIABLE)
        if program is None:
            raise ConvoyError(HOW)
        lines = script(setup)
        config, control = setup.folder / "chain.click", setup.folder / "click.ctl"
        config.write_text("\n".join(lines) + "\n")
        process = Process(
            command(program, setup, config, control),
            {"XDG_RUNTIME_DIR": str(setup.folder)},
            setup.folder,
        )
        prefer(process.pid)
        return _Running(process, setup, control, lines)
