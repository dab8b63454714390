# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A descriptor whose functions are placed in several parts: what each part is, and what joins them.

The node has the ports, and what is placed inline. Each function placed as process, shared,
container or vm is a node of its own; those that share flows are one. All that is placed in the
switch is one Open vSwitch. A path is cut where two neighbours are in different parts.

A link carries the packets of one chain and direction, behind one place of the path, that leave by
one port in the end. So the link says all that our node knows of a packet on its way, and what a
part does with it is what the node would have done. Two such links, of the two directions, share a
pair of ports.

A part's port stands for a port of the node: the one that what is sent there leaves by. It has its
MAC address, and a router's `dev` becomes its name.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from convoy.base.problem import Loc, Problem, shown
from convoy.base.yaml_text import Text
from convoy.chain.descriptor import Descriptor
from convoy.chain.flow_rules import WORDS, Out, Tables, path_rules
from convoy.chain.functions import (
    Balancer,
    Policer,
    Router,
    function_type,
    is_stateful,
    outputs_of,
    place_of,
    settings,
)
from convoy.chain.load import Loaded, check_text
from convoy.chain.machine import GUEST, GUEST_DEVICES_MAX, Machine, guest_device
from convoy.chain.meaning import Firewall, read, types_of
from convoy.chain.picture import pictures
from convoy.chain.place import Way, ways
from convoy.chain.plan import Plan, make_plan
from convoy.chain.ports import AfPacket, AfXdp, Dpdk, Null, Pcap, VirtioUser
from convoy.errors import InputError

NODE, SWITCH = "node", "switch"
IN_SWITCH = ("firewall", "router", "l2fwd")  # types of which the rules do exactly the same
# Types that name ports, or take their addresses and lengths from them.
_OF_PORTS = (
    "balancer", "bridge", "cache", "nat", "nat64", "nsh", "nsh_encap", "srv6", "srv6_encap", "vpn",
)  # fmt: skip


@dataclass(frozen=True)
class Link:
    """Packets of a chain and direction from one part to the next."""

    way: str
    place: int  # in the path: the segment that it leads to
    sender: str
    receiver: str
    origin: str  # the port that they came in by
    out: str  # the port that they are to leave by


@dataclass(frozen=True)
class Pair:
    """Two parts' ports that are joined: one link, or one each way."""

    name: str  # of both ports, and of the socket
    maker: str  # the part that makes the socket
    other: str
    stands_for: Mapping[str, str]  # the node's port, by part
    kind: str  # memif, shared or vhost-user

    @property
    def in_switch(self) -> bool:
        """Return whether one end is the switch's."""
        return SWITCH in (self.maker, self.other)


@dataclass(frozen=True)
class GuestDevice:
    """A virtual machine's network device."""

    pair: Pair
    mac: str


@dataclass(frozen=True)
class Part:
    """A process that runs functions."""

    name: str
    place: str  # inline, process, shared, container, vm or switch
    functions: tuple[str, ...]  # by the names that the descriptor has
    plan: Plan | None = None  # of a node
    rules: tuple[str, ...] = ()  # of the switch
    tables: Mapping[int, str] = field(default_factory=dict)  # its functions, by table
    cores: tuple[int, ...] = ()  # of this machine
    names: Mapping[str, str] = field(default_factory=dict)  # descriptor's, by the part's own
    devices: tuple["GuestDevice", ...] = ()  # of a virtual machine, in its plan's order


@dataclass(frozen=True)
class Split:
    """All parts: the node, then the others in the order that packets pass them."""

    parts: tuple[Part, ...]
    pairs: tuple[Pair, ...]
    functions: Mapping[str, str]  # types, by name
    folder: Path  # of the sockets between them
    pictures: tuple[tuple[str, str], ...]  # title and line, by chain
    notes: tuple[str, ...] = ()
    sleeps: bool = False  # parts share cores
    hugepages: bool = False  # of the switch
    mtu: int = 1500

    @property
    def node(self) -> Plan:
        """The node's plan."""
        plan = self.parts[0].plan
        assert plan is not None
        return plan

    def socket(self, pair: Pair) -> Path:
        """Return where two parts meet."""
        return self.folder / f"{pair.name}.sock"

    def ports_of_switch(self) -> list[tuple[Pair, int]]:
        """Return the switch's ports with OpenFlow's numbers."""
        return [(pair, n) for n, pair in enumerate((p for p in self.pairs if p.in_switch), 1)]


