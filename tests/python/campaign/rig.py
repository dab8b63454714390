# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What faults meet: a node, its peer, a tester, a guest, and bystanders who must notice nothing.

bystander  left <-> right           the node's neighbours: byte by byte, all the time
tester     near <-> far             convoy-gen, with trials
guest      victim <-> link ═ link   memif to the peer, a second node, which sends back
feeder     feed -> nat -> capture   a capture and a block log on a small file system
"""

import os
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from convoy.host.programs import CHECKOUT
from convoy.host.scope import Scope
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES
from hostile.front_end import connect
from hostile.guest import Guest

from .bystander import Bystander

DEADLINE_S = 30.0
SETTLE_S = 10.0
DISK_BYTES = 8 << 20
FRAME_BYTES = 1400
KEPT_PLANS = 16  # of `convoy history`
MACHINE_FAULTS = CHECKOUT / "build/tests/support/machine_faults.so"
RULE = "@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF\n"
NODE = f"""
ports:
  left: {{vhost-user: FOLDER/left}}
  right: {{vhost-user: FOLDER/right}}
  near: {{vhost-user: FOLDER/near}}
  far: {{vhost-user: FOLDER/far}}
  victim: {{vhost-user: FOLDER/victim}}
  feed: {{vhost-user: FOLDER/feed}}
  link: {{memif: FOLDER/link}}
  capture: {{pcap: {{write: FOLDER/disk/capture.pcap}}}}
functions:
  fw: {{firewall: {{default: allow, rules-file: FOLDER/rules}}}}
  nat: {{nat: {{outside: [capture], inside: [10.0.0.0/8], pool: [203.0.113.0/28],
              block-log: FOLDER/disk/nat.log}}}}
chains:
  bystander: {{from: left, to: right, path: [fw], both-ways: true}}
  tester: {{from: near, to: far, both-ways: true}}
  guest: {{from: victim, to: link, both-ways: true}}
  logged: {{from: feed, to: capture, path: [nat]}}
