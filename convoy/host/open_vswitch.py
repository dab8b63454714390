# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An Open vSwitch with DPDK of our own: its database, run directory and sockets in a folder.

A switch that serves this machine is not touched. Its poll thread, and all its other threads, run on
the cores that it is given.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convoy.errors import ConvoyError
from convoy.host.command import output
from convoy.host.folders import dpdk_folder
from convoy.host.process import Process, ProcessError, wait_for
from convoy.host.scope import Scope

# Debian puts it beside the one without DPDK; elsewhere it is the one there is.
PROGRAMS = ("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk", "ovs-vswitchd")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
HOW = "not installed: Open vSwitch with DPDK (Debian: apt-get install openvswitch-switch-dpdk)"
MEMORY_MB = 1024
DEADLINE_S = 60.0
BRIDGE = "br0"
SLEEP_MAX_US = 50
BEFORE_RULES = {"meter": "add-meter", "group_id": "add-group"}  # commands, by how lines begin
# emc-insert-inv-prob: one in so many packets that missed the EMC makes an entry; 0 turns it off.
CACHES = {
    "emc": ("100", "false"),
    "emc+smc": ("100", "true"),
    "smc": ("0", "true"),
    "megaflow": ("0", "false"),
}


@dataclass(frozen=True)
class SwitchPort:
    """A port of the bridge, as ovs-vsctl's words for its Interface have it."""

    name: str
    number: int  # OpenFlow's
    words: tuple[str, ...]  # type=…, options:…


def vhost_user(name: str, number: int, path: str, mtu: int | None = None) -> SwitchPort:
    """Return a port that connects to the socket of a virtio-user port in mode server."""
    words = ("type=dpdkvhostuserclient", f"options:vhost-server-path={path}")
    return SwitchPort(name, number, words if mtu is None else (*words, f"mtu_request={mtu}"))


@dataclass(frozen=True)
class SwitchConfig:
    """How it runs."""

    cores: Sequence[int]
    hugepages: bool = False
    caches: str = "emc"  # of CACHES
    sleeps: bool = False  # its poll loops sleep where they find little to do
    cards: bool = False  # it has network cards
    tags: int | None = None  # VLAN tags that rules see behind; None: as many as it does itself

    def options(self, prefix: str) -> dict[str, str]:
        """Return other_config; prefix: of DPDK's files."""
        mask = f"0x{sum(1 << core for core in self.cores):x}"
        # It takes --in-memory itself, unless it is told the contrary: which --no-huge is.
        memory = ["--in-memory"] if self.hugepages else ["--no-huge", "--legacy-mem"]
        cards = [] if self.cards else ["--no-pci"]
        eal = [*memory, "-m", str(MEMORY_MB), *cards, "--no-telemetry", "--file-prefix", prefix]
        emc, smc = CACHES[self.caches]
        words = {
            "dpdk-init": "true",
            "dpdk-extra": " ".join(eal),
            "dpdk-lcore-mask": f"0x{1 << self.cores[0]:x}",
            "pmd-cpu-mask": mask,
            "emc-insert-inv-prob": emc,
            "smc-enable": smc,
            # Buffers by need (24,000 a port) and not 262,144 for all: those take seconds to make,
            # and more memory than there is, where pages are small.
            "per-port-memory": "true",
            "n-handler-threads": "1",
            "n-revalidator-threads": "1",
        }
        if self.sleeps:  # where its poll loops find little to do, and at most that long
            words["pmd-maxsleep"] = str(SLEEP_MAX_US)
        if self.tags is not None:
            words["vlan-limit"] = str(self.tags)
        return words


