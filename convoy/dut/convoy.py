# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Our own node, convoyd, with the setup's functions as its chain.

Deployed as `process`, each function has a convoyd of its own, joined to the next one by vhost-user
or memif (option `link`): the papers' container functions. With `link=shared` they have the first
one's buffers mapped, and packets pass without a copy. With `link=veth` each has a network
namespace of its own too, and interfaces: servers joined by cables. Where there are more of them
than cores, they yield to each other, and the results say so. With the option `convoys=native`
packets are aggregated: convoys are taken at the left, and sent from the right and from process to
process. With `convoys=pack` what comes singly at the left leaves in convoys at the right. With
`datapath=dpdk` DPDK's library moves the packets of vhost-user ports, not our own code.
With `idle=yield` and `idle=sleep` a worker without packets does not poll on. With
`spread=round-robin` bursts go to the workers in turn, whatever flows they are of. With
`container=oci` each process runs in an OCI container which podman starts.
"""

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from convoy import __version__
from convoy.base.yaml_text import Text
from convoy.chain.flows import Timeouts
from convoy.chain.functions import FUNCTIONS, remembers
from convoy.chain.load import check_text
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.dut import container, veth
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import (
    Ability,
    Changer,
    Cost,
    Device,
    Flows,
    Function,
    PortAt,
    Presence,
    Running,
    Setup,
)
from convoy.errors import ConvoyError, InputError
from convoy.host.apply import DEADLINE_S as APPLY_DEADLINE_S
from convoy.host.folders import dpdk_folder
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.priority import prefer
from convoy.host.process import output_of
from convoy.host.programs import find, need
from convoy.host.run_queue import WORKERS, threads_named

NATIVE = "native"
PACK = "pack"
POLL = "poll"
FIXED = "fixed"
RSS, ROUND_ROBIN = "rss", "round-robin"
SHARED = "shared"  # the first process's buffers, which all of them map
VRING, DPDK = "vring", "dpdk"  # who moves packets over vhost-user
SLOTS = 256  # of a link's rings where its ends share a core: what a worker takes before it yields
VETH = "veth"  # as between two servers: each node in a network namespace, with interfaces
# Between nodes that send convoys to each other; nobody looks at them on a link of two.
OWN_IP, NEXT_IP = "192.0.2.252", "192.0.2.253"
NEXT_MAC = "02:00:00:00:0e:01"


def descriptor(setup: Setup, yielding: bool = False) -> dict[str, Any]:
    """Return the chain descriptor for a setup. yielding: its workers share their cores."""
    names = [f"{function.type}{i}" for i, function in enumerate(setup.functions)]
    functions = dict(zip(names, setup.functions, strict=True))
    deployment = "pipeline" if setup.deployment == "pipeline" else "inline"
    chains: dict[str, Any] = {
        "bench": {"from": "left", "to": "right", "path": names, "deployment": deployment}
    }
    if setup.flows is not None:
        chains["bench"]["both-ways"] = True
    if setup.back is not None:
        others = [f"back-{function.type}{i}" for i, function in enumerate(setup.back)]
        functions |= dict(zip(others, setup.back, strict=True))
        way = {"from": "right", "to": "left", "path": others, "deployment": deployment}
        chains["back"] = way
    memory = {"mb": int(setup.options["memory"])} if "memory" in setup.options else {}
    datapath = setup.options.get("datapath", VRING)
    left = _port(setup.left, datapath) | {"mac": LEFT_MAC}
    right = _port(setup.right, datapath) | {"mac": RIGHT_MAC}
    next_hops: dict[str, Any] = {}
    mode = setup.options.get("convoys", "no")
    if mode == NATIVE:
        left["convoys"] = {}  # takes all
    if mode in (NATIVE, PACK):
        right["convoys"] = {"ip": OWN_IP}
        next_hop = {"port": "right", "ip": NEXT_IP, "mac": NEXT_MAC}
        next_hop["wait"] = setup.options.get("wait", "0us")
        next_hops = {"next": next_hop | {"mtu": int(setup.options.get("frame", "1500"))}}
    behind = {f"vnf{i}": _port(port, datapath) for i, port in enumerate(setup.behind)}
    ports = {"left": left, **behind, "right": right}
    if behind:
        joined = list(ports)
        pairs = list(zip(joined[::2], joined[1::2], strict=True))
        ways = pairs if setup.back is None else [*pairs, *((b, a) for a, b in pairs)]
        chains = {
            f"way{i}": {"from": come, "to": leave, "path": []}
            for i, (come, leave) in enumerate(ways)
        }
    for chain in chains.values():
        chain["spread"] = setup.options.get("spread", RSS)
    return {
        "ports": ports,
        **({"next-hops": next_hops} if next_hops else {}),
        **({"flows": _flows(setup.flows)} if setup.flows else {}),
        "functions": {
            name: {function.type: {**function.config, **_files(name, function, setup.folder)}}
            for name, function in functions.items()
        },
        "chains": chains,
        "workers": {
            "cores": list(setup.cores),
            "idle": _idle(setup, yielding),
            "scale": setup.options.get("scale", FIXED),
        },
        "memory": {"hugepages": "always" if setup.hugepages else "never", **memory},
    }


def _idle(setup: Setup, yielding: bool) -> str:
    """Return what workers do without packets: who shares a core gives it away, or sleeps."""
    idle = setup.options.get("idle", POLL)
    return "yield" if yielding and idle == POLL else idle


def _files(name: str, function: Function, folder: Path) -> dict[str, str]:
    """Write a function's files, for this user alone; return their paths by key."""
    paths = {key: folder / f"{name}.{key}" for key in function.files}
    for key, path in paths.items():
        path.touch(0o600)
        path.write_text(function.files[key])
    return {key: str(path) for key, path in paths.items()}


