# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A part of a chain in a virtual machine: convoyd on the guest's virtio network devices."""

import shutil
from collections.abc import Callable
from typing import Any

from convoy.chain.machine import guest_device
from convoy.chain.split import Part, Split
from convoy.client import Client, ClientError
from convoy.errors import ConvoyError
from convoy.host import qemu
from convoy.host.folders import make_private
from convoy.host.guest import FAILED, HUGEPAGE_MB, READY, kernel, node_guest
from convoy.host.guest import missing as guest_missing
from convoy.host.node import final_counts
from convoy.host.process import Process
from convoy.hybrid.running import Counts, Running

# Beside the node's hugepages: the kernel, its file system, tables. What is not used costs nothing.
OTHER_MB = 1536
STOP_DEADLINE_S = 60.0
LINES_KEPT = 64  # of its console, on which a guest that is broken into may say anything
_OF_OBJECTS = ("ports", "functions", "flows")


def missing() -> str:
    """Return what virtual machines need and this machine has not, or the empty string."""
    if not qemu.installed():
        return qemu.HOW
    if shutil.which("socat") is None:
        return "not installed: socat (Debian: apt-get install socat)"
    lacks = guest_missing()
    return f"not installed: {lacks}" if lacks else ""


def of_guest(counts: Counts, core: int) -> Counts:
    """Return a guest's counts, its workers on this machine's core. Raises ConvoyError.

    A guest may be broken into: what is not shaped as counts harms nobody but its own part.
    """
    workers, accounting = counts.get("workers"), counts.get("accounting")
    shaped = (
        isinstance(workers, list)
        and all(isinstance(worker, dict) for worker in workers)
        and isinstance(accounting, dict)
        and all(isinstance(number, int) for number in accounting.values())
        and all(_is_named(counts.get(key)) for key in _OF_OBJECTS)
        and all(isinstance(port.get("device"), dict) for port in counts["ports"].values())
        and all(isinstance(port.get("rx_packets"), int) for port in counts["ports"].values())
    )
    if not shaped:
        raise ConvoyError("what it answers are no counts")
    return {**counts, "workers": [{**worker, "core": core} for worker in counts["workers"]]}


def _is_named(value: Any) -> bool:
    """Return whether a value has objects by name, with drops by name where they have any."""
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        return False
    drops = [one.get("drops", {}) for one in value.values()]
    return all(
        isinstance(of_one, dict) and all(isinstance(n, int) for n in of_one.values())
        for of_one in drops
    )


class GuestPart(Running):
    """QEMU. It boots while others go on, and is asked for nothing before it says that it runs."""

    def __init__(self, part: Part, split: Split, on_line: Callable[[str], None]) -> None:
        """Start it. Raises InputError or ConvoyError."""
        super().__init__(part)
        assert part.plan is not None
        image = kernel()
        assert image is not None, "ask missing() first"
        self._on_line = on_line
        self._client: Client | None = None
        self._ran = self._failed = self._stops = False
        self._words = ""
        folder = make_private(split.folder / part.name)
        self._read = folder / "read.sock"
        self._read.unlink(missing_ok=True)  # of one that was killed
        addresses = [guest_device(number) for number in range(len(part.devices))]
        files = folder / "initramfs"
        files.write_bytes(node_guest(image, part.plan.data, addresses).archive())
        devices = [
            qemu.NetDevice(
                "vhost-user-server" if device.pair.in_switch else "vhost-user",
                str(split.socket(device.pair)),
                device.mac,
            )
            for device in part.devices
        ]
        accelerator = qemu.accelerator()
        if accelerator != "kvm":
            on_line("emulated, some tens of times slower: KVM does not work here")
        huge_mb = part.plan.data["eal"]["memory_mb"]
        command = qemu.command(
            accelerator,
            part.cores,
            huge_mb + OTHER_MB,
            image,
            files,
            devices,
            huge_mb // HUGEPAGE_MB,
            qemu.serial_port(self._read, accelerator),
        )
        self._process = Process(
            command,
            takes_input=True,
            on_line=on_line,
            on_output=self._hear,
            lines_kept=LINES_KEPT,
        )
        self._process.name = qemu.PROGRAM

    def _hear(self, line: str) -> None:
        """Take a line of its console."""
        if FAILED in line:
            self._words = line.partition(FAILED)[2].strip(": \r")
            self._failed = True
        elif READY in line:
            self._ran = True
        elif self._ran and not self._stops:
            self._on_line(line.rstrip("\r"))

    @property
    def pid(self) -> int:
        """See Running."""
        return self._process.pid

    def starts(self) -> bool:
        """See Running."""
        return not self._ran

    def alive(self) -> bool:
        """See Running."""
        return self._process.running() and not self._failed

    def counts(self) -> Counts:
        """See Running."""
        if not self._ran:
            raise ConvoyError("it has not booted yet")
        try:
            if self._client is None:
                self._client = Client(self._read)
            return of_guest(self._client.counts(), self.part.cores[0])
        except ClientError:
            self._forget_client()
            raise

    def stop(self) -> Counts:
        """See Running."""
        if self.starts() or not self.alive():
            raise ConvoyError(f"ended without its counts: {self.last_words()}")
        self._stops = True
        self._process.say("stop")
        self._process.wait(STOP_DEADLINE_S)
        counts = final_counts(self._process.stdout.text())
        if counts is None:
            raise ConvoyError(f"ended without its counts: {self.last_words()}")
        return of_guest(counts, self.part.cores[0])

    def last_words(self) -> str:
        """See Running."""
        code = self._process.exit_code
        if code is not None and code < 0:
            return f"signal {-code}"
        return self._words or self._process.last_words()

    def _forget_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _leave(self) -> None:
        self._forget_client()
        self._process.close()
