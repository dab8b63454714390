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
`wait` says how long a frame that is not full waits for more of its guest's packets there, and
`networks` at which ports no guest is: convoys pass there as they are, as at a NIC.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from convoy.chain.flow_rules import WORDS
from convoy.chain.meaning import types_of
from convoy.chain.next_hops import wait_of
from convoy.dut import veth
from convoy.dut.base import Ability, Cost, Device, Flows, PortAt, Presence, Running, Setup
from convoy.dut.openflow import LEFT, flows, joined
from convoy.errors import ConvoyError, InputError
from convoy.host.namespace import Namespace, shell
from convoy.host.open_vswitch import (
    CACHES,
    SLEEP_MAX_US,
    Switch,
    SwitchConfig,
    SwitchPort,
    port_counts,
    presence,
    vhost_user,
)
from convoy.host.priority import prefer
from convoy.host.process import ProcessError, output_of, wait_for
from convoy.host.programs import need
from convoy.host.run_queue import threads_named

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
STATED = {
    "emc": "caches: EMC (8,192 flows, filled by 1 in 100 packets) and megaflows",
    "emc+smc": "caches: EMC (8,192 flows, filled by 1 in 100 packets), SMC and megaflows",
    "smc": "caches: SMC and megaflows, no EMC",
    "megaflow": "caches: megaflows alone, no EMC, no SMC",
}


NETWORKS: Mapping[str, tuple[int, ...]] = {"none": (), "left": (0,), "both": (0, 1)}


def config(setup: Setup, caches: str) -> SwitchConfig:
    """Return how the switch runs: where its threads do, its memory, its caches."""
    return SwitchConfig(
        setup.cores,
        setup.hugepages,
        caches,
        sleeps=setup.oversubscribed,
        cards=setup.left.kind == "dpdk",
    )


def preloaded(convoys: str, wait: str = "0us", networks: Sequence[PortAt] = ()) -> tuple[str, ...]:
    """Return what goes before the switch's command. Raises InputError: not built.

    networks: ports whose peers are no guests; convoys pass there as they are.
    """
    if convoys == "no":
        return ()
    words = f"{NEXT_HOP} wait={wait_of(wait)}"
    if networks:
        words += f" network={','.join(port.address for port in networks)}"
    return ("env", f"LD_PRELOAD={need(LIBRARY)}", f"CONVOY_VHOST={words}")


