# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who is attacked: a program with four vhost-user ports, and neighbours who must notice nothing.

Packets go from port left to right and back, and between victim and feeder; one thread moves all.
The test is the guest of each port: honest at left, right and feeder, hostile at victim.
"""

import os
import random
import shutil
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import pytest

from convoy.dut.base import PortAt, Running, Setup
from convoy.dut.devices import device
from convoy.host.node import Node
from convoy.host.open_vswitch import BRIDGE
from convoy.host.process import Process, wait_for
from convoy.host.programs import CHECKOUT, find, need
from cores import OWN_CORE
from port.plans import joined

from .front_end import DEADLINE_S, FrontEnd, Request, connect
from .guest import Guest

PORTS = ("left", "right", "victim", "feeder")
WAYS = [("left", "right"), ("right", "left"), ("victim", "feeder"), ("feeder", "victim")]
NEXT_HOP = "dst_mac=02:00:00:00:00:02 dst=192.0.2.2 src=192.0.2.1"
SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}
FINDINGS = ("AddressSanitizer", "runtime error", "LeakSanitizer")
WINDOW = 16  # packets under way: a poll iteration carries no more of them
LOADED_S = DEADLINE_S / 4  # for a thousand packets while there are always some for the victim, too


class Target(ABC):
    """A program under attack, and the honest guests beside."""

    def __init__(self, folder: Path) -> None:
        """Start it. folder: for its sockets and files."""
        self.sockets = {port: folder / port for port in PORTS}
        self._random = random.Random(1)
        self._guests: list[Guest] = []
        self._hostile: list[FrontEnd] = []
        self._feeder: Guest | None = None
        self.start(folder)
        try:
            self._left, self._right = self.honest("left"), self.honest("right")
            self._left.mark()
            self._right.mark()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def start(self, folder: Path) -> None:
        """Start the program; its sockets are there when this returns."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the program."""

    @property
    @abstractmethod
    def process(self) -> Process:
        """The program."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Its process id."""

    def attach(self, port: str = "victim") -> tuple[FrontEnd, int]:
        """Return a new connection as a port's guest, and the features that are offered to it."""
        front_end, offered = connect(self.sockets[port])
        self._hostile.append(front_end)
        return front_end, offered

    def guest(
        self, size: int = 256, packed: bool = False, wanted: Sequence[int] = (), **more: object
    ) -> Guest:
        """Return a guest of the victim's port that has done nothing yet; skip what it cannot be."""
        front_end, offered = self.attach()
        guest = Guest(front_end, offered, size=size, packed=packed, wanted=wanted, **more)  # type: ignore[arg-type]
        self._guests.append(guest)
        return guest

    def honest(self, port: str) -> Guest:
        """Return a guest that works."""
        front_end, offered = self.attach(port)
        self._hostile.remove(front_end)
        guest = Guest(front_end, offered)
        self._guests.append(guest)
        return guest.start()

    def feed(self, count: int) -> None:
        """Send so many packets towards the victim, and wait until the program has them all."""
        left = count

        def fed() -> bool:
            nonlocal left
            left -= self.offer(left)
            return left == 0 and self.feeder.idle()

        wait_for(fed, DEADLINE_S, "packets to the victim to be taken")

    def offer(self, count: int) -> int:
        """Send up to so many packets towards the victim, if there is room; return how many."""
        self.feeder.received()
        return self.feeder.send([bytes(60)] * min(count, 64))

    def renew_feeder(self) -> None:
        """Let the guest whose packets go to the victim go, and another one come."""
        feeder, self._feeder = self.feeder, None
        self._guests.remove(feeder)
        feeder.close()
        self.feed(1)

    @property
    def feeder(self) -> Guest:
        """The guest whose packets go to the victim."""
        if self._feeder is None:
            self._feeder = self.honest("feeder")
        return self._feeder

    def assert_well(self, count: int = 128, under_load: bool = False) -> None:
        """Fail unless it runs, answers, and carries its neighbours' packets byte by byte.

        under_load: while there are always packets for the victim, too.
        """
        self.assert_sound()
        for near, far in ((self._left, self._right), (self._right, self._left)):
            self._assert_carries(near, far, count, under_load)
            assert near.is_marked(), "somebody wrote into a neighbour's memory"
        self.assert_sound()

    def _assert_carries(self, near: Guest, far: Guest, count: int, under_load: bool) -> None:
        far.received()
        sent = [self._packet() for _ in range(count)]
        came: list[bytes] = []
        given = 0
        end = time.monotonic() + (LOADED_S if under_load else DEADLINE_S)
        while len(came) < count:
            assert self.process.running(), self.output()
            assert time.monotonic() < end, f"{len(came)} of {count} packets of the neighbours came"
            if under_load:
                self.offer(64)
            # As many under way as the other has buffers for: more might be lost by right.
            given += near.send(sent[given : len(came) + WINDOW])
            came.extend(far.received())
            os.sched_yield()
        assert came == sent

    def _packet(self) -> bytes:
        """Return an IPv4 packet of any size and content: what one flow has stays in order."""
        size = self._random.choice((60, 61, 128, 590, 1514))
        head = bytes.fromhex("020000000002 020000000001 0800 4500")
        ip = (size - 14).to_bytes(2) + bytes.fromhex("00000000 40fd 0000 0a000001 0a000002")
        return head + ip + self._random.randbytes(size - 34)

    def until_it_carries(self) -> None:
        """Wait until packets come through: a program takes a moment to begin."""

        def carries() -> bool:
            packet = self._packet()
            self._left.send([packet])
            self._right.send([packet])
            there = [self._left.received(), self._right.received()]
            return all(there)

        wait_for(carries, DEADLINE_S, "the first packet")
        for near, far in ((self._left, self._right), (self._right, self._left)):
            last = self._packet()
            near.send([last])
            wait_for(lambda far=far, last=last: last in far.received(), DEADLINE_S, "the last one")

    def assert_sound(self) -> None:
        """Fail unless it runs and no sanitizer found anything."""
        assert self.process.running(), self.output()
        words = self.process.stderr.text()
        assert not any(finding in words for finding in FINDINGS), self.output()

    def output(self) -> str:
        """Return the end of what it wrote."""
        if not self.process.running():
            self.process.stderr.wait_end(5)
        words = self.process.stderr.text()[-4000:]
        return f"{self.process.name}: exit code {self.process.exit_code}\n{words}"

    def open_files(self) -> int:
        """Return how many files it has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def calm(self) -> None:
        """Take the victim's guests away."""
        for front_end in self._hostile:
            front_end.close()
        self._hostile.clear()
        for guest in self._guests:
            if guest not in (self._left, self._right, self._feeder):
                guest.close()
        self._guests = [g for g in (self._left, self._right, self._feeder) if g is not None]

    def close(self) -> None:
        """End everything."""
        for guest in self._guests:
            guest.close()
        for front_end in self._hostile:
            front_end.close()
        self.stop()