def is_split(descriptor: Descriptor) -> bool:
    """Return whether a descriptor places a function elsewhere than in the node."""
    return any(place_of(function) != "inline" for function in descriptor.functions.values())


def split(loaded: Loaded, machine: Machine, folder: Path) -> Split:
    """Cut a descriptor into parts. Raises DescriptorError for what cannot be.

    folder: of the sockets between parts; it need not exist.
    """
    problems = list(_problems(loaded.descriptor))
    if problems:
        raise loaded.text.error(problems)
    return _Cut(loaded, machine, folder).result()


def _parts_of(descriptor: Descriptor) -> dict[str, str]:
    """Return the part of each function. Neighbours that share flows are one process."""
    result = {}
    for name, function in descriptor.functions.items():
        place = place_of(function)
        result[name] = {"inline": NODE, "switch": SWITCH}.get(place, name)
    for chain in descriptor.chains.values():
        for one, other in itertools.pairwise(chain.path):
            functions = descriptor.functions[one], descriptor.functions[other]
            places = {place_of(function) for function in functions}
            alike = places in ({"process"}, {"shared"}, {"container"}, {"vm"})
            if alike and all(_has_flows(function) for function in functions):
                first, second = result[one], result[other]
                result = {n: first if part == second else part for n, part in result.items()}
    return result


def _has_flows(function: Any) -> bool:
    inner = settings(function)
    return is_stateful(function) or (isinstance(inner, Policer) and inner.per == "flow")


def _cut_ways(descriptor: Descriptor, parts: Mapping[str, str]) -> list[Way]:
    """Return the chains, by direction, that lead through other parts than the node."""
    return [way for way in ways(descriptor) if any(parts[name] != NODE for name in way.path)]


def _outs(descriptor: Descriptor, way: Way) -> set[str]:
    """Return the ports that packets of a chain may leave by."""
    result = {way.sink}
    for name in way.path:
        inner = settings(descriptor.functions[name])
        if isinstance(inner, Router):
            result |= {hop.dev for route in inner.listed for hop in route.next_hops if hop.dev}
    return result


def _problems(descriptor: Descriptor) -> Iterator[Problem]:
    parts = _parts_of(descriptor)
    for name, function in descriptor.functions.items():
        yield from _of_function(name, function)
    chains = {way.name.partition(".")[0] for way in _cut_ways(descriptor, parts)}
    for name in sorted(chains):
        yield from _of_chain(descriptor, name, parts)
    if chains and descriptor.run_as is not None:
        yield Problem(
            ("run-as",),
            "parts could not reach each other's sockets",
            "remove it, or place all functions inline",
            shown(descriptor.run_as),
        )


def _of_function(name: str, function: Any) -> Iterator[Problem]:
    place, kind = place_of(function), function_type(function)
    at: Loc = ("functions", name, "place")
    if place == "inline":
        return
    if place != "switch" and name in (NODE, SWITCH):
        yield Problem(
            at, "this part would be called as another one", "give the function another name", name
        )
        return
    inner = settings(function)
    if kind in _OF_PORTS and not (isinstance(inner, Balancer) and _of_no_port(inner)):
        yield Problem(
            at, f"{kind.replace('_', '-')} works on ports of the node", "write inline", shown(place)
        )
    elif isinstance(inner, Router) and (
        inner.addresses or inner.routes_file or inner.neighbours_file
    ):
        key = "addresses" if inner.addresses else "routes-file"
        key = key if inner.addresses or inner.routes_file else "neighbours-file"
        yield Problem(
            at,
            f"a router with {key} lives on ports of the node",
            f"write inline, or routes and neighbours without {key}",
            shown(place),
        )
    elif outputs_of(function):
        yield Problem(at, "it has outputs, to chains of the node", "write inline", shown(place))
    elif place == "switch":
        yield from _in_switch(at, function, kind)


