# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""BESS: `bessd`, found by CONVOY_BESS or on PATH, told what to do through pybess of its tree.

Not by bessctl, whose language needs a Python older than 3.10. bessd aborts on some starts, and who
talks to it then may wait forever: every answer has a deadline, and a bessd that died before it
forwarded is started again, which the results' notes say.
"""

import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from convoy.chain.meaning import types_of
from convoy.dut import third_party
from convoy.dut.base import Ability, Cost, Device, PortAt, Presence, Running, Setup
from convoy.dut.bess_script import IN, MEANINGS, OUT, Script
from convoy.dut.process import RunningProcess
from convoy.errors import ConvoyError
from convoy.host.command import DEADLINE_S, output
from convoy.host.priority import prefer
from convoy.host.process import Process, wait_for
from convoy.host.run_queue import pollers, thread_times

VARIABLE = "CONVOY_BESS"
PAGE = "https://github.com/NetSys/bess/wiki/Build-and-Install-BESS"
HOW = f"not installed: bessd ({PAGE}; then on PATH, or {VARIABLE}=its path)"
STARTS = 5
LOOK_S = 0.05  # to see which of its threads polls
MEMORY_MB = 512  # with huge pages; bessd takes as much without asking where there are none
BUFFERS = 32768
ALONE = "a firewall is BESS's ACL alone, which asks for no protocol and takes all frames for IPv4"
# Run by a Python that has grpc, with its tree's folder and bessd's address.
_CONNECT = """\
import json, sys
sys.path.insert(1, sys.argv[1])
from pybess.bess import BESS
bess = BESS()
bess.connect(grpc_url=sys.argv[2])
"""
# Prints its counters for each line that it is given: to start a Python takes longer than a trial.
_ASK = """\
for _ in sys.stdin:
    ports, tasks = {}, {}
    for port in bess.list_ports().ports:
        stats = bess.get_port_stats(port.name)
        ports[port.name] = {
            side: {name: getattr(getattr(stats, side), name) for name in ("packets", "dropped")}
            for side in ("inc", "out")
        }
    for each in bess.list_tcs().classes_status:
        name = getattr(each, "class").name
        stats = bess.get_tc_stats(name)
        tasks[name] = {name: getattr(stats, name) for name in ("count", "cycles", "packets")}
    print(json.dumps({"ports": ports, "traffic_classes": tasks}), flush=True)
"""


@dataclass(frozen=True)
class Tree:
    """Where a BESS is."""

    bessd: Path
    root: Path  # has pybess
    python: Path


def tree() -> Tree | str:
    """Look for BESS; a string says what is missing."""
    bessd = third_party.find("bessd", VARIABLE)
    if bessd is None:
        return HOW
    bessd = bessd.resolve()
    root = bessd.parent.parent
    if not (root / "pybess" / "builtin_pb").is_dir():
        return f"{HOW}; {bessd} is not in the tree that it was built in, with its pybess"
    python = _python()
    if python is None:
        return f"{HOW}; pybess needs a python3 with grpc (Debian: apt-get install python3-grpcio)"
    return Tree(bessd, root, python)


@cache
def _python() -> Path | None:
    """Return a Python that has what pybess asks for: not the one we run on, most likely."""
    for place in ("python3", "/usr/bin/python3"):
        with suppress(ConvoyError):
            output([place, "-c", "import google.protobuf, grpc"])
            return Path(place)
    return None


def command(bessd: Path, setup: Setup) -> list[str]:
    """Return bessd's command. Its threads that do not forward share the core: they only wait."""
    return [
        "taskset", "-c", str(setup.cores[0]),
        str(bessd), "-f", "-logtostderr", "-no_crashlog", "-skip_root_check",
        "-i", str(setup.folder / "bessd.pid"),
        "-grpc_url", _address(setup),
        "-m", str(MEMORY_MB if setup.hugepages else 0),
        "-buffers", str(BUFFERS),
    ]  # fmt: skip


def _address(setup: Setup) -> str:
    return f"unix:{setup.folder / 'bessd.ctl'}"