class Convoyd(Target):
    """convoyd, as it is built in a folder."""

    build = "build"

    def start(self, folder: Path) -> None:
        """See Target."""
        program = CHECKOUT / self.build / "daemon/convoyd"
        if not program.exists():
            pytest.skip(f"convoyd is not built: make {self.build}")
        # As large as rings can be: a hostile one costs most then.
        port = {"kind": "vhost-user", "max_ring_size": 32768}
        ports = {name: port | {"path": str(self.sockets[name])} for name in PORTS}
        environment = SANITIZERS | {
            "XDG_RUNTIME_DIR": str(folder),
            "RUNTIME_DIRECTORY": str(folder),
        }
        self._node = Node(joined(ports, WAYS, OWN_CORE), program, environment=environment)
        self._node.__enter__()

    @property
    def process(self) -> Process:
        """See Target."""
        return self._node.process

    @property
    def pid(self) -> int:
        """See Target."""
        return self._node.process.pid

    def assert_sound(self) -> None:
        """Ask its telemetry too."""
        super().assert_sound()
        accounting = self._node.counts()["accounting"]
        assert accounting["received"] >= accounting["sent"]

    def stop(self) -> None:
        """See Target."""
        self._node.close()


class SanitizedConvoyd(Convoyd):
    """convoyd with AddressSanitizer and UndefinedBehaviorSanitizer."""

    build = "build-asan"