def _flows(flows: Flows) -> dict[str, Any]:
    idle = flows.idle_s
    names = [field.replace("_", "-") for field in Timeouts.model_fields]
    timeouts = {"timeouts": dict.fromkeys(names, idle)} if idle is not None else {}
    return {"max": max(64, flows.count), "max-ipv6": 64, **timeouts}


def _port(port: PortAt, datapath: str) -> dict[str, Any]:
    slots = {"slots": port.slots} if port.slots else {}
    kind, role, address = port.kind, {}, port.address
    if kind.endswith("-client"):  # the other end of a link between two of our nodes
        kind, role = kind.removesuffix("-client"), {"role": "client"}
    if kind == SHARED:  # all links of a chain are at one socket
        socket = Path(address)
        address, role = str(socket.with_name("pool")), role | {"link": socket.name}
    if kind == "virtio-user-server":  # a guest of a switch that connects
        kind, role = "virtio-user", {"mode": "server"}
    many = {"queues": port.queues} if port.queues > 1 else {}
    own: dict[str, Any] = {}
    if kind in {"vhost-user", "memif"} and datapath == DPDK:
        own = {"datapath": DPDK, "trusted": True}
    elif kind == "vhost-user":
        own = {"datapath": datapath}
    return {kind: address, **role, **many, **own, **slots}


def processes(setup: Setup, link: str) -> list[Setup]:
    """Return a setup for each process: all in one, or each function apart, joined by links."""
    if setup.deployment != "process" or len(setup.functions) < 2:
        return [setup]
    ends = {
        "vhost-user": ("vhost-user", "virtio-user"),
        "memif": ("memif", "memif-client"),
        SHARED: (SHARED, f"{SHARED}-client"),
        VETH: ("af_packet", "af_packet"),
    }[link]
    setups, left = [], setup.left
    last = len(setup.functions) - 1
    oversubscribed = len(setup.functions) > len(setup.cores)
    for i, function in enumerate(setup.functions):
        options = dict(setup.options)
        if i > 0 and options.get("convoys") == PACK:
            options["convoys"] = NATIVE  # it gets what the one before has packed
        address = f"link{i}" if link == VETH else str(setup.folder / f"link{i}")
        makes = ends[1] if link == SHARED and i > 0 else ends[0]  # the first one has the buffers
        right = setup.right if i == last else _end(makes, address, oversubscribed)
        core = setup.cores[i % len(setup.cores)]
        setups.append(
            dataclasses.replace(
                setup,
                functions=(function,),
                left=left,
                right=right,
                cores=(core,),
                options=options,
            )
        )
        left = _end(ends[1], address, oversubscribed)
    return setups


def _end(kind: str, address: str, oversubscribed: bool) -> PortAt:
    # vhost-user's is the guest's.
    ring = oversubscribed and kind in {"virtio-user", "memif", "memif-client"}
    return PortAt(kind, address, slots=SLOTS if ring else None)


