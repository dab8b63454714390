# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""dpdk-testpmd in io mode: what DPDK's ports cost when nothing is done between them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from convoy.dut.base import Ability, Device, Presence, Running, Setup
from convoy.errors import ConvoyError
from convoy.host.priority import prefer
from convoy.host.process import Process, ProcessError, wait_for
from convoy.host.waited import waited_ns

PROGRAM = "dpdk-testpmd"
MEMORY_MB = 512
# Prints its statistics this often, and runs until a signal: without it, it ends with its input.
STATS_PERIOD_S = 86400


def command(program: str, setup: Setup) -> list[str]:
    """Return the command for a setup. Its control thread shares the core: it only waits."""
    core = setup.cores[0]
    memory = ["--single-file-segments"] if setup.hugepages else ["--no-huge"]
    return [
        program,
        "--lcores", f"0@{core},1@{core}",
        *memory, "-m", str(MEMORY_MB), "--no-pci", "--no-telemetry",
        "--file-prefix", f"convoy-testpmd-{os.getpid()}",
        "--vdev", f"net_vhost0,iface={setup.left.address},queues=1",
        "--vdev", f"net_vhost1,iface={setup.right.address},queues=1",
        "--",
        "--forward-mode=io", "--nb-cores=1", "--auto-start", "--no-mlockall",
        "--total-num-mbufs=32768",
        f"--stats-period={STATS_PERIOD_S}",
    ]  # fmt: skip


class _Running(Running):
    def __init__(self, process: Process, sockets: tuple[Path, Path]) -> None:
        self._process = process
        self._sockets = sockets
        self.commands = (process.command,)

    def ready(self, deadline_s: float) -> None:
        # It prints nothing in time (its output is buffered), but makes its sockets last.
        def made() -> bool:
            return not self.alive() or all(socket.exists() for socket in self._sockets)

        wait_for(made, deadline_s, f"{self._process.name}: making its sockets")
        if not self.alive():
            raise ProcessError(f"{self._process.name}: {self._process.last_words()}")

    def alive(self) -> bool:
        return self._process.running()

    def processes(self) -> tuple[int, ...]:
        return (self._process.pid,)

    def waited_ns(self) -> int:
        return waited_ns(self._process.pid)

    def stop(self) -> None:
        self._process.__exit__(None, None, None)
        for socket in self._sockets:
            socket.unlink(missing_ok=True)


class Testpmd(Device):
    """Debian's dpdk-testpmd, io mode."""

    name = "testpmd"
    ability = Ability(functions=frozenset(), port_kinds=frozenset({"vhost-user"}))

    def presence(self) -> Presence:
        """Look for dpdk-testpmd on PATH."""
        program = shutil.which(PROGRAM)
        if program is None:
            return Presence("", f"not installed: {PROGRAM} (Debian: apt-get install dpdk)")
        asked = [program, "-v", "--no-huge", "--no-pci", "-m", "64", "--help"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Presence("", f"not installed: {program} does not run: {error}")
        version = re.search(r"RTE Version: '(.*)'", done.stdout + done.stderr)
        return Presence(version[1] if version else "unknown")

    def start(self, setup: Setup) -> Running:
        """Start it between two vhost-user sockets, which it makes."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise ConvoyError(self.presence().missing)
        process = Process(
            command(program, setup), environment={"XDG_RUNTIME_DIR": str(setup.folder)}
        )
        prefer(process.pid)
        return _Running(process, (Path(setup.left.address), Path(setup.right.address)))