class Testpmd(Target):
    """dpdk-testpmd, with libconvoy_vhost.so under it."""

    def start(self, folder: Path) -> None:
        """See Target."""
        if shutil.which("dpdk-testpmd") is None:
            pytest.skip("dpdk-testpmd is not installed: make setup")
        if find("libconvoy_vhost.so") is None:
            pytest.skip("libconvoy_vhost.so is not built: make build")
        command = ["dpdk-testpmd", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry"]
        command += ["--file-prefix", folder.name, "--lcores", f"0@{OWN_CORE},1@{OWN_CORE}"]
        command += ["--main-lcore", "1"]
        for i, socket_path in enumerate(self.sockets.values()):
            command += ["--vdev", f"net_vhost{i},iface={socket_path}"]
        command += ["--", "--forward-mode=io", "--auto-start", "--nb-cores=1"]
        command += ["--total-num-mbufs=16384", "--stats-period=3600"]
        command += ["--no-lsc-interrupt", "--no-mlockall", "--disable-link-check"]
        environment = {
            "LD_PRELOAD": str(need("libconvoy_vhost.so")),
            "CONVOY_VHOST": NEXT_HOP,
            "XDG_RUNTIME_DIR": str(folder),
            "RUNTIME_DIRECTORY": str(folder),
        }
        self._process = Process(command, environment)
        last = self.sockets["feeder"]
        wait_for(lambda: last.exists() or not self._process.running(), DEADLINE_S, "its sockets")

    @property
    def process(self) -> Process:
        """See Target."""
        return self._process

    @property
    def pid(self) -> int:
        """See Target."""
        return self._process.pid

    def stop(self) -> None:
        """See Target."""
        self._process.close()


class OpenVSwitch(Target):
    """Open vSwitch, with libconvoy_vhost.so under it. It connects to us."""

    def start(self, folder: Path) -> None:
        """See Target."""
        switch = device("ovs-dpdk")
        if switch.presence().missing:
            pytest.skip(switch.presence().missing)
        if find("libconvoy_vhost.so") is None:
            pytest.skip("libconvoy_vhost.so is not built: make build")
        self._listeners = {name: _listen(path) for name, path in self.sockets.items()}
        near, far = (PortAt("vhost-user", str(self.sockets[name])) for name in ("left", "right"))
        (folder / "switch").mkdir()
        options = {"convoys": "vhost"}
        setup = Setup((), near, far, (OWN_CORE,), folder / "switch", back=(), options=options)
        self._switch: Running = switch.start(setup)
        self._switch.__enter__()
        self._add_ports()

    def _add_ports(self) -> None:
        running = self._switch
        words: list[str] = []
        for number, name in ((3, "victim"), (4, "feeder")):
            words += ["--", "add-port", BRIDGE, name]
            words += ["--", "set", "Interface", name, "type=dpdkvhostuserclient"]
            words += [f"options:vhost-server-path={self.sockets[name]}", f"ofport_request={number}"]
        running.switch.vsctl(*words[1:])  # type: ignore[attr-defined]
        bridge = running.switch.bridge  # type: ignore[attr-defined]
        for near, far in ((3, 4), (4, 3)):
            running.switch.ask_bridge(  # type: ignore[attr-defined]
                "ovs-ofctl", "-OOpenFlow14", "add-flow", bridge,
                f"in_port={near},actions=output:{far}",
            )  # fmt: skip

    def attach(self, port: str = "victim") -> tuple[FrontEnd, int]:
        """Let it connect to us."""
        while True:
            connection, _ = self._listeners[port].accept()
            front_end = FrontEnd(connection)
            try:
                offered = front_end.ask_number(Request.GET_FEATURES)
            except ConnectionError:
                front_end.close()
                continue
            self._hostile.append(front_end)
            return front_end, offered

    @property
    def process(self) -> Process:
        """See Target."""
        process: Process = self._switch.switch.daemon  # type: ignore[attr-defined]
        return process

    @property
    def pid(self) -> int:
        """See Target."""
        return self._switch.watched()[0]

    def assert_sound(self) -> None:
        """Ask over its control socket too."""
        super().assert_sound()
        assert self._switch.alive()
        self._switch.counters()

    def stop(self) -> None:
        """See Target."""
        self._switch.close()
        for listener in self._listeners.values():
            listener.close()


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(DEADLINE_S)
    return listener


TARGETS: dict[str, type[Target]] = {
    "convoyd": Convoyd,
    "convoyd-asan": SanitizedConvoyd,
    "testpmd": Testpmd,
    "ovs": OpenVSwitch,
}

# Ours alone; and those that accept a connection at once: Open vSwitch is back after a second.
OURS = ("convoyd", "convoyd-asan")
AT_ONCE = (*OURS, "testpmd")
# Where speed does not matter, the sanitized node finds all that the other one would.
SANITIZED = "convoyd-asan"