class _Running(Running):
    def __init__(self, setup: Setup, link: str) -> None:
        self._setup = setup
        self._kept = contextlib.ExitStack()
        self._nodes: list[Node] = []
        self._pids: list[int] = []  # convoyd's: in a container it is not the one that was started
        self._oversubscribed = False
        try:
            self._start(setup, link)
        except BaseException:
            self.stop()
            raise

    def _start(self, setup: Setup, link: str) -> None:
        wrapper: tuple[str, ...] = ()
        if veth.made(setup):
            apart = self._kept.enter_context(Namespace())
            shell("\n".join(veth.wiring([apart.pid], setup)))
            apart.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
            apart.run("for i in left right; do ip link set $i up promisc on; done")
            veth.take_in(apart, setup.behind)
            wrapper = apart.command()
            inside = [PortAt(setup.left.kind, name) for name in ("left", "right")]
            setup = dataclasses.replace(setup, left=inside[0], right=inside[1])
            self.notes += (veth.ATTACHED[setup.left.kind],)
        if setup.options.get("convoys", "no") != "no":
            self.notes += ("packets leave in convoys",)
        if setup.options.get("datapath") == DPDK:
            self.notes += ("DPDK's library moves the packets of vhost-user ports",)
        parts = processes(setup, link)
        oversubscribed = len(parts) > len(setup.cores)
        self._oversubscribed = oversubscribed or setup.oversubscribed
        servers: list[Namespace] = []
        if len(parts) > 1:
            self.notes += (f"a process for each function, joined by {link}",)
            if link == VETH:
                servers = [self._kept.enter_context(Namespace()) for _ in parts]
                _cables(servers)
                self.notes += ("a server for each function: namespaces, af_packet on veth",)
        if oversubscribed:
            self.notes += (f"{len(parts)} processes yield to each other on {_cores(setup)}",)
        if container.wanted(setup):
            self.notes += (container.note(),)
        for number, part in enumerate(parts):
            reported = plan(part, self._oversubscribed)
            node = self._add(part, reported, servers[number].command() if servers else wrapper)
            self.commands += (node.process.command, ("#", json.dumps(reported)))

    def _add(self, setup: Setup, reported: dict[str, Any], wrapper: tuple[str, ...]) -> Node:
        """Start a node, maybe in a container; it forwards when this returns."""
        environment: Mapping[str, str] = dpdk_folder(setup.folder)
        holding = None
        if container.wanted(setup):
            holding = self._kept.enter_context(container.holding(setup, need("convoyd")))
            wrapper, environment = holding.command(environment=dpdk_folder(holding.files)), {}
        node = self._kept.enter_context(Node(reported, wrapper=wrapper, environment=environment))
        self._nodes.append(node)
        self._pids.append(node.process.pid if holding is None else holding.started(node.process))
        prefer(self._pids[-1])
        return node

    def ready(self, deadline_s: float) -> None:
        pass  # it was when it started

    def alive(self) -> bool:
        return all(node.process.running() for node in self._nodes)

    def counters(self) -> dict[str, Any] | None:
        if len(self._nodes) == 1:
            return self._nodes[0].counts()
        return {f"process {i}": node.counts() for i, node in enumerate(self._nodes)}

    def cost(self) -> Cost | None:
        return _cost([node.counts() for node in self._nodes])

    def part_costs(self) -> Mapping[str, Cost]:
        if len(self._nodes) == 1:
            return {}
        return {
            f"{i + 1}: {self._setup.functions[i].type}": _cost([node.counts()])
            for i, node in enumerate(self._nodes)
        }

    def processes(self) -> tuple[int, ...]:
        return tuple(self._pids)

    def output(self) -> Mapping[str, str]:
        return {f"convoyd {i}": output_of(node.process) for i, node in enumerate(self._nodes)}

    def watched(self) -> tuple[int, ...]:
        # Oversubscribed, they wait mostly for each other: that is the setup, not a disturbance.
        return () if self._oversubscribed else self.processes()

    def cooperative_threads(self) -> tuple[int, ...]:
        return self.poll_threads() if self._oversubscribed else ()

    def poll_threads(self) -> tuple[int, ...]:
        return tuple(t for pid in self.processes() for t in threads_named(pid, WORKERS))

    def changer(self, setups: Sequence[Setup]) -> Changer:
        yielding = self._oversubscribed
        plans = [plan(setup, yielding) for setup in setups]
        return _Changer(self._pids[0], self._nodes[0].running.control, plans)

    def stop(self) -> None:
        try:
            self._kept.close()
        finally:
            if veth.made(self._setup):
                veth.unwire([], self._setup)


def _cost(counts: Sequence[Mapping[str, Any]]) -> Cost:
    """Return what the workers of some nodes spent on the packets that the first one got."""
    return Cost(
        sum(worker["busy_cycles"] for count in counts for worker in count["workers"]),
        counts[0]["ports"]["left"]["rx_packets"],
        "convoyd's workers",
    )


