# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""dpdk-testpmd: what DPDK's ports cost when little or nothing is done between them.

No function, or a bridge, is its mode `io`; l2fwd that writes addresses is `mac`, that swaps them
`macswap`; and `5tswap`, a function that only it has, swaps MAC and IP addresses and ports. In mode
mac a vhost-user port writes a source address of DPDK's own: its driver takes no other.

With ports of virtio-user it is the guest, as a program in a container is: whoever is the switch
makes the sockets, and it is started as soon as both are there.

As a switch with VNFs behind it, it joins its ports pairwise (port topology `paired`).

With the option `convoys` our library is preloaded, and packets come and go aggregated; testpmd
knows nothing of it. With `container=oci` it runs in an OCI container which podman starts.
"""

import itertools
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from convoy.chain.meaning import Layer2
from convoy.dut import container
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Ability, Device, Function, PortAt, Presence, Running, Setup
from convoy.dut.functions import read
from convoy.dut.process import RunningProcess
from convoy.errors import InputError
from convoy.host.command import CommandError, run
from convoy.host.folders import dpdk_folder
from convoy.host.priority import prefer
from convoy.host.process import Process, wait_for
from convoy.host.programs import need
from convoy.host.run_queue import WORKERS, threads_named

PROGRAM = "dpdk-testpmd"
MISSING = f"not installed: {PROGRAM} (Debian: apt-get install dpdk)"
LIBRARY = "libconvoy_ethdev.so"
CONVOYS = ("no", "ethdev-view", "ethdev-copy")
# Of the convoys that it sends, by the other port than they came. The tester looks at none of it.
NEXT_HOP = "dst_mac=02:00:00:00:00:02 dst=192.0.2.2 src=192.0.2.1"
MEMORY_MB = 512  # for two ports, and a quarter of it for each port more
_started = itertools.count()  # several may run, as a switch and as its VNFs
MBUFS = 16384  # a port
# Prints its statistics this often, and runs until a signal: without it, it ends with its input.
STATS_PERIOD_S = 3600
# Before its command: waits for two sockets, to which it connects but once. The first process of a
# container ends by a signal only if it says so.
WAIT = 'trap "exit 1" TERM; until [ -S "$0" ] && [ -S "$1" ]; do sleep 0.02; done; shift; exec "$@"'


def program() -> str:
    """Return where it is. Raises InputError."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise InputError(MISSING)
    return path


def mode(functions: tuple[Function, ...]) -> list[str]:
    """Return the options of a forward mode. Raises InputError for what testpmd cannot do."""
    if not functions:
        return ["--forward-mode=io"]
    if functions[0].type == "5tswap":
        return ["--forward-mode=5tswap"]
    meaning = read(functions[0])
    if isinstance(meaning, Layer2) and meaning.bridge:
        return ["--forward-mode=io"]
    if isinstance(meaning, Layer2) and meaning.swap:
        return ["--forward-mode=macswap"]
    if isinstance(meaning, Layer2) and meaning.dst and meaning.src == RIGHT_MAC:
        return ["--forward-mode=mac", f"--eth-peer=1,{meaning.dst}"]
    raise InputError(f"it has no mode that does this {functions[0].type}")


def port(index: int, at: PortAt) -> tuple[str, str]:
    """Return the options of a port."""
    if at.kind == "dpdk":
        return "--allow", at.address
    if at.nic:
        return "--vdev", f"net_{at.kind}{index},iface={at.address}"
    if at.kind == "vhost-user":
        return "--vdev", f"net_vhost{index},iface={at.address},queues={at.queues}"
    mac = (LEFT_MAC, RIGHT_MAC)[index]
    server = ",server=1" if at.kind == "virtio-user-server" else ""
    return (
        "--vdev",
        f"net_virtio_user{index},path={at.address},queues={at.queues},queue_size=1024,mac={mac}"
        f"{server}",
    )


def preloaded(convoys: str) -> list[str]:
    """Return what goes before its command for the value of the option. Raises InputError."""
    if convoys == "no":
        return []
    mode = convoys.removeprefix("ethdev-")
    return ["env", f"LD_PRELOAD={need(LIBRARY)}", f"CONVOY_ETHDEV=mode={mode} {NEXT_HOP}"]


