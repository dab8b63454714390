# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Open vSwitch with DPDK: functions as OpenFlow rules, ports as vhost-user clients.

A database, a run directory and sockets of its own, in the setup's folder: a switch that serves this
machine is not touched. Its poll thread, and all its other threads, run on the device's cores.

Packets meet caches before they meet rules: EMC (exact, 8,192 flows of a poll thread), SMC
(signatures, off by default) and megaflows (masked, in the datapath classifier). The option
`caches` says which of the first two there are, and every result says so.

With the option `convoys=vhost` libconvoy_vhost.so is preloaded: what guests send reaches the switch
in convoys, convoys reach guests packet by packet. Rules then meet the convoys' own headers, so that
there are none but from port to port; costs are of the packets that the ports count, not of convoys.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convoy.dut import veth
from convoy.dut.base import Ability, Cost, Device, Flows, PortAt, Presence, Running, Setup
from convoy.dut.functions import types_of
from convoy.dut.openflow import LEFT, MEANINGS, flows, joined
from convoy.errors import ConvoyError, InputError
from convoy.host.command import output
from convoy.host.folders import dpdk_folder
from convoy.host.namespace import Namespace, shell
from convoy.host.priority import prefer
from convoy.host.process import Process, ProcessError, output_of, wait_for
from convoy.host.programs import need
from convoy.host.run_queue import threads_named

# Debian puts it beside the one without DPDK; elsewhere it is the one there is.
PROGRAMS = ("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk", "ovs-vswitchd")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
HOW = "not installed: Open vSwitch with DPDK (Debian: apt-get install openvswitch-switch-dpdk)"
MEMORY_MB = 1024
DEADLINE_S = 60.0
BRIDGE = "br0"
SLEEP_MAX_US = 50
SHOWN = 200  # rules
# Of a zone, by protocol and state.
TIMEOUTS = (
    *(f"udp_{state}" for state in ("first", "single", "multiple")),
    *(f"tcp_{state}" for state in (
        "syn_sent", "syn_recv", "established", "fin_wait", "close_wait", "last_ack", "time_wait",
        "close",
    )),
)  # fmt: skip
LIBRARY = "libconvoy_vhost.so"
# Of the convoys in the switch: nobody but our library looks at it.
NEXT_HOP = "dst_mac=02:00:00:00:00:02 dst=192.0.2.2 src=192.0.2.1"
# emc-insert-inv-prob: one in so many packets that missed the EMC makes an entry; 0 turns it off.
CACHES = {
    "emc": ("100", "false"),
    "emc+smc": ("100", "true"),
    "smc": ("0", "true"),
    "megaflow": ("0", "false"),
}
STATED = {
    "emc": "caches: EMC (8,192 flows, filled by 1 in 100 packets) and megaflows",
    "emc+smc": "caches: EMC (8,192 flows, filled by 1 in 100 packets), SMC and megaflows",
    "smc": "caches: SMC and megaflows, no EMC",
    "megaflow": "caches: megaflows alone, no EMC, no SMC",
}


def program() -> str | None:
    """Return the path of an ovs-vswitchd, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def options(setup: Setup, caches: str) -> dict[str, str]:
    """Return other_config: where its threads run, its memory, its caches."""
    mask = f"0x{sum(1 << core for core in setup.cores):x}"
    # It takes --in-memory itself, unless it is told the contrary: which --no-huge is.
    memory = ["--in-memory"] if setup.hugepages else ["--no-huge", "--legacy-mem"]
    prefix = f"convoy-ovs-{os.getpid()}"
    cards = [] if setup.left.kind == "dpdk" else ["--no-pci"]
    eal = [*memory, "-m", str(MEMORY_MB), *cards, "--no-telemetry", "--file-prefix", prefix]
    emc, smc = CACHES[caches]
    # Its poll loops sleep only where they find little to do, and at most that long.
    yielding = {"pmd-maxsleep": str(SLEEP_MAX_US)} if setup.oversubscribed else {}
    return yielding | {
        "dpdk-init": "true",
        "dpdk-extra": " ".join(eal),
        "dpdk-lcore-mask": f"0x{1 << setup.cores[0]:x}",
        "pmd-cpu-mask": mask,
        "emc-insert-inv-prob": emc,
        "smc-enable": smc,
        # Buffers by need (24,000 a port) and not 262,144 for all: those take seconds to make, and
        # more memory than there is, where pages are small.
        "per-port-memory": "true",
        "n-handler-threads": "1",
        "n-revalidator-threads": "1",
    }


def preloaded(convoys: str) -> tuple[str, ...]:
    """Return what goes before the switch's command. Raises InputError: not built."""
    if convoys == "no":
        return ()
    return ("env", f"LD_PRELOAD={need(LIBRARY)}", f"CONVOY_VHOST={NEXT_HOP}")