def lines(setup: Setup, alone: bool) -> list[str]:
    """Return the calls of pybess that make ports and chain. Raises InputError."""
    names = ["left", *(f"vnf{i}" for i in range(len(setup.behind))), "right"]
    # Of a switch, what it takes from a VNF or gives to one has modules of its own.
    ends = [(IN, OUT)]
    if setup.behind:
        ends = [(f"{IN}{i}", f"{OUT}{i}") for i in range(len(names) // 2)]
    chain = [f"bess.connect_modules({source!r}, {sink!r}, 0)" for source, sink in ends]
    return [
        f"bess.add_worker(0, {setup.cores[0]})",
        *(
            _port(name, i, port)
            for i, (name, port) in enumerate(zip(names, setup.ports, strict=True))
        ),
        *(
            f"bess.create_module({kind!r}, {module!r}, {{'port': {name!r}, 'qid': 0}})"
            for (source, sink), come, go in zip(ends, names[::2], names[1::2], strict=True)
            for kind, module, name in (("QueueInc", source, come), ("QueueOut", sink, go))
        ),
        *(chain if setup.behind else Script(setup.functions, alone).lines),
        "bess.resume_all()",
    ]


def _port(name: str, index: int, port: PortAt) -> str:
    if port.kind == "af_packet":
        vdev = f"net_af_packet{index},iface={port.address}"
    else:
        vdev = f"net_vhost{index},iface={port.address},queues=1"
    config = {"vdev": vdev, "num_inc_q": 1, "num_out_q": 1}
    return f"bess.create_port('PMDPort', {name!r}, {config!r})"


class _Running(RunningProcess):
    def __init__(self, tree: Tree, setup: Setup, words: list[str], alone: bool) -> None:
        self._tree = tree
        self._setup = setup
        self._script = setup.folder / "chain.py"
        self._script.write_text(_CONNECT + "\n".join(words) + "\n")
        sockets = [port.address for port in setup.ports if port.kind != "af_packet"]
        super().__init__(self._start(), sockets)
        self.commands = (self._process.command, *(("#", word) for word in words))
        self.notes = (ALONE,) if alone else ()
        self._printer: Process | None = None  # who prints its counters, and how many lines it has
        self._lines = 0
        self._polls = Polls()

    def _start(self) -> Process:
        process = Process(command(self._tree.bessd, self._setup), folder=self._setup.folder)
        prefer(process.pid)
        return process

    def ready(self, deadline_s: float) -> None:
        """It answers, and then its script is run; one that dies before that is started again."""
        for deaths in range(STARTS):
            try:
                self._configure(deadline_s)
            except ConvoyError:
                if self.alive() or deaths == STARTS - 1:
                    raise
                self.stop()
                self._process = self._start()
                continue
            if deaths:
                self.notes = (*self.notes, f"bessd died {deaths} times as it was started")
            return

    def _configure(self, deadline_s: float) -> None:
        control = self._setup.folder / "bessd.ctl"
        wait_for(lambda: control.exists() or not self.alive(), deadline_s, "bessd: answering")
        if not self.alive():
            raise self.died()
        output([self._tree.python, self._script, self._tree.root, _address(self._setup)])
        if not self.alive():
            raise self.died()

    def poll_threads(self) -> tuple[int, ...]:
        # Its worker has no name of its own; the others wait.
        before = thread_times(self.processes())
        time.sleep(LOOK_S)
        return pollers(before, thread_times(self.processes()))

    def counters(self) -> dict[str, Any] | None:
        if self._printer is None:
            program, address = _CONNECT + _ASK, _address(self._setup)
            self._printer = Process(
                [self._tree.python, "-c", program, self._tree.root, address], takes_input=True
            )
        self._printer.say("")
        line = self._printer.stdout.line(self._lines, DEADLINE_S)
        if line is None:
            raise ConvoyError(f"bessd: tells no counters: {self._printer.last_words()}")
        self._lines += 1
        return dict(json.loads(line))

    def cost(self) -> Cost | None:
        classes = (self.counters() or {})["traffic_classes"]
        # Those of tasks, and those that only hold others and count again what these did.
        tasks = [stats for name, stats in classes.items() if name.startswith("!leaf")]
        count, cycles, packets = (
            sum(stats[key] for stats in tasks) for key in ("count", "cycles", "packets")
        )
        return self._polls.cost(count, cycles, packets)

    def stop(self) -> None:
        if self._printer is not None:
            self._printer.close()
            self._printer, self._lines = None, 0
        super().stop()


class Polls:
    """Takes off what empty polls cost: bessd counts them all alike.

    Such a call costs what calls cost while no packets come. How many were empty is known up to
    how full the others' batches were; they are taken for full ones.
    """

    BATCH = 32

    def __init__(self) -> None:
        self._seen = (0, 0, 0)
        self._idle: float | None = None  # cycles
        self._busy = 0

    def cost(self, count: int, cycles: int, packets: int) -> Cost | None:
        """Return the cost since the start; None as long as there was no time without packets."""
        seen, self._seen = self._seen, (count, cycles, packets)
        more, spent, came = count - seen[0], cycles - seen[1], packets - seen[2]
        if more > 0 and came == 0:
            self._idle = spent / more
        if self._idle is None:
            return None
        empty = max(0.0, more - came / self.BATCH)
        self._busy += max(0, round(spent - empty * self._idle)) if came else 0
        return Cost(self._busy, packets, "bessd's traffic classes, less empty polls")


class Bess(Device):
    """A bessd in its tree."""

    name = "bess"
    ability = Ability(
        functions=types_of(MEANINGS),
        port_kinds=frozenset({"vhost-user"}),
        switches=True,
        options={"firewall": ("by-protocol", "acl-alone")},
    )

    def presence(self) -> Presence:
        """Look for bessd, pybess and a Python for that."""
        result = tree()
        if isinstance(result, str):
            return Presence("", result)
        try:
            words = output([result.bessd, "-version"])
        except ConvoyError as error:
            return Presence("", f"{HOW}; {result.bessd} does not run: {error}")
        version = re.search(r"version (\S+)", words)
        return Presence(version[1] if version else "unknown")

    def _alone(self, setup: Setup) -> bool:
        return self.option(setup, "firewall") == "acl-alone"

    def check(self, setup: Setup) -> None:
        """Ask for the calls too: BESS cannot say everything."""
        lines(setup, self._alone(setup))

    def start(self, setup: Setup) -> Running:
        """Start it; ready() tells it the chain."""
        result = tree()
        if isinstance(result, str):
            raise ConvoyError(result)
        alone = self._alone(setup)
        return _Running(result, setup, lines(setup, alone), alone)
