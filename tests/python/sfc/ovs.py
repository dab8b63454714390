# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Open vSwitch's userspace datapath with ports of its own kind for tests: bytes in, bytes out."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from convoy.host.command import output
from convoy.host.process import Process, wait_for

DEADLINE_S = 30.0
PROGRAMS = ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


def present() -> bool:
    """Return whether Open vSwitch is installed."""
    return SCHEMA.exists() and all(map(shutil.which, PROGRAMS))


class Switch:
    """A bridge of ports p1, p2 ..., with OpenFlow rules; it touches nothing outside its folder."""

    def __init__(self, folder: Path, ports: int, rules: Sequence[str]) -> None:
        self._folder = folder
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        self._environment = {name: str(folder) for name in names}
        self._processes: list[Process] = []
        self._ports = ports
        self._rules = rules

    def __enter__(self) -> "Switch":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def _start(self) -> None:
        folder = self._folder
        self._do("ovsdb-tool", "create", f"{folder}/conf.db", str(SCHEMA))
        self._spawn(
            "ovsdb-server", f"{folder}/conf.db", f"--remote=punix:{folder}/db.sock",
            f"--unixctl={folder}/db.ctl", "-vconsole:warn",
        )  # fmt: skip
        self._until("db.sock")
        self._vsctl("--no-wait", "init")
        self._spawn(
            "ovs-vswitchd", f"unix:{folder}/db.sock", "--enable-dummy=override",
            "--disable-system", f"--unixctl={folder}/switch.ctl", "-vconsole:off",
        )  # fmt: skip
        self._until("switch.ctl")
        words = ["add-br", "br", "--", "set", "bridge", "br", "datapath_type=dummy"]
        words += ["fail-mode=secure", "protocols=OpenFlow10,OpenFlow15"]
        for i in range(1, self._ports + 1):
            words += ["--", "add-port", "br", f"p{i}", "--", "set", "Interface", f"p{i}"]
            words += ["type=dummy", f"ofport_request={i}", f"options:tx_pcap={self.sent(i)}"]
        self._vsctl(*words)
        (folder / "rules").write_text("\n".join(self._rules) + "\n")
        self._do("ovs-ofctl", "-OOpenFlow15", "add-flows", f"unix:{folder}/br.mgmt",
                 f"{folder}/rules")  # fmt: skip

    def receive(self, port: int, frame: bytes) -> None:
        """Let a port receive a frame."""
        control = f"{self._folder}/switch.ctl"
        self._do("ovs-appctl", "-t", control, "netdev-dummy/receive", f"p{port}", frame.hex())

    def sent(self, port: int) -> Path:
        """Return the capture of what a port sent. It is whole when the switch has stopped."""
        return self._folder / f"p{port}.pcap"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()

    def _spawn(self, *command: str) -> None:
        self._processes.append(Process(list(command), self._environment, self._folder))

    def _until(self, socket: str) -> None:
        process, path = self._processes[-1], self._folder / socket
        wait_for(lambda: path.exists() or not process.running(), DEADLINE_S, f"{socket} of OVS")
        assert process.running(), process.last_words()

    def _vsctl(self, *words: str) -> None:
        self._do("ovs-vsctl", f"--db=unix:{self._folder}/db.sock", "--timeout=30", *words)

    def _do(self, *command: str) -> str:
        return output(command, DEADLINE_S, self._environment)