class _Running(Running):
    def __init__(self, setup: Setup, vswitchd: str, caches: str, before: tuple[str, ...]) -> None:
        """before: what is preloaded; nothing, or the words of a command that does it."""
        self._setup = setup
        self._folder = setup.folder
        self._processes: list[Process] = []
        self._before = before
        self._apart: Namespace | None = None
        self.notes = (STATED[caches],)
        if before:
            self.notes += (f"packets are aggregated in the switch: {LIBRARY}",)
        if setup.oversubscribed:
            self.notes += (f"poll loops sleep up to {SLEEP_MAX_US} us where there is little to do",)
        if setup.left.kind in veth.KINDS:
            self.notes += (veth.attached(setup),)
        # Before anything starts: it may be refused.
        self._rules = (
            joined(len(setup.ports)) if setup.behind else flows(setup.functions, setup.back)
        )
        try:
            self._start(vswitchd, caches)
        except BaseException:
            self.stop()
            raise

    def _start(self, vswitchd: str, caches: str) -> None:
        database = self._folder / "conf.db"
        self._do("ovsdb-tool", "create", str(database), str(SCHEMA))
        self._spawn(
            "ovsdb-server", str(database), f"--remote=punix:{self._at('db.sock')}",
            f"--unixctl={self._at('db.ctl')}", "-vconsole:warn",
        )  # fmt: skip
        self._until("db.sock")
        config = [f"other_config:{k}={_quoted(v)}" for k, v in options(self._setup, caches).items()]
        self._vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *config)
        cores = ",".join(map(str, self._setup.cores))
        # It makes interfaces (br0, ovs-netdev), which are nobody else's business.
        apart: tuple[str, ...] = ("unshare", "--net") if os.geteuid() == 0 else ()
        if self._setup.left.kind in veth.KINDS:
            self._apart = Namespace()
            shell("\n".join(veth.wiring([self._apart.pid], self._setup)))
            self._apart.run("for i in left right; do ip link set $i up promisc on; done")
            apart = self._apart.command()
        self._spawn(
            *apart, "taskset", "-c", cores, *self._before, vswitchd, f"unix:{self._at('db.sock')}",
            f"--unixctl={self._at('switch.ctl')}", "-vconsole:warn",
        )  # fmt: skip
        self._processes[-1].name = "ovs-vswitchd"
        self._until("switch.ctl")
        self._vsctl(
            "add-br", BRIDGE,
            "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure",
            *(word for number, port in enumerate(self._setup.ports, 1)
              for word in self._port(self._name(number), port, number)),
        )  # fmt: skip
        if self._setup.flows is not None:
            self._remember(self._setup.flows)
        rules = "\n".join(self._rules) + "\n"
        (self._folder / "flows.txt").write_text(rules)
        bridge = f"unix:{self._at(f'{BRIDGE}.mgmt')}"
        # Else a first fragment has no ports for a rule, and passes where its packet is denied.
        self._ask_bridge("ovs-ofctl", "set-frags", bridge, "nx-match")
        self._ask_bridge(
            "ovs-ofctl", "--bundle", "-OOpenFlow14", "add-flows",
            bridge, str(self._folder / "flows.txt"),
        )  # fmt: skip
        self.commands = (*self.commands, *(("#", rule) for rule in _shown(self._rules)))

    def _remember(self, flows: Flows) -> None:
        """Make room for connections, and let them end when they are to."""
        self._appctl("dpctl/ct-set-maxconns", str(flows.count))
        self.notes += (f"connection tracking of at most {flows.count:,}",)
        if flows.idle_s is None:
            return
        self._vsctl(
            "--", "--id=@m", "create", "Datapath", "datapath_version=0",
            "--", "set", "Open_vSwitch", ".", "datapaths:netdev=@m",
        )  # fmt: skip
        timeouts = [f"{name}={flows.idle_s}" for name in TIMEOUTS]
        self._vsctl("add-zone-tp", "netdev", "zone=0", *timeouts)

    def _name(self, number: int) -> str:
        """Return a port's name by its OpenFlow number: left, then those of VNFs, then right."""
        last = len(self._setup.ports)
        return "left" if number == LEFT else "right" if number == last else f"vnf{number - 2}"

    def _port(self, name: str, port: PortAt, number: int) -> list[str]:
        kind = ("type=dpdkvhostuserclient", f"options:vhost-server-path={port.address}")
        if port.kind == "dpdk":
            kind = ("type=dpdk", f'options:dpdk-devargs="{port.address}"')
        if port.kind == "af_packet":
            device = f"net_af_packet{number},iface={name}"
            kind = ("type=dpdk", f'options:dpdk-devargs="{device}"')
        # Its interface must not be called as the kernel's.
        own = f"{name}-port"
        return [
            "--", "add-port", BRIDGE, own,
            "--", "set", "Interface", own, *kind, f"ofport_request={number}",
        ]  # fmt: skip

    def _at(self, name: str) -> str:
        return str(self._folder / name)

    def _environment(self) -> dict[str, str]:
        folders = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        return {name: str(self._folder) for name in folders} | dpdk_folder(self._folder)

    def _spawn(self, *command: str) -> None:
        process = Process(command, self._environment(), self._folder)
        self._processes.append(process)
        prefer(process.pid)
        self.commands = (*self.commands, process.command)

    def _until(self, socket: str) -> None:
        process, path = self._processes[-1], self._folder / socket
        wait_for(lambda: path.exists() or not process.running(), DEADLINE_S, f"{socket} of OVS")
        if not process.running():
            raise ProcessError(f"{process.name}: {process.last_words()}")

    def _vsctl(self, *words: str) -> None:
        database = f"--db=unix:{self._at('db.sock')}"
        self._do("ovs-vsctl", database, f"--timeout={DEADLINE_S:g}", *words)

    def _ask_bridge(self, *command: str) -> None:
        """As _do: a bridge that was just made hangs up on a caller now and then."""

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

    def _do(self, *command: str) -> None:
        self.commands = (*self.commands, command)
        output(command, 2 * DEADLINE_S, self._environment())

    def _appctl(self, *words: str) -> str:
        command = ["ovs-appctl", "-t", self._at("switch.ctl"), "--timeout=10", *words]
        return output(command, 2 * DEADLINE_S, self._environment())

    def ready(self, deadline_s: float) -> None:
        """It is: ovs-vsctl returned when the ports were made, ovs-ofctl when the rules were.

        But VNFs behind it begin after it.
        """
        if not self.alive():
            dead = next(process for process in self._processes if not process.running())
            raise ProcessError(f"{dead.name}: {dead.last_words()}")
        if self._setup.behind:
            wait_for(self._met, deadline_s, "VNFs to meet the switch")

    def _met(self) -> bool:
        """Return whether somebody is at each port behind it."""
        ports = [f"vnf{i}-port" for i in range(len(self._setup.behind))]
        words = ("--bare", "--columns=link_state", "list", "Interface", *ports)
        database = f"--db=unix:{self._at('db.sock')}"
        text = output(["ovs-vsctl", database, *words], 2 * DEADLINE_S, self._environment())
        return text.split().count("up") == len(ports)

    def alive(self) -> bool:
        return all(process.running() for process in self._processes)

    def watched(self) -> tuple[int, ...]:
        return (self._processes[-1].pid,)

    def poll_threads(self) -> tuple[int, ...]:
        return threads_named(self._processes[-1].pid, ("pmd-",))

    def counters(self) -> dict[str, Any] | None:
        return {
            "pmd-stats-show": pmd_stats(self._appctl("dpif-netdev/pmd-stats-show")),
            "dump-ports": self._ports(),
        }

    def _ports(self) -> dict[str, int]:
        bridge = f"unix:{self._at(f'{BRIDGE}.mgmt')}"
        command = ("ovs-ofctl", "-OOpenFlow14", "dump-ports", bridge)
        return port_stats(output(command, 2 * DEADLINE_S, self._environment()))

    def cost(self) -> Cost | None:
        stats = pmd_stats(self._appctl("dpif-netdev/pmd-stats-show"))
        packets = stats["packets received"]
        if self._before:
            # Those are convoys. A port counts packets where it is the library that aggregates
            # or disaggregates; where the guest did, the other port counts them.
            ports = self._ports()
            packets = max(ports["rx pkts"], ports["tx pkts"])
        return Cost(stats["processing cycles"], packets, "pmd-stats-show")

    def processes(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._processes)

    def output(self) -> Mapping[str, str]:
        return {process.name: output_of(process) for process in self._processes}

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.close()
        if self._apart is not None:
            veth.unwire([self._apart.pid], self._setup)
            self._apart.stop()