def command(program: str, setup: Setup) -> list[str]:
    """Return the command for a setup. Its control thread shares the core: it only waits."""
    core = setup.cores[0]
    queues = max(setup.left.queues, setup.right.queues)
    memory = ["--in-memory", "--single-file-segments"] if setup.hugepages else ["--no-huge"]
    return [
        program,
        "--lcores", f"0@{core},1@{core}",
        *memory, "-m", str(MEMORY_MB * (2 + len(setup.ports)) // 4),
        *([] if setup.left.kind == "dpdk" else ["--no-pci"]), "--no-telemetry",
        "--file-prefix", f"convoy-testpmd-{os.getpid()}-{next(_started)}",
        *(word for index, at in enumerate(setup.ports) for word in port(index, at)),
        "--",
        *mode(setup.functions), "--nb-cores=1", "--auto-start", "--no-mlockall",
        f"--total-num-mbufs={MBUFS * len(setup.ports)}",
        f"--rxq={queues}", f"--txq={queues}",
        f"--stats-period={STATS_PERIOD_S}",
    ]  # fmt: skip


def waiting(command: Sequence[str], setup: Setup) -> list[str]:
    """Return the command of a guest."""
    return ["sh", "-c", WAIT, setup.left.address, setup.right.address, *command]


class _Running(RunningProcess):
    def poll_threads(self) -> tuple[int, ...]:
        return tuple(t for pid in self.processes() for t in threads_named(pid, WORKERS))

    def ready(self, deadline_s: float) -> None:
        # It prints nothing in time (its output is buffered), but makes its sockets last.
        def made() -> bool:
            return not self.alive() or all(socket.exists() for socket in self._sockets)

        wait_for(made, deadline_s, f"{self._process.name}: making its sockets")
        if not self.alive():
            raise self.died()


class Testpmd(Device):
    """Debian's dpdk-testpmd."""

    name = "testpmd"
    own_source_on = frozenset({"vhost-user", "dpdk", "af_packet", "af_xdp"})
    ability = Ability(
        functions=frozenset({"bridge", "l2fwd", "5tswap"}),
        port_kinds=frozenset({"vhost-user", "virtio-user", "virtio-user-server"}),
        nics=frozenset({"dpdk", "af_packet", "af_xdp"}),
        chains=False,
        queues=16,
        switches=True,
        options={"convoys": CONVOYS, **container.OPTION},
    )

    def presence(self) -> Presence:
        """Look for dpdk-testpmd on PATH."""
        try:
            path = program()
            ended = run([path, "-v", "--no-huge", "--no-pci", "-m", "64", "--help"])
        except InputError as error:
            return Presence("", str(error))
        except CommandError as error:
            return Presence("", f"not installed: {path} does not run: {error}")
        version = re.search(r"RTE Version: '(.*)'", ended.output)
        return Presence(version[1] if version else "unknown")

    def check(self, setup: Setup) -> None:
        """Ask for a mode too, and for the library that is to be preloaded."""
        if setup.left.kind != setup.right.kind:
            raise InputError("give both ports the same kind")
        if setup.left.nic and setup.left.kind != "dpdk" and setup.left.queues > 1:
            raise InputError(f"{setup.left.kind} ports have one queue here")
        mode(setup.functions)
        preloaded(self.option(setup, "convoys"))
        container.check_sockets(setup)

    def start(self, setup: Setup) -> Running:
        """Start it between two sockets: of vhost-user, which it makes, or of virtio-user."""
        path = program()
        convoys = preloaded(self.option(setup, "convoys"))
        words: Sequence[str] = [*convoys, *command(path, setup)]
        if setup.left.kind == "virtio-user":
            words = waiting(words, setup)
        environment = dpdk_folder(setup.folder)
        made = [at.address for at in setup.ports if at.kind != "virtio-user" and not at.nic]
        with ExitStack() as begun:
            holding = None
            if container.wanted(setup):
                used = [Path(path), *([need(LIBRARY)] if convoys else [])]
                holding = begun.enter_context(container.holding(setup, *used))
                words = holding.command(*words, environment=dpdk_folder(holding.files))
                environment = {}
            process = begun.enter_context(Process(words, environment=environment))
            process.name = PROGRAM
            running = _Running(process, made, holding)
            begun.pop_all()
        prefer(running.processes()[0])
        if setup.left.kind.startswith("virtio-user"):
            running.notes = ("it is the guest: DPDK's virtio-user",)
        if convoys:
            running.notes += (f"packets are aggregated: {LIBRARY}, {setup.options['convoys']}",)
        if holding is not None:
            running.notes += (container.note(),)
        return running