def _of_no_port(balancer: Balancer) -> bool:
    return (
        balancer.mode in ("dsr", "nat")
        and balancer.health is None
        and all(backend.dev is None for backend in balancer.backends)
    )


def _in_switch(at: Loc, function: Any, kind: str) -> Iterator[Problem]:
    if kind not in IN_SWITCH:
        yield Problem(
            at,
            f"{kind.replace('_', '-')} has no form as flow rules",
            f"write process or inline; the switch has {', '.join(IN_SWITCH)}",
            "'switch'",
        )
        return
    try:
        meaning = read(function)
    except InputError as error:
        yield Problem(at, str(error), "or write process or inline", "'switch'")
        return
    if isinstance(meaning, Firewall) and meaning.stateful:
        yield Problem(
            at,
            "a stateful firewall has no form as flow rules that does the same",
            "write process or inline, or remove stateful",
            "'switch'",
        )


def _of_chain(descriptor: Descriptor, name: str, parts: Mapping[str, str]) -> Iterator[Problem]:
    chain = descriptor.chains[name]
    at: Loc = ("chains", name)
    path = chain.path
    if chain.from_ is None:
        yield Problem(
            (*at, "path"),
            "outputs lead here, and its functions are placed elsewhere",
            "place them inline",
        )
        return
    if chain.deployment != "inline":
        yield Problem(
            (*at, "deployment"),
            "a chain with functions placed elsewhere is no pipeline",
            "remove it, or place all functions inline",
            shown(chain.deployment),
        )
    if chain.spread != "rss":
        yield Problem(
            (*at, "spread"),
            "a chain with functions placed elsewhere is not dealt out",
            "remove it, or place all functions inline",
            shown(chain.spread),
        )
    if chain.match.nfi is not None:
        yield Problem(
            (*at, "match", "nfi"),
            "is of convoys, which the node alone sees",
            "place the functions inline, or match otherwise",
            str(chain.match.nfi),
        )
    if chain.match.vni is not None and SWITCH in (parts[function] for function in path):
        yield Problem(
            (*at, "match", "vni"),
            "functions see the packet in the tunnel, and the switch's rules see the outer one",
            "place them as process",
            str(chain.match.vni),
        )
    for port in (chain.from_, chain.to):
        kind = descriptor.ports[port]
        if (isinstance(kind, Pcap) and kind.pcap.read) or (
            isinstance(kind, Null) and kind.frame_bytes
        ):
            yield Problem(
                ("ports", port, kind.kind),
                "gives packets faster than parts that are joined by sockets take them",
                "use a socket or an interface, or place all functions inline",
            )
    for i, (one, other) in enumerate(itertools.pairwise(path)):
        functions = descriptor.functions[one], descriptor.functions[other]
        if parts[one] != parts[other] and all(_has_flows(function) for function in functions):
            yield Problem(
                (*at, "path", i + 1),
                f"shares its flows with {one}, which is placed {place_of(functions[0])}",
                "place both alike: their state cannot be cut",
                shown(other),
            )
    for i, function in enumerate(path):
        yield from _at_ports(descriptor, name, i, function, parts)
    yield from _macs(descriptor, name, parts)