class _Changer(Changer):
    """`convoy apply` to a node, of plans that are made before."""

    def __init__(self, pid: int, control: Path, plans: Sequence[dict[str, Any]]) -> None:
        self._plans = plans
        before = set(_threads(pid))
        self._client = Client(control, APPLY_DEADLINE_S)
        self._threads = tuple(set(_threads(pid)) - before)

    def change(self, number: int) -> None:
        if not self._client.apply(self._plans[number]):
            raise ConvoyError("a change changed nothing")

    def threads(self) -> tuple[int, ...]:
        return self._threads

    def _leave(self) -> None:
        self._client.close()


def _threads(pid: int) -> list[int]:
    return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]


def _cables(servers: Sequence[Namespace]) -> None:
    """Join neighbours by veth pairs: link0 between the first two, and so on."""
    for number, (one, two) in enumerate(pairwise(servers)):
        name = f"link{number}"
        peer = f"type veth peer name {name} netns {two.pid}"
        shell(f"ip link add {name} netns {one.pid} {peer}")
        for server in (one, two):
            server.run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
            server.run(f"ip link set {name} up promisc on")


def _cores(setup: Setup) -> str:
    cores = ", ".join(map(str, setup.cores))
    return f"core {cores}" if len(setup.cores) == 1 else f"cores {cores}"


def plan(setup: Setup, yielding: bool = False) -> dict[str, Any]:
    """Return the plan for a setup. Raises DescriptorError."""
    machine = dataclasses.replace(this_machine(), runtime_dir=setup.folder)
    text = Text.of_data(descriptor(setup, yielding), "benchmark")
    return make_plan(check_text(text, setup.folder, machine), machine).data


class Convoy(Device):
    """convoyd from this checkout or from PATH."""

    name = "convoy"
    ability = Ability(
        functions=frozenset(FUNCTIONS),
        port_kinds=frozenset(
            {
                "vhost-user",
                "memif",
                "af_packet",
                "af_xdp",
                "virtio-user",
                "virtio-user-server",
            }
        ),
        nics=frozenset({"dpdk", "af_packet", "af_xdp"}),
        deployments=frozenset({"inline", "pipeline", "process"}),
        queues=16,
        cores=64,
        both_ways=True,
        remembers=True,
        yields=True,
        switches=True,
        changes=True,
        options={
            "link": ("vhost-user", "memif", SHARED, VETH),
            "convoys": ("no", NATIVE, PACK),
            # Of the next hop.
            "wait": ("0us", "1us", "2us", "5us", "10us", "20us", "100us", "1000us"),
            "frame": ("1500", "1024", "528"),  # its mtu: 23, 16 and 8 packets of 64 B
            "datapath": (VRING, DPDK),
            "memory": ("1024", "128", "4096"),  # MiB of each process
            "idle": (POLL, "yield", "sleep"),  # what a worker without packets does
            "scale": (FIXED, "auto"),  # queues go to other workers by load
            "spread": (RSS, ROUND_ROBIN),  # what a worker gets: queues and flows, or bursts in turn
            **container.OPTION,
        },
        reorders={"spread": ROUND_ROBIN},
    )

    def presence(self) -> Presence:
        """Look for convoyd."""
        if find("convoyd") is None:
            return Presence("", "not installed: convoyd (in a checkout: make build)")
        return Presence(__version__)

    def check(self, setup: Setup) -> None:
        """Ask also for what only interfaces of the kernel need."""
        kinds = {setup.left.kind, setup.right.kind}
        if max(setup.left.queues, setup.right.queues) > 1 and kinds & {"memif", *veth.KINDS}:
            raise InputError("memif and veth have one queue")
        if kinds & set(veth.KINDS) and len(kinds) > 1:
            raise InputError("give both ports the same kind")
        if self.option(setup, "datapath") == DPDK and not kinds & {"vhost-user", "memif"}:
            raise InputError("datapath=dpdk is of vhost-user and memif ports")
        if self.option(setup, "link") == VETH and kinds & set(veth.KINDS):
            raise InputError("link=veth: give sockets as outer ports")
        if setup.back is not None and setup.deployment == "process":
            raise InputError("processes that hand packets on do it in one direction")
        if self.option(setup, "spread") == ROUND_ROBIN and setup.deployment != "inline":
            raise InputError(
                "spread=round-robin is of functions on one worker (deployment: inline)"
            )
        if self.option(setup, "spread") == ROUND_ROBIN and any(
            remembers(FUNCTIONS[one.type].model_validate({one.type: dict(one.config)}))
            for one in (*setup.functions, *(setup.back or ()))
        ):
            raise InputError("spread=round-robin is of functions that remember no packets")
        if container.wanted(setup) and self.option(setup, "link") == VETH:
            raise InputError("link=veth: containers here have no network; use another link")
        container.check_sockets(setup)

    def start(self, setup: Setup) -> Running:
        """Start it and wait until it forwards."""
        return _Running(setup, self.option(setup, "link"))