workers: {{cores: [{CORES[0]}], idle: sleep}}
memory: {{mb: 256}}
"""
PEER = f"""
ports: {{link: {{memif: FOLDER/link, role: client}}}}
chains: {{back: {{from: link, to: link}}}}
workers: {{cores: [{CORES[-1]}], idle: sleep}}
memory: {{mb: 64}}
"""
EASY = {"rate_pps": 2000, "duration_s": 0.05, "drain_s": 1, "tolerance": 1}
LONG = '{"rate_pps": 2000, "duration_s": 60, "tolerance": 1}'


class Rig(Scope):
    """All of it, in a folder. Use it with `with`."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Start it."""
        self.folder = folder
        self.disk = folder / "disk"
        self.seed = seed
        self._machine = folder / "machine"
        self.processes: dict[str, Process] = {}
        self._scopes: list[Scope] = []
        self.disk.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "campaign", self.disk], check=True
        )
        try:
            (folder / "rules").write_text(RULE)
            self.set_machine()
            self._plans = {"node": self._plan(NODE), "peer": self._plan(PEER)}
            self.bystander = Bystander(folder / "left", folder / "right", seed)
            self._scopes.append(self.bystander)
            self.start_node()
            self.start_peer()
            self.start_guest()
            self.start_tester()
            self.bystander.attach()
            self.feeder = self._feeder()
            self.echo(time.monotonic())
            self.trial()
            self.node.counts()  # over a connection that stays
            self._fill_history()
            self.files = self.open_files()
            self.buffers = self.node.counts()["buffers"]["in_use"]
            self.left = self.left_behind()
        except BaseException:
            self.close()
            raise

    def _plan(self, text: str) -> dict[str, Any]:
        machine = this_machine()
        return make_plan(
            loads(text.replace("FOLDER", str(self.folder)), machine, self.folder), machine
        ).data

    @property
    def plan(self) -> dict[str, Any]:
        """What the node runs."""
        return self._plans["node"]

    def start_node(self) -> None:
        """Start the node; it forwards when this returns."""
        self.node = self._node("node")

    def start_peer(self) -> None:
        """Start the peer."""
        self.peer = self._node("peer")

    def _node(self, name: str) -> Node:
        place = self.folder / f"{name}.run"
        place.mkdir(exist_ok=True)
        environment = {
            "RUNTIME_DIRECTORY": str(place), "LD_PRELOAD": str(MACHINE_FAULTS),
            "MACHINE_FAULTS": str(self._machine),
        }  # fmt: skip
        node = Node(self._plans[name], environment=environment)
        node.__enter__()
        self.processes[name] = node.process
        return node

    def start_guest(self) -> None:
        """Start the guest's process."""
        self.guest = self.start_program("campaign.guest", self.folder / "victim")
        self.processes["guest"] = self.guest

    def start_program(self, module: str, *words: str | Path) -> Process:
        """Start a module of the tests."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        return Process(
            [sys.executable, "-m", module, *words], {"PYTHONPATH": path}, takes_input=True
        )

    def start_tester(self) -> None:
        """Start the tester; its ports are there when this returns."""
        ports = [f"vhost-user:{self.folder / name}" for name in ("near", "far")]
        self.tester = ConvoyGen(ports, core=CORES[-1], attach_timeout_s=DEADLINE_S)
        self.processes["tester"] = self.tester._process
        self.tester.wait_ready()

    def _fill_history(self) -> None:
        """Let the node keep as many files of earlier plans as it ever does."""
        for rules in [*range(2, KEPT_PLANS + 2), 1]:
            (self.folder / "rules").write_text(RULE * rules)
            apply(self.node.running, self.plan)

    def _feeder(self) -> Guest:
        return Guest(*connect(self.folder / "feed", DEADLINE_S)).start()

    def renew_feeder(self) -> None:
        """Connect anew: the node is another one."""
        self.feeder.close()
        self.feeder = self._feeder()

    def feed(self, count: int, first: int) -> None:
        """Send packets of 64 subscribers from a number on; wait until the node has them."""
        frames = [udp(10 << 24 | first + i % 64) for i in range(count)]
        sent = 0

        def all_sent() -> bool:
            nonlocal sent
            sent += self.feeder.send(frames[sent:])
            return sent == count and self.feeder.idle()

        wait_for(all_sent, DEADLINE_S, "packets to the capture to be taken")

    def echo(self, since: float) -> float:
        """Wait until the guest's packets come back after a time; return when they did."""
        return self._reported("back", since)

    def connected(self, since: float) -> float:
        """Wait until the guest has connected after a time; return when it did."""
        return self._reported("connected", since)

    def _reported(self, what: str, since: float) -> float:
        def wanted(line: str) -> bool:
            return line.startswith(what) and float(line.rsplit(" ", 1)[1]) > since

        line = self.guest.wait_line(wanted, DEADLINE_S, f"its packets: {what}")
        return float(line.rsplit(" ", 1)[1])

    def trial(self) -> float:
        """Wait for a trial without loss; return how long that took."""
        begin = time.monotonic()

        def all_came() -> bool:
            total = self.tester.trial(EASY).total
            return total is not None and total.received_pkts == total.sent_pkts > 0

        wait_for(all_came, DEADLINE_S, "a trial without loss")
        return time.monotonic() - begin

    def set_machine(self, clock_s: float = 0.0, no_buffers: bool = False) -> None:
        """Choose the faults of the nodes' machine (tests/support/machine_faults.c).

        clock_s: how far their wall clock is ahead. no_buffers: no packet buffer is free.
        """
        faults = struct.pack("=qq", round(clock_s * 1e9), no_buffers)
        with self._machine.open("r+b" if self._machine.exists() else "wb") as file:
            file.write(faults)

    def mapped_bytes(self) -> int:
        """Return how much memory of its own address space the node has mapped."""
        pages = Path(f"/proc/{self.node.process.pid}/statm").read_text().split()[0]
        return int(pages) * resource.getpagesize()

    def open_files(self) -> int:
        """Return how many files the node has open."""
        return len(os.listdir(f"/proc/{self.node.process.pid}/fd"))  # noqa: PTH208 it is no file

    def lowest_free_file(self) -> int:
        """Return the number that the next file of the node would get."""
        used = {int(name) for name in os.listdir(f"/proc/{self.node.process.pid}/fd")}  # noqa: PTH208
        return next(n for n in range(len(used) + 1) if n not in used)

    def left_behind(self) -> list[str]:
        """Return what there is of processes and files; what varies in names is left out."""
        ours = _descendants(os.getpid())
        pids = {str(process.pid) for process in self.processes.values()}
        files = []
        for path in self.folder.rglob("*"):
            parts = path.relative_to(self.folder).parts
            files.append("/".join("PID" if _pid(part) in pids else part for part in parts))
        shared = [f"/dev/shm/{path.name}" for path in Path("/dev/shm").iterdir()]
        return sorted([*ours, *files, *shared])

    def settle(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for what must come true once a fault is over."""
        wait_for(condition, SETTLE_S, what)

    def _leave(self) -> None:
        try:
            for process in self.processes.values():
                process.signal(18)  # SIGCONT, should one be stopped
            for scope in self._scopes:
                scope.close()
            if hasattr(self, "feeder"):
                self.feeder.close()
            for process in self.processes.values():
                process.close()
        finally:
            subprocess.run(["umount", self.disk], check=True)
            shutil.rmtree(self.folder)


def udp(source: int) -> bytes:
    """Return a long UDP packet of an IPv4 address."""
    ends = source.to_bytes(4) + bytes([192, 0, 2, 1])
    ip = bytes.fromhex("4500") + (FRAME_BYTES - 14).to_bytes(2) + bytes.fromhex("000000004011")
    total = sum(int.from_bytes((ip + ends)[at : at + 2]) for at in range(0, 18, 2))
    total = (total & 0xFFFF) + (total >> 16)
    check = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    header = bytes.fromhex("10001000") + (FRAME_BYTES - 34).to_bytes(2) + bytes(2)
    frame = bytes.fromhex("02c017000005 020000000001 0800") + ip + check.to_bytes(2) + ends + header
    return frame.ljust(FRAME_BYTES, b"\0")


def _pid(name: str) -> str:
    return name.removeprefix("convoyd-")


def _descendants(pid: int) -> list[str]:
    """Return the names of a process's descendants."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
        except OSError:
            continue
        parents.setdefault(int(rest.split()[1]), []).append((int(entry.name), name))
    result, todo = [], [pid]
    while todo:
        for child, name in parents.get(todo.pop(), ()):
            result.append(f"process {name}")
            todo.append(child)
    return result