def _shown(rules: list[str]) -> list[str]:
    """Return rules as results keep them: many are alike."""
    more = len(rules) - SHOWN
    return rules if more <= 0 else [*rules[:SHOWN], f"and {more} more"]


def pmd_stats(text: str) -> dict[str, int]:
    """Return the numbers that pmd-stats-show prints, summed over its poll threads."""
    sums: dict[str, int] = {}
    polling = False
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            polling = line.startswith("pmd thread")
        match = re.match(r"\s+([a-z][a-z ./-]*): (\d+)(?: \(|$)", line)
        if polling and match:
            sums[match[1]] = sums.get(match[1], 0) + int(match[2])
    if "packets received" not in sums:
        raise ConvoyError(f"ovs-appctl: no numbers of a poll thread in: {text[:200]!r}")
    sums.setdefault("processing cycles", 0)  # not shown before it did something
    return sums


def port_stats(text: str) -> dict[str, int]:
    """Return what dump-ports prints, "rx pkts" ..., summed over the ports that have a number."""
    sums = {f"{way} {what}": 0 for way in ("rx", "tx") for what in ("pkts", "bytes", "drop")}
    ours = False
    for line in text.splitlines():
        if line.lstrip().startswith("port "):
            ours = "LOCAL" not in line
        way = re.search(r"\b(rx|tx) pkts=", line)
        if ours and way:
            for what, number in re.findall(r"(pkts|bytes|drop)=(\d+)", line):
                sums[f"{way[1]} {what}"] += int(number)
    return sums