def _at_ports(
    descriptor: Descriptor, chain: str, i: int, name: str, parts: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what a function that stays in the node cannot do where its chain is cut."""
    function = descriptor.functions[name]
    if place_of(function) != "inline":
        return
    at: Loc = ("chains", chain, "path", i)
    if outputs_of(function):
        yield Problem(
            at, "has outputs, in a chain with functions placed elsewhere", "place all inline",
            shown(name),
        )  # fmt: skip
        return
    inner = settings(function)
    kind = function_type(function)
    of_ports = kind in _OF_PORTS and not (isinstance(inner, Balancer) and _of_no_port(inner))
    if isinstance(inner, Router) and (inner.addresses or inner.routes_file):
        of_ports = True
    outside = getattr(inner, "outside", None)
    path = descriptor.chains[chain].path
    before = all(parts[each] == NODE for each in path[:i])
    behind = all(parts[each] == NODE for each in path[i:])
    ends = {descriptor.chains[chain].from_: before, descriptor.chains[chain].to: behind}
    if kind in ("cache", "nat", "vpn") and outside is not None:
        mine = [way for way in ways(descriptor) if way.name.partition(".")[0] == chain]
        others = {port for way in mine for port in _outs(descriptor, way)} - set(ends)
        apart = any(port in outside and not beside for port, beside in ends.items())
        of_ports = apart or bool(others & set(outside))
    if of_ports:
        yield Problem(
            at,
            f"works on ports of the node, and functions of its chain are placed elsewhere "
            f"({', '.join(each for each in path if parts[each] != NODE)})",
            "place these inline",
            shown(name),
        )


def _macs(descriptor: Descriptor, chain: str, parts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield ports whose MAC addresses other parts must know, and that are not given."""
    for way in ways(descriptor):
        if way.name.partition(".")[0] != chain:
            continue
        last = max((i for i, name in enumerate(way.path) if parts[name] != NODE), default=-1)
        writers = [name for name in way.path[: last + 1] if _writes_mac(descriptor.functions[name])]
        for port in sorted(_outs(descriptor, way)) if writers else ():
            if _mac(descriptor, port) is None:
                yield Problem(
                    ("ports", port),
                    f"{writers[0]}, which is not behind all others, writes its MAC address",
                    "give it: mac: 02:00:00:00:00:01, or the interface's",
                )


def _writes_mac(function: Any) -> bool:
    inner = settings(function)
    rewrites = getattr(inner, "mode", None) == "rewrite" and getattr(inner, "src", None) is None
    return isinstance(inner, Router) or (function_type(function) == "l2fwd" and rewrites)


def _mac(descriptor: Descriptor, port: str) -> str | None:
    """Return a port's MAC address, None: its device has one (dataplane/port/port.c)."""
    model = descriptor.ports[port]
    if model.mac is not None:
        return str(model.mac)
    devices = isinstance(model, AfPacket | AfXdp | Dpdk | VirtioUser)
    if devices or getattr(model, "datapath", None) == "dpdk":
        return None
    return f"02:c0:17:00:00:{list(descriptor.ports).index(port):02x}"


@dataclass
class _Builder:
    """A part as it is cut."""

    name: str
    functions: dict[str, Any] = field(default_factory=dict)
    chains: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Segment:
    """Neighbours of a path that are in one part."""

    part: str
    functions: tuple[str, ...]


class _Cut:
    def __init__(self, loaded: Loaded, machine: Machine, folder: Path) -> None:
        self._loaded = loaded
        self._descriptor = loaded.descriptor
        self._machine = machine
        self._folder = folder
        self._parts = _parts_of(self._descriptor)
        # By chain, place in its path and port in the end.
        self._links: dict[tuple[str, int, str], Link] = {}
        self._segments: dict[str, list[_Segment]] = {}
        self._builders = {NODE: _Builder(NODE)}
        self._variants: dict[tuple[str, str, str], str] = {}
        self._mtu = max(port.mtu or 1500 for port in self._descriptor.ports.values())

    def result(self) -> Split:
        cut = _cut_ways(self._descriptor, self._parts)
        for way in cut:
            self._segments[way.name] = self._cut(way)
            self._follow(way, 0, way.sink)
        paired = self._paired()
        self._pairs = [pair for pair, _ in paired]
        self._check_guests()
        self._ends = {
            key: pair.name
            for pair, links in paired
            for key, link in self._links.items()
            if link in links
        }
        for way in cut:
            for i, _ in enumerate(self._segments[way.name]):
                self._build(way, i)
        self._of_node(cut)
        return self._finish(cut)

    def _cut(self, way: Way) -> list[_Segment]:
        """Return the segments of a path; the first and the last one are the node's."""
        result = [_Segment(NODE, ())]
        for name in way.path:
            part = self._parts[name]
            if result[-1].part == part:
                result[-1] = _Segment(part, (*result[-1].functions, name))
                continue
            if self._in_vm(result[-1].part) and self._in_vm(part):
                result.append(_Segment(NODE, ()))  # two guests have nothing that joins them
            result.append(_Segment(part, (name,)))
        return result if result[-1].part == NODE else [*result, _Segment(NODE, ())]

    def _check_guests(self) -> None:
        """Raise DescriptorError where a virtual machine has not room for its links."""
        problems = [
            Problem(
                ("functions", part, "place"),
                f"it needs {links} network devices, and a virtual machine has {GUEST_DEVICES_MAX}",
                "lead fewer chains through it, or write process",
                "'vm'",
            )
            for part in dict.fromkeys(self._parts.values())
            if self._in_vm(part) and (links := len(self._pairs_of(part))) > GUEST_DEVICES_MAX
        ]
        if problems:
            raise self._loaded.text.error(problems)

    def _in_vm(self, part: str) -> bool:
        return part not in (NODE, SWITCH) and place_of(self._descriptor.functions[part]) == "vm"

    def _follow(self, way: Way, i: int, out: str) -> None:
        """Make the links that packets take from segment i on."""
        segments = self._segments[way.name]
        if i == len(segments) - 1:
            return
        for to in self._leads(segments[i], out):
            key = (way.name, i + 1, to)
            if key not in self._links:
                assert way.source is not None
                self._links[key] = Link(
                    way.name, i + 1, segments[i].part, segments[i + 1].part, way.source, to
                )
                self._follow(way, i + 1, to)

    def _leads(self, segment: _Segment, out: str) -> list[str]:
        """Return the ports that packets may leave by behind a segment."""
        result = [out]
        for name in segment.functions:
            inner = settings(self._descriptor.functions[name])
            if isinstance(inner, Router):
                hops = (hop for route in inner.listed for hop in route.next_hops)
                result = list(dict.fromkeys(hop.dev for hop in hops if hop.dev)) or result
        return result

    def _paired(self) -> list[tuple[Pair, tuple[Link, ...]]]:
        result: list[tuple[Pair, tuple[Link, ...]]] = []
        left = list(self._links.values())
        numbered = (f"link{number}" for number in itertools.count(1))
        names = (name for name in numbered if name not in self._descriptor.ports)
        while left:
            one = left.pop(0)
            back = next(
                (
                    other
                    for other in left
                    if (other.sender, other.receiver) == (one.receiver, one.sender)
                    and (other.origin, other.out) == (one.out, one.origin)
                    # What goes back to where it came from has links of its own: a switch sends
                    # nothing out of the port that it came in by.
                    and one.origin != one.out
                ),
                None,
            )
            links = (one,) if back is None else (one, back)
            if back is not None:
                left.remove(back)
            maker, other_part = one.sender, one.receiver
            if maker == SWITCH or (self._in_vm(maker) and other_part != SWITCH):  # it connects
                maker, other_part = other_part, maker
            stands_for = {one.sender: one.out, one.receiver: one.origin}
            pair = Pair(
                next(names), maker, other_part, stands_for, self._kind_between(maker, other_part)
            )
            result.append((pair, links))
        if any(pair.kind == "shared" and NODE in (pair.maker, pair.other) for pair, _ in result):
            return result
        # The node, which would own the buffers, has no part in it.
        return [
            (replace(pair, kind="memif") if pair.kind == "shared" else pair, links)
            for pair, links in result
        ]

    def _kind_between(self, one: str, other: str) -> str:
        """Return what joins two parts."""
        if self._in_vm(one) or self._in_vm(other) or SWITCH in (one, other):
            return "vhost-user"
        return "shared" if self._in_pool(one) and self._in_pool(other) else "memif"

    def _in_pool(self, part: str) -> bool:
        """Return whether a part has the node's buffers mapped. The node owns them."""
        return part == NODE or place_of(self._descriptor.functions[part]) == "shared"

    def _exit(self, way: Way, i: int, out: str) -> str:
        """Return the port by which segment i sends what leaves by `out` in the end."""
        last = i == len(self._segments[way.name]) - 1
        return out if last else self._ends[(way.name, i + 1, out)]

    def _entries(self, way: Way, i: int) -> list[tuple[str, str]]:
        """Return (port, port in the end) of what comes into segment i."""
        if i == 0:
            assert way.source is not None
            return [(way.source, way.sink)]
        return [(self._ends[key], key[2]) for key in self._links if key[:2] == (way.name, i)]

    def _build(self, way: Way, i: int) -> None:
        segment = self._segments[way.name][i]
        if segment.part == SWITCH:
            return
        builder = self._builders.setdefault(segment.part, _Builder(segment.part))
        path = [self._instance(builder, way, i, name) for name in segment.functions]
        match = way.chain.match.model_dump(exclude_none=True)
        for come, out in self._entries(way, i):
            name = base = way.name.replace(".", "-")[:14]
            number = 1
            while name in builder.chains or (builder.name == NODE and self._is_taken(name, i)):
                number += 1
                name = f"{base}-{number}"
            of_link = {"vni": match["vni"]} if "vni" in match else {}
            builder.chains[name] = {
                "match": match if i == 0 else of_link,
                "from": come,
                "to": self._exit(way, i, out),
                "path": path,
            }

    def _is_taken(self, name: str, i: int) -> bool:
        """Return whether a chain of the descriptor is called so; its first segment may be."""
        return i > 0 and name in self._descriptor.chains

    def _instance(self, builder: _Builder, way: Way, i: int, name: str) -> str:
        """Return a function's name in a part: a router has one for each choice of ports."""
        function = _raw(self._loaded.text, name)
        inner = settings(self._descriptor.functions[name])
        key = ""
        if isinstance(inner, Router):
            leads = self._leads(self._segments[way.name][i], way.sink)
            # What a router behind it in the same part decides anew has no link of its own.
            ports = {
                hop.dev: self._exit(way, i, hop.dev if hop.dev in leads else leads[0])
                for route in inner.listed
                for hop in route.next_hops
                if hop.dev
            }
            key = str(sorted(ports.items()))
            function = {"router": _with_ports(inner, function["router"], ports)}
        known = (builder.name, name, key)
        if known not in self._variants:
            own, number = name, 1
            taken = set(builder.functions) | (set(self._descriptor.functions) - {name})
            if key and builder.name == NODE and self._is_whole(name):
                taken.add(name)  # a chain that is not cut has it, with the node's ports
            while own in taken:
                number += 1
                own = f"{name[:28]}-{number}"
            builder.functions[own] = function
            builder.names[own] = name
            self._variants[known] = own
        return self._variants[known]

    def _is_whole(self, name: str) -> bool:
        """Return whether a chain that is not cut leads through a function."""
        return any(
            name in way.path
            for way in ways(self._descriptor)
            if all(self._parts[each] == NODE for each in way.path)
        )

    def _of_node(self, cut: Sequence[Way]) -> None:
        """Add to the node what is not cut."""
        builder = self._builders[NODE]
        names = {way.name.partition(".")[0] for way in cut}
        chains = self._loaded.text.data["chains"]
        builder.chains = {
            **{name: chain for name, chain in chains.items() if name not in names},
            **builder.chains,
        }
        used = {name for chain in builder.chains.values() for name in chain.get("path") or ()}
        for name in self._descriptor.functions:
            unused = not any(name in way.path for way in ways(self._descriptor))
            if self._parts[name] == NODE and (name in used or unused):
                raw = _raw(self._loaded.text, name)
                builder.functions.setdefault(name, raw)
                builder.names.setdefault(name, name)

    def _finish(self, cut: Sequence[Way]) -> Split:
        given = self._descriptor.workers
        cores = list(given.cores or sorted(self._machine.nodes)[1:] or self._machine.nodes)
        others = [name for name in self._builders if name != NODE]
        has_switch = any(self._parts[name] == SWITCH for way in cut for name in way.path)
        # As many workers as the node alone would have: links are polled beside the ports.
        sources = {way.source for way in ways(self._descriptor) if way.source is not None}
        own = min(sum(self._descriptor.ports[port].rx_queues for port in sources), len(cores))
        count = own + len(others) + has_switch
        sleeps = count > len(cores)
        idle = given.idle
        notes: tuple[str, ...] = ()
        if sleeps:
            notes = (f"{count} workers and poll threads share {len(cores)} core(s)",)
            if "idle" not in given.model_fields_set:
                idle = "sleep"
                notes = (f"{notes[0]}: they sleep when nothing comes (idle: sleep)",)
        workers = {"cores": cores[:own], "idle": idle}
        node = self._plan(self._builders[NODE], {"workers": workers})
        polls = tuple(worker["core"] for worker in node.data["workers"])
        made = {NODE: self._part(self._builders[NODE], node, polls)}
        for turn, name in enumerate(others):
            core = cores[(own + turn) % len(cores)]
            memory = {"hugepages": "never", **_given(self._descriptor.memory)}
            if self._in_vm(name):
                memory["hugepages"] = "always"  # the guest's own
            workers = {"cores": [0 if self._in_vm(name) else core], "idle": idle}
            plan = self._plan(self._builders[name], {"workers": workers, "memory": memory})
            made[name] = self._part(self._builders[name], plan, (core,))
        if has_switch:
            core = cores[(own + len(others)) % len(cores)]
            made[SWITCH] = self._switch(cut, core)
        passed = [each.part for way in cut for each in self._segments[way.name]]
        order = dict.fromkeys([NODE, *passed])
        functions = {
            name: function_type(function).replace("_", "-")
            for name, function in self._descriptor.functions.items()
        }
        return Split(
            parts=tuple(made[name] for name in order),
            pairs=tuple(self._pairs),
            functions=functions,
            folder=self._folder,
            pictures=(*(self._picture(way) for way in cut), *self._whole(node, cut)),
            notes=(*node.notes, *notes),
            sleeps=sleeps,
            hugepages=self._descriptor.memory.hugepages == "always",
            mtu=self._mtu,
        )

    def _pairs_of(self, part: str) -> list[Pair]:
        return [pair for pair in self._pairs if part in (pair.maker, pair.other)]

    def _part(self, builder: _Builder, plan: Plan, cores: tuple[int, ...]) -> Part:
        functions = tuple(dict.fromkeys(builder.names.values()))
        place = "inline"
        if builder.name != NODE:
            place = place_of(self._descriptor.functions[functions[0]])
        devices = tuple(
            GuestDevice(
                pair,
                _mac(self._descriptor, pair.stands_for[builder.name])
                or f"02:c0:17:00:01:{number:02x}",
            )
            for number, pair in enumerate(self._pairs_of(builder.name))
            if place == "vm"
        )
        return Part(
            builder.name,
            place,
            functions,
            plan,
            cores=cores,
            names=builder.names,
            devices=devices,
        )

    def _plan(self, builder: _Builder, override: Mapping[str, Any]) -> Plan:
        data = self._loaded.text.data
        document: dict[str, Any] = {
            "ports": dict(data["ports"]) if builder.name == NODE else {},
            "functions": builder.functions,
            "chains": builder.chains,
        }
        for pair in self._pairs:
            if builder.name in (pair.maker, pair.other):
                document["ports"][pair.name] = self._port(pair, builder.name)
        kept = set(data) - {"ports", "functions", "chains"} if builder.name == NODE else {"flows"}
        document |= {**{key: data[key] for key in data if key in kept}, **override}
        document = {key: value for key, value in document.items() if value}
        text = Text.of_data(document, f"{self._loaded.text.path}, part {builder.name}")
        machine = GUEST if self._in_vm(builder.name) else self._machine
        loaded = check_text(text, self._loaded.base, machine)
        return make_plan(loaded, machine)

    def _port(self, pair: Pair, part: str) -> dict[str, Any]:
        path = str(self._folder / ("pool.sock" if pair.kind == "shared" else f"{pair.name}.sock"))
        mac = _mac(self._descriptor, pair.stands_for[part])
        common = {"mtu": self._mtu, **({} if mac is None else {"mac": mac})}
        if self._in_vm(part):
            return {"dpdk": guest_device(self._pairs_of(part).index(pair)), **common}
        if pair.in_switch:
            return {"virtio-user": path, "mode": "server", **common}
        if pair.kind == "vhost-user":
            return {"vhost-user": path, **common}
        if pair.kind == "shared":
            role = "server" if part == NODE else "client"
            return {"shared": path, "role": role, "link": pair.name, **common}
        return {"memif": path, "role": "server" if part == pair.maker else "client", **common}

    def _switch(self, cut: Sequence[Way], core: int) -> Part:
        numbers = {
            pair.name: n for n, pair in enumerate((p for p in self._pairs if p.in_switch), 1)
        }
        tables, rules = Tables(1), []
        by_table: dict[int, str] = {}
        for way in cut:
            for i, segment in enumerate(self._segments[way.name]):
                if segment.part != SWITCH:
                    continue
                meanings = [read(self._descriptor.functions[name]) for name in segment.functions]
                for come, out in self._entries(way, i):
                    outs = {
                        port: Out(
                            numbers[self._ends[key]]
                            if (key := (way.name, i + 1, port)) in self._links
                            else 0,
                            _mac(self._descriptor, port) or "",
                        )
                        for port in {*_outs(self._descriptor, way), out}
                    }
                    first, come_number = tables.next, numbers[come]
                    rules.append(
                        f"table=0,priority=1,in_port={come_number},actions=goto_table:{first}"
                    )
                    lines = path_rules(meanings, tables, come_number, outs, out)
                    rules += lines
                    by_table |= _tables_of(lines, segment.functions)
        functions = tuple(dict.fromkeys(by_table.values()))
        return Part(SWITCH, "switch", functions, rules=tuple(rules), tables=by_table, cores=(core,))

    def _whole(self, node: Plan, cut: Sequence[Way]) -> list[tuple[str, str]]:
        """Return pictures of the chains that are the node's alone."""
        names = {way.name for way in cut}
        whole = {way.name for way in ways(self._descriptor)} - names
        return [
            (title, line)
            for title, lines in pictures(node.data)
            if title.partition(":")[0] in whole
            for line in lines
        ]

    def _picture(self, way: Way) -> tuple[str, str]:
        match = way.chain.match.model_dump(exclude_none=True)
        what = " ".join(f"{key} {value}" for key, value in match.items()) or "everything"

        def port(name: str) -> str:
            return f"{name} ({self._descriptor.ports[name].kind})"

        def segment_text(segment: _Segment) -> str:
            types = [
                (name, function_type(self._descriptor.functions[name]).replace("_", "-"))
                for name in segment.functions
            ]
            names = [name if name == kind else f"{name} ({kind})" for name, kind in types]
            place = NODE
            if segment.part not in (NODE, SWITCH):
                place = place_of(self._descriptor.functions[segment.functions[0]])
            elif segment.part == SWITCH:
                place = SWITCH
            return f"[{place}: {' → '.join(names) or 'wire'}]"

        assert way.source is not None
        words = [port(way.source), *map(segment_text, self._segments[way.name]), port(way.sink)]
        return f"{way.name}: {what}", " ──▶ ".join(words)


def _tables_of(lines: Sequence[str], functions: Sequence[str]) -> dict[int, str]:
    """Return which function each table is: a path's tables come in its order, depth first."""
    result: dict[int, str] = {}
    depth: dict[int, int] = {}
    for line in lines:
        table = int(line.removeprefix("table=").partition(",")[0])
        depth.setdefault(table, 0)
        if depth[table] < len(functions):
            result[table] = functions[depth[table]]
        after = line.rpartition("goto_table:")
        if after[1]:
            depth[int(after[2])] = depth[table] + 1
    return result


def _raw(text: Text, name: str) -> dict[str, Any]:
    """Return a function as the file has it, without its place."""
    return {key: value for key, value in text.data["functions"][name].items() if key != "place"}


def _given(model: Any) -> dict[str, Any]:
    """Return what a document gives of a model's keys."""
    return {
        key.replace("_", "-"): getattr(model, key)
        for key in model.model_fields_set
        if getattr(model, key) is not None
    }


def _with_ports(router: Router, raw: Mapping[str, Any], ports: Mapping[str, str]) -> dict[str, Any]:
    """Return a router's parameters with other names of ports in its routes."""
    routes: list[dict[str, Any]] = []
    for route in router.listed:
        values = route.model_dump(exclude_none=True)
        for hop in (values, *values.get("nexthops", ())):
            if hop.get("dev") in ports:
                hop["dev"] = ports[hop["dev"]]
        routes.append(values)
    return {**raw, "routes": routes}


assert set(IN_SWITCH) <= types_of(tuple(WORDS))