class _Running(Running):
    def __init__(self, setup: Setup, caches: str, before: tuple[str, ...]) -> None:
        """before: what is preloaded; nothing, or the words of a command that does it."""
        self._setup = setup
        self.switch = Switch(setup.folder)
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
            joined(len(setup.ports), setup.back is not None)
            if setup.behind
            else flows(setup.functions, setup.back)
        )
        try:
            self._start(caches)
        except BaseException:
            self.stop()
            raise

    def _start(self, caches: str) -> None:
        apart: tuple[str, ...] = ()
        outside = self._setup.left.kind in veth.KINDS
        if outside or any(port.nic for port in self._setup.behind):
            self._apart = Namespace()
            if outside:
                shell("\n".join(veth.wiring([self._apart.pid], self._setup)))
                self._apart.run("for i in left right; do ip link set $i up promisc on; done")
            veth.take_in(self._apart, self._setup.behind)
            apart = self._apart.command()
        self.switch.start(config(self._setup, caches), self._before, apart)
        for process in self.switch.processes:
            prefer(process.pid)
        self.switch.add_bridge(
            [
                self._port(self._name(number), port, number)
                for number, port in enumerate(self._setup.ports, 1)
            ]
        )
        if self._setup.flows is not None:
            self._remember(self._setup.flows)
        self.switch.add_rules(self._rules)
        self.commands = (*self.switch.commands, *(("#", rule) for rule in _shown(self._rules)))

    def _remember(self, flows: Flows) -> None:
        """Make room for connections, and let them end when they are to."""
        self.switch.appctl("dpctl/ct-set-maxconns", str(flows.count))
        self.notes += (f"connection tracking of at most {flows.count:,}",)
        if flows.idle_s is None:
            return
        self.switch.vsctl(
            "--", "--id=@m", "create", "Datapath", "datapath_version=0",
            "--", "set", "Open_vSwitch", ".", "datapaths:netdev=@m",
        )  # fmt: skip
        timeouts = [f"{name}={flows.idle_s}" for name in TIMEOUTS]
        self.switch.vsctl("add-zone-tp", "netdev", "zone=0", *timeouts)

    def _name(self, number: int) -> str:
        """Return a port's name by its OpenFlow number: left, then those of VNFs, then right."""
        last = len(self._setup.ports)
        return "left" if number == LEFT else "right" if number == last else f"vnf{number - 2}"

    def _port(self, name: str, port: PortAt, number: int) -> SwitchPort:
        own = f"{name}-port"  # its interface must not be called as the kernel's
        if port.kind == "dpdk":
            return SwitchPort(own, number, ("type=dpdk", f'options:dpdk-devargs="{port.address}"'))
        if port.kind == "af_packet":
            interface = port.address if port in self._setup.behind else name
            device = f"net_af_packet{number},iface={interface}"
            return SwitchPort(own, number, ("type=dpdk", f'options:dpdk-devargs="{device}"'))
        return vhost_user(own, number, port.address)

    def ready(self, deadline_s: float) -> None:
        """It is: ovs-vsctl returned when the ports were made, ovs-ofctl when the rules were.

        But VNFs behind it begin after it.
        """
        dead = self.switch.dead()
        if dead is not None:
            raise ProcessError(f"{dead.name}: {dead.last_words()}")
        if any(port.kind == "vhost-user" for port in self._setup.behind):
            wait_for(self._met, deadline_s, "VNFs to meet the switch")

    def _met(self) -> bool:
        """Return whether somebody is at each port behind it."""
        ports = [f"vnf{i}-port" for i in range(len(self._setup.behind))]
        return self.switch.links(ports).count("up") == len(ports)

    def alive(self) -> bool:
        return self.switch.alive()

    def watched(self) -> tuple[int, ...]:
        return (self.switch.daemon.pid,)

    def poll_threads(self) -> tuple[int, ...]:
        return threads_named(self.switch.daemon.pid, ("pmd-",))

    def counters(self) -> dict[str, Any] | None:
        return {
            "pmd-stats-show": pmd_stats(self.switch.appctl("dpif-netdev/pmd-stats-show")),
            "dump-ports": self._ports(),
        }

    def _ports(self) -> dict[str, int]:
        return port_stats(self.switch.ofctl("dump-ports"))

    def cost(self) -> Cost | None:
        stats = pmd_stats(self.switch.appctl("dpif-netdev/pmd-stats-show"))
        packets = stats["packets received"]
        if self._before:
            # Those are convoys. A port counts packets where it is the library that aggregates
            # or disaggregates; where the guest did, the other port counts them.
            ports = self._ports()
            packets = max(ports["rx pkts"], ports["tx pkts"])
        return Cost(stats["processing cycles"], packets, "pmd-stats-show")

    def processes(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self.switch.processes)

    def output(self) -> Mapping[str, str]:
        return {process.name: output_of(process) for process in self.switch.processes}

    def stop(self) -> None:
        self.switch.close()
        if self._apart is not None:
            if self._setup.left.kind in veth.KINDS:
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
    for counts in port_counts(text).values():
        for key, number in counts.items():
            sums[key] += number
    return sums


class OvsDpdk(Device):
    """Debian's openvswitch-switch-dpdk."""

    name = "ovs-dpdk"
    connects = True
    ability = Ability(
        functions=types_of(WORDS),
        port_kinds=frozenset({"vhost-user", "af_packet"}),
        nics=frozenset({"dpdk", "af_packet"}),
        queues=8,
        cores=8,
        both_ways=True,
        remembers=True,
        yields=True,
        switches=True,
        options={
            "caches": tuple(CACHES),
            "convoys": ("no", "vhost"),
            "wait": ("0us", "2us", "5us", "10us", "20us"),
            "networks": tuple(NETWORKS),  # ports whose peer is no guest, but sends convoys itself
        },
    )

    def presence(self) -> Presence:
        """Look for an ovs-vswitchd that has DPDK."""
        return Presence(*presence())

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
        if convoys == "no" and self.option(setup, "wait") != "0us":
            raise InputError("wait: only with convoys=vhost")
        flows(setup.functions, setup.back)
        preloaded(convoys)

    def start(self, setup: Setup) -> Running:
        """Start it, with its rules."""
        ports = (setup.left, setup.right)
        networks = [ports[i] for i in NETWORKS[self.option(setup, "networks")]]
        before = preloaded(self.option(setup, "convoys"), self.option(setup, "wait"), networks)
        return _Running(setup, self.option(setup, "caches"), before)