def _quoted(value: str) -> str:
    return f'"{value}"'


class OvsDpdk(Device):
    """Debian's openvswitch-switch-dpdk."""

    name = "ovs-dpdk"
    connects = True
    ability = Ability(
        functions=types_of(MEANINGS),
        port_kinds=frozenset({"vhost-user", "af_packet"}),
        nics=frozenset({"dpdk", "af_packet"}),
        queues=8,
        cores=8,
        both_ways=True,
        remembers=True,
        yields=True,
        switches=True,
        options={"caches": tuple(CACHES), "convoys": ("no", "vhost")},
    )

    def presence(self) -> Presence:
        """Look for an ovs-vswitchd that has DPDK."""
        vswitchd = program()
        if vswitchd is None or not SCHEMA.exists() or shutil.which("ovsdb-server") is None:
            return Presence("", HOW)
        try:
            words = output([vswitchd, "--version"])
        except ConvoyError as error:
            return Presence("", f"not installed: {error}")
        dpdk = re.search(r"^DPDK (.*)$", words, re.MULTILINE)
        if dpdk is None:
            return Presence("", f"{HOW}; {vswitchd} is one without")
        version = re.search(r"\(Open vSwitch\) (\S+)", words)
        return Presence(f"{version[1] if version else 'unknown'} with DPDK {dpdk[1]}")

    def tester_port(self, port: PortAt, index: int) -> str:
        """Open vSwitch connects, the tester makes the socket."""
        server = ",server" if port.kind == "vhost-user" else ""
        return super().tester_port(port, index) + server

    def check(self, setup: Setup) -> None:
        """Ask the rules too, OpenFlow cannot say everything; and for what is preloaded."""
        if setup.left.kind != setup.right.kind:
            raise InputError("give both ports the same kind")
        if setup.left.kind == "af_packet" and max(setup.left.queues, setup.right.queues) > 1:
            raise InputError("veth have one queue")
        convoys = self.option(setup, "convoys")
        if convoys != "no" and (setup.functions or setup.left.kind != "vhost-user"):
            raise InputError(
                f"convoys={convoys}: its rules see the convoys' headers, not their packets': only "
                "from vhost-user port to port, without a function"
            )
        flows(setup.functions, setup.back)
        preloaded(convoys)

    def start(self, setup: Setup) -> Running:
        """Start it, with its rules."""
        vswitchd = program()
        if vswitchd is None:
            raise ConvoyError(HOW)
        before = preloaded(self.option(setup, "convoys"))
        return _Running(setup, vswitchd, self.option(setup, "caches"), before)