def program() -> str | None:
    """Return the path of an ovs-vswitchd, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def presence() -> tuple[str, str]:
    """Return its version, or the empty string and what is missing."""
    vswitchd = program()
    if vswitchd is None or not SCHEMA.exists() or shutil.which("ovsdb-server") is None:
        return "", HOW
    try:
        words = output([vswitchd, "--version"])
    except ConvoyError as error:
        return "", f"not installed: {error}"
    dpdk = re.search(r"^DPDK (.*)$", words, re.MULTILINE)
    if dpdk is None:
        return "", f"{HOW}; {vswitchd} is one without"
    version = re.search(r"\(Open vSwitch\) (\S+)", words)
    return f"{version[1] if version else 'unknown'} with DPDK {dpdk[1]}", ""


class Switch(Scope):
    """ovsdb-server and ovs-vswitchd with a bridge. Use it with `with`; begin with start()."""

    def __init__(self, folder: Path) -> None:
        """Prepare; folder: its private place, which exists."""
        self._folder = folder
        self.processes: list[Process] = []
        self.commands: tuple[tuple[str, ...], ...] = ()

    def start(
        self,
        config: SwitchConfig,
        before: Sequence[str] = (),
        apart: Sequence[str] = (),
    ) -> None:
        """Start it, without a bridge. Raises ConvoyError.

        before: words before its command; apart: those before them, of a network namespace.
        """
        vswitchd = program()
        if vswitchd is None:
            raise ConvoyError(HOW)
        database = self._folder / "conf.db"
        self._do("ovsdb-tool", "create", str(database), str(SCHEMA))
        self._spawn(
            "ovsdb-server", str(database), f"--remote=punix:{self._at('db.sock')}",
            f"--unixctl={self._at('db.ctl')}", "-vconsole:warn",
        )  # fmt: skip
        self._until("db.sock")
        options = config.options(f"convoy-ovs-{os.getpid()}").items()
        words = [f"other_config:{key}={_quoted(value)}" for key, value in options]
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *words)
        cores = ",".join(map(str, config.cores))
        # It makes interfaces (br0, ovs-netdev), which are nobody else's business.
        if not apart and os.geteuid() == 0:
            apart = ("unshare", "--net")
        self._spawn(
            *apart, "taskset", "-c", cores, *before, vswitchd, f"unix:{self._at('db.sock')}",
            f"--unixctl={self._at('switch.ctl')}", "-vconsole:warn",
        )  # fmt: skip
        self.daemon.name = "ovs-vswitchd"
        self._until("switch.ctl")

    def add_bridge(self, ports: Sequence[SwitchPort]) -> None:
        """Make the bridge with its ports; nothing passes yet. Raises ConvoyError."""
        added = [
            word
            for port in ports
            for word in (
                "--", "add-port", BRIDGE, port.name,
                "--", "set", "Interface", port.name, *port.words, f"ofport_request={port.number}",
            )
        ]  # fmt: skip
        self.vsctl(
            "add-br", BRIDGE,
            "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure", *added,
        )  # fmt: skip

    def add_rules(self, rules: Sequence[str]) -> None:
        """Give the bridge its rules, all at once, after groups and meters. Raises ConvoyError."""
        for rule in rules:
            if command := BEFORE_RULES.get(rule.partition("=")[0]):
                self.ask_bridge("ovs-ofctl", "-OOpenFlow14", command, self.bridge, rule)
        rules = [rule for rule in rules if rule.partition("=")[0] not in BEFORE_RULES]
        file = self._folder / "flows.txt"
        file.write_text("\n".join(rules) + "\n")
        # Else a first fragment has no ports for a rule, and passes where its packet is denied.
        self.ask_bridge("ovs-ofctl", "set-frags", self.bridge, "nx-match")
        self.ask_bridge(
            "ovs-ofctl", "--bundle", "-OOpenFlow14", "add-flows", self.bridge, str(file)
        )

    @property
    def daemon(self) -> Process:
        """ovs-vswitchd. Once it is started."""
        return self.processes[-1]

    @property
    def bridge(self) -> str:
        """Where ovs-ofctl finds the bridge."""
        return f"unix:{self._at(f'{BRIDGE}.mgmt')}"

    def alive(self) -> bool:
        """Return whether both run."""
        return all(process.running() for process in self.processes)

    def dead(self) -> Process | None:
        """Return what has ended, or None."""
        return next((process for process in self.processes if not process.running()), None)

    def vsctl(self, *words: str) -> None:
        """Change its database, and wait until that is in effect. Raises ConvoyError."""
        database = f"--db=unix:{self._at('db.sock')}"
        self._do("ovs-vsctl", database, f"--timeout={DEADLINE_S:g}", *words)

    def links(self, ports: Sequence[str]) -> list[str]:
        """Return the state of these ports' links, "up" or "down". Raises ConvoyError."""
        words = ("--bare", "--columns=link_state", "list", "Interface", *ports)
        database = f"--db=unix:{self._at('db.sock')}"
        text = output(["ovs-vsctl", database, *words], 2 * DEADLINE_S, self._environment())
        return text.split()

    def polled(self) -> set[str]:
        """Return the ports whose peers are there and that a poll thread has taken up.

        That is later than their links are up, and before it what is sent there is lost uncounted.
        Raises ConvoyError.
        """
        return polled_ports(self.appctl("dpif-netdev/pmd-rxq-show"))

    def appctl(self, *words: str) -> str:
        """Ask ovs-vswitchd. Raises ConvoyError."""
        command = ["ovs-appctl", "-t", self._at("switch.ctl"), "--timeout=10", *words]
        return output(command, 2 * DEADLINE_S, self._environment())

    def ofctl(self, *words: str) -> str:
        """Ask the bridge: ovs-ofctl with its address after the first word. Raises ConvoyError."""
        command = ("ovs-ofctl", "--timeout=10", "-OOpenFlow14", words[0], self.bridge, *words[1:])
        return output(command, 2 * DEADLINE_S, self._environment())

    def ask_bridge(self, *command: str) -> None:
        """Run a command. A bridge that was just made hangs up on a caller now and then."""

        def done() -> bool:
            try:
                output(command, 2 * DEADLINE_S, self._environment())
            except ConvoyError as error:
                if "Broken pipe" not in str(error) or not self.alive():
                    raise
                return False
            return True

        self.commands = (*self.commands, command)
        wait_for(done, DEADLINE_S, "the bridge to answer")

    def _at(self, name: str) -> str:
        return str(self._folder / name)

    def _environment(self) -> Mapping[str, str]:
        folders = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        return {name: str(self._folder) for name in folders} | dpdk_folder(self._folder)

    def _spawn(self, *command: str) -> None:
        process = Process(command, self._environment(), self._folder)
        self.processes.append(process)
        self.commands = (*self.commands, process.command)

    def _until(self, socket: str) -> None:
        process, path = self.processes[-1], self._folder / socket
        wait_for(lambda: path.exists() or not process.running(), DEADLINE_S, f"{socket} of OVS")
        if not process.running():
            raise ProcessError(f"{process.name}: {process.last_words()}")

    def _do(self, *command: str) -> None:
        self.commands = (*self.commands, command)
        output(command, 2 * DEADLINE_S, self._environment())

    def _leave(self) -> None:
        for process in reversed(self.processes):
            process.close()


def polled_ports(text: str) -> set[str]:
    """Return the ports of which pmd-rxq-show prints a queue that is enabled."""
    return set(re.findall(r"port: (\S+)\s+queue-id:\s+\d+ \(enabled\)", text))


def port_counts(text: str) -> dict[str, dict[str, int]]:
    """Return what dump-ports prints: by port "rx pkts", "tx drop" ...; the bridge's own left out.

    Ports are called as OpenFlow 1.4 prints them: by name, in quotes or not, or number.
    """
    result: dict[str, dict[str, int]] = {}
    name: str | None = None
    for line in text.splitlines():
        port = re.match(r"\s*port\s+(\S+):", line)
        if port:
            name = None if port[1] in ("LOCAL", f'"{BRIDGE}"', BRIDGE) else port[1].strip('"')
        way = re.search(r"\b(rx|tx) pkts=", line)
        if name is not None and way:
            counts = result.setdefault(name, {})
            for what, number in re.findall(r"(pkts|bytes|drop)=(\d+)", line):
                counts[f"{way[1]} {what}"] = int(number)
    return result


def _quoted(value: str) -> str:
    return f'"{value}"'
