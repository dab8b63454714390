# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the models cannot see alone: names that must exist, and things that collide."""

import ipaddress
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from convoy.base.problem import Loc, Problem, known, shown
from convoy.chain.cache import Cache
from convoy.chain.descriptor import Descriptor
from convoy.chain.functions import (
    Balancer,
    Bridge,
    Nat,
    RouteHop,
    Router,
    function_type,
    outputs_of,
    remembers,
    settings,
)
from convoy.chain.machine import Machine
from convoy.chain.next_hops import NextHop
from convoy.chain.nsh import Nsh, NshEncap, NshRule, ServicePath
from convoy.chain.openflow import TLS_FILES, is_path
from convoy.chain.parameters import FILES
from convoy.chain.place import reached
from convoy.chain.ports import SOCKET_PATH_MAX_BYTES, AfPacket, AfXdp, Dpdk, Pcap, Steering
from convoy.chain.srv6 import LocalSid, Srv6, Srv6Encap, Srv6Rule
from convoy.chain.vpn import Vpn, others_may_read
from convoy.frame.dictionary import MAX_BYTES as DICTIONARY_MAX_BYTES

NEXT_HOPS_OF_SCID_MAX = 64


def problems(descriptor: Descriptor, base: Path, machine: Machine) -> list[Problem]:
    """Return everything that is wrong; base is the folder that relative paths start from."""
    return [
        *_chains(descriptor),
        *_graph(descriptor),
        *_spreads(descriptor),
        *_next_hops(descriptor),
        *_openflow(descriptor, base, machine),
        *_bridges(descriptor),
        *_routes(descriptor),
        *_pools(descriptor),
        *_named_ports(descriptor),
        *_resources(descriptor, base, machine),
        *_files(descriptor, base),
        *_workers(descriptor, machine),
    ]


def _chains(descriptor: Descriptor) -> Iterator[Problem]:
    entries: dict[tuple[str, str], str] = {}
    for name, chain in descriptor.chains.items():
        at: Loc = ("chains", name)
        for key, port in (("from", chain.from_), ("to", chain.to)):
            if port is not None and port not in descriptor.ports:
                yield Problem(
                    (*at, key),
                    "no port is called so",
                    known("ports", port, descriptor.ports),
                    shown(port),
                )
        for i, function in enumerate(chain.path):
            if function not in descriptor.functions:
                yield Problem(
                    (*at, "path", i),
                    "no function is called so",
                    known("functions", function, descriptor.functions),
                    shown(function),
                )
            elif function in chain.path[:i]:
                yield Problem(
                    (*at, "path", i),
                    "is in this path twice",
                    "give the second one a name of its own under functions",
                    shown(function),
                )
        if chain.from_ is None:
            continue
        for port in {chain.from_: 0, chain.to: 0} if chain.both_ways else (chain.from_,):
            other = entries.setdefault((port, str(chain.match)), name)
            if other != name:
                yield Problem(
                    (*at, "match"),
                    f"chain '{other}' takes these packets from port '{port}' already",
                    "give each a vlan, vni or nfi of its own",
                    str(chain.match),
                )
            at_port = descriptor.ports.get(port)
            if chain.match.nfi is not None and at_port is not None and at_port.convoys is None:
                yield Problem(
                    (*at, "match", "nfi"),
                    f"port '{port}' takes no convoys, and nothing else has an NFI-ID",
                    f"add to port {port}: convoys: {{}}, or match without nfi",
                    str(chain.match.nfi),
                )
        if chain.both_ways and chain.from_ == chain.to:
            yield Problem(
                (*at, "both-ways"),
                f"comes in and leaves by '{chain.to}', so both ways are one",
                "remove both-ways",
            )


def _graph(descriptor: Descriptor) -> Iterator[Problem]:
    """Yield what is wrong with functions' outputs, and with the chains that they lead to."""
    led_to = set()
    for name, function in descriptor.functions.items():
        for output, to in outputs_of(function).items():
            at: Loc = ("functions", name, function_type(function), "outputs", output)
            if to not in descriptor.chains:
                fix = known("chains", to, descriptor.chains)
                yield Problem(at, "no chain is called so", fix, shown(to))
            elif descriptor.chains[to].from_ is not None:
                fix = f"take `from` out of chain {to}, or lead the output to a chain without"
                yield Problem(at, "that chain comes in by a port", fix, shown(to))
            led_to.add(to)
    for name, chain in descriptor.chains.items():
        if chain.from_ is not None:
            continue
        if name not in led_to:
            fix = "add from: PORT, or lead a function's output here"
            yield Problem(("chains", name, "from"), "is missing, and no output leads here", fix)
            continue
        for key, wrong in (
            ("match", chain.match != type(chain.match)()),
            ("both-ways", chain.both_ways),
            ("deployment", chain.deployment != "inline"),
            ("spread", chain.spread != "rss"),
        ):
            if wrong:
                fix = f"remove {key}, or add from: PORT"
                yield Problem(("chains", name, key), "is for chains that come in by a port", fix)
    yield from _loops(descriptor)


def _spreads(descriptor: Descriptor) -> Iterator[Problem]:
    """Yield each chain whose packets cannot go to its workers in turn."""
    for name, chain in descriptor.chains.items():
        if chain.spread == "rss" or chain.from_ is None:
            continue
        at: Loc = ("chains", name, "spread")
        if chain.deployment != "inline":
            yield Problem(
                at,
                "a pipeline has a worker for each function",
                "remove it, or deployment: pipeline",
                shown(chain.spread),
            )
        for function in reached(descriptor, chain.path):
            if remembers(descriptor.functions[function]):
                yield Problem(
                    at,
                    f"function '{function}' remembers packets on the worker that they come to, and "
                    "those of one flow would come to several",
                    f"remove it, or take {function} out of the path",
                    shown(chain.spread),
                )


def _loops(descriptor: Descriptor) -> Iterator[Problem]:
    """Yield each output that leads back to a chain on the way to it."""
    done: set[str] = set()

    def follow(chain: str, above: tuple[str, ...]) -> Iterator[Problem]:
        done.add(chain)
        path = [name for name in descriptor.chains[chain].path if name in descriptor.functions]
        for name in path:
            function = descriptor.functions[name]
            for output, to in outputs_of(function).items():
                if to in (*above, chain):
                    yield Problem(
                        ("functions", name, function_type(function), "outputs", output),
                        "leads back to a chain that its packets came through",
                        "lead it to a chain of its own",
                        shown(to),
                    )
                elif to in descriptor.chains and to not in done:
                    yield from follow(to, (*above, chain))

    for chain in descriptor.chains:
        if chain not in done:
            yield from follow(chain, ())


def _next_hops(descriptor: Descriptor) -> Iterator[Problem]:
    taken: dict[tuple[str, str], list[str]] = {}
    for name, next_hop in descriptor.next_hops.items():
        at: Loc = ("next-hops", name)
        yield from _next_hop_port(descriptor, name)
        for i, port in enumerate(next_hop.leaving or []):
            if port not in descriptor.ports:
                yield Problem(
                    (*at, "leaving", i),
                    "no port is called so",
                    known("ports", port, descriptor.ports),
                    shown(port),
                )
        for port in dict.fromkeys(next_hop.leaving or [next_hop.port]):
            for i, match in enumerate(next_hop.for_):
                others = taken.setdefault((port, str(match)), [])
                yield from _shares(descriptor, name, i, others)
                others.append(name)


def _shares(descriptor: Descriptor, name: str, i: int, others: Sequence[str]) -> Iterator[Problem]:
    """Check the next hop of an SC-ID that others have too, its i-th; each is told of once."""
    next_hop = descriptor.next_hops[name]
    at: Loc = ("next-hops", name)
    shared = str(next_hop.for_[i])
    if name in others:
        yield Problem((*at, "for", i), "is there twice", "remove it", shared)
        return
    if len(others) == NEXT_HOPS_OF_SCID_MAX:
        fix = f"give the SC-ID at most {NEXT_HOPS_OF_SCID_MAX} next hops"
        yield Problem((*at, "for", i), "has too many next hops", fix, shared)
    for other in others:
        before = descriptor.next_hops[other]
        if _instance(descriptor, next_hop) == _instance(descriptor, before):
            yield Problem(
                (*at, "for", i),
                f"next hop '{other}' is the same instance and is for these packets already",
                "give them different ip or nfi, or one of them more weight and remove the other",
                shared,
            )
        if next_hop.spread != before.spread:
            yield Problem(
                (*at, "spread"),
                f"next hop '{other}' is for the same packets and has spread: {before.spread}",
                "give both the same",
                next_hop.spread,
            )


def _instance(descriptor: Descriptor, next_hop: NextHop) -> tuple[object, ...]:
    port = descriptor.ports.get(next_hop.port)
    of_port = None if port is None or port.convoys is None else port.convoys.udp_port
    address = ipaddress.ip_address(next_hop.ip)
    return next_hop.port, address, next_hop.nfi, next_hop.udp_port or of_port


def _openflow(descriptor: Descriptor, base: Path, machine: Machine) -> Iterator[Problem]:
    openflow = descriptor.openflow
    ports = descriptor.ports.values()
    steering = [name for name, port in descriptor.ports.items() if isinstance(port, Steering)]
    if openflow is None and not steering:
        return
    if not any(port.convoys is not None and port.convoys.ip is not None for port in ports):
        yield Problem(
            ("openflow",) if openflow else ("ports", steering[0]),
            "no port sends convoys, so that packets have no next hops",
            "add to a port: convoys: {ip: ADDRESS}",
        )
    if openflow is None:
        return
    for key in ("controllers", "listen"):
        for i, target in enumerate(getattr(openflow, key)):
            path = str(socket_path(target.partition(":")[2], base, machine.runtime_dir))
            size = len(os.fsencode(path))
            if is_path(target) and size > SOCKET_PATH_MAX_BYTES:
                yield Problem(
                    ("openflow", key, i),
                    f"the socket's path has {size} bytes, and {SOCKET_PATH_MAX_BYTES} is the most "
                    f"that a socket can have",
                    "use a shorter path, e.g. under /run",
                    shown(path),
                )


def _next_hop_port(descriptor: Descriptor, name: str) -> Iterator[Problem]:
    next_hop = descriptor.next_hops[name]
    at: Loc = ("next-hops", name)
    port = descriptor.ports.get(next_hop.port)
    if port is None:
        yield Problem(
            (*at, "port"),
            "no port is called so",
            known("ports", next_hop.port, descriptor.ports),
            shown(next_hop.port),
        )
        return
    if port.convoys is None or port.convoys.ip is None:
        yield Problem(
            (*at, "port"),
            "does not send convoys",
            f"add to port {next_hop.port}: convoys: {{ip: ADDRESS}}",
            shown(next_hop.port),
        )
    elif (":" in port.convoys.ip) != (":" in next_hop.ip):
        yield Problem(
            (*at, "ip"),
            f"the port's own address, {port.convoys.ip}, is of the other IP version",
            "give both of the same",
            next_hop.ip,
        )
    if next_hop.mtu > (port.mtu or (65500 if port.any_length else 1500)):
        yield Problem(
            (*at, "mtu"),
            f"more than port '{next_hop.port}' sends ({port.mtu or 1500})",
            "raise the port's mtu, or lower this one",
            str(next_hop.mtu),
        )


def _bridges(descriptor: Descriptor) -> Iterator[Problem]:
    for name, function in descriptor.functions.items():
        bridge = settings(function)
        if not isinstance(bridge, Bridge):
            continue
        at: Loc = ("functions", name, "bridge", "sides")
        for i, side in enumerate(bridge.sides or []):
            if side not in descriptor.ports:
                yield Problem(
                    (*at, i),
                    "no port is called so",
                    known("ports", side, descriptor.ports),
                    shown(side),
                )
        sides = bridge.sides or bridge_sides(descriptor, name)
        if len(sides) != 2 and any(name in chain.path for chain in descriptor.chains.values()):
            yield Problem(
                at,
                f"its chains join {len(sides)} port{'s' * (len(sides) != 1)}, a bridge joins two",
                "write sides: [PORT, PORT], or one bridge per pair of ports",
            )
        for chain_name, chain in descriptor.chains.items():
            if name in chain.path and bridge.sides and not {chain.from_, chain.to} <= set(sides):
                yield Problem(
                    ("chains", chain_name, "path", chain.path.index(name)),
                    f"bridges {' and '.join(sides)}, and this chain leads from "
                    f"'{chain.from_}' to '{chain.to}'",
                    "use a bridge with these sides",
                    shown(name),
                )


def bridge_sides(descriptor: Descriptor, function: str) -> list[str]:
    """Return the ports of the chains that lead through a bridge, in their order."""
    ports: dict[str, None] = {}
    for chain in descriptor.chains.values():
        if function in chain.path:
            ports |= dict.fromkeys(port for port in (chain.from_, chain.to) if port is not None)
    return list(ports)


def _routes(descriptor: Descriptor) -> Iterator[Problem]:
    owned: dict[str, str] = {}
    for name, function in descriptor.functions.items():
        router = settings(function)
        if not isinstance(router, Router):
            continue
        at: Loc = ("functions", name, "router", "routes")
        seen: dict[str, int] = {}
        yield from _addresses(descriptor, name, router, owned)
        if not router.listed and router.routes_file is None and not router.addresses:
            yield Problem(
                at[:-1],
                "no routes: it would drop everything",
                "write addresses:, routes: or routes-file:",
            )
        for i, route in enumerate(router.listed):
            if route.prefix in seen:
                yield Problem(
                    (*at, i),
                    f"the prefix of routes[{seen[route.prefix]}] again",
                    "keep one of them",
                    route.prefix,
                )
            seen.setdefault(route.prefix, i)
            if route.type not in (None, "unicast"):
                continue
            for next_hop in route.next_hops:
                problem = _next_hop_of_route(descriptor, router, next_hop)
                if problem is not None:
                    yield Problem((*at, i), *problem)


def _pools(descriptor: Descriptor) -> Iterator[Problem]:
    """Yield external addresses of a nat that a router has, or another nat."""
    owned = {
        ipaddress.ip_interface(own).ip: f"router '{name}' on port '{port}'"
        for name, function in descriptor.functions.items()
        if isinstance(router := settings(function), Router)
        for port, owns in router.addresses.items()
        for own in owns
    }
    taken: list[tuple[str, ipaddress.IPv4Network]] = []
    for name, function in descriptor.functions.items():
        nat = settings(function)
        if not isinstance(nat, Nat):
            continue
        at: Loc = ("functions", name, "nat")
        before = list(taken)
        named: list[tuple[Loc, str]] = [(("pool", i), one) for i, one in enumerate(nat.pool)]
        named += [(("forwards", i, "external"), to.external) for i, to in enumerate(nat.forwards)]
        for where, text in named:
            prefix = ipaddress.IPv4Network(text)
            whose = [who for address, who in owned.items() if address in prefix]
            if whose and not nat.share_address:
                fix = "take another, or write share-address: true if this gateway has one address"
                yield Problem((*at, *where), f"{whose[0]} has it already", fix, text)
            others = [other for other, theirs in before if theirs.overlaps(prefix)]
            if others:
                fix = "give each nat addresses of its own"
                yield Problem((*at, *where), f"nat '{others[0]}' has it already", fix, text)
            taken.append((name, prefix))


def _rows(
    parameters: Nsh | NshEncap | Srv6 | Srv6Encap,
) -> tuple[str, Sequence[ServicePath | NshRule | LocalSid | Srv6Rule]]:
    """Return what names ports, and under which key."""
    match parameters:
        case Nsh():
            return "paths", parameters.paths
        case Srv6():
            return "sids", parameters.sids
        case _:
            return "rules", parameters.rules


def _named_ports(descriptor: Descriptor) -> Iterator[Problem]:
    """Yield the ports that functions name and that do not exist."""
    for name, function in descriptor.functions.items():
        parameters = settings(function)
        at: Loc = ("functions", name, function_type(function))
        named: list[tuple[Loc, str]] = []
        if isinstance(parameters, Cache | Nat | Vpn):
            named = [(("outside", i), port) for i, port in enumerate(parameters.outside)]
        elif isinstance(parameters, Balancer):
            named = [
                (("backends", i, "dev"), backend.dev)
                for i, backend in enumerate(parameters.backends)
                if backend.dev is not None
            ]
        elif isinstance(parameters, Nsh | NshEncap | Srv6 | Srv6Encap):
            key, rows = _rows(parameters)
            named = [((key, i, "dev"), row.dev) for i, row in enumerate(rows) if row.dev]
        for where, port in named:
            if port not in descriptor.ports:
                fix = known("ports", port, descriptor.ports)
                yield Problem((*at, *where), "no port is called so", fix, shown(port))


def _next_hop_of_route(
    descriptor: Descriptor, router: Router, next_hop: RouteHop
) -> tuple[str, str, str] | None:
    """Return what is wrong, the fix and the value."""
    if next_hop.dev is not None and next_hop.dev not in descriptor.ports:
        return (
            "a route to nowhere: no port is called so",
            known("ports", next_hop.dev, descriptor.ports),
            f"dev {next_hop.dev}",
        )
    if next_hop.via is None:
        return None
    if next_hop.dev is None and router.connected(next_hop.via) is None:
        return (
            "a route to nowhere: the next hop is in no connected network",
            "add dev PORT, or an address of its network under addresses",
            f"via {next_hop.via}",
        )
    known_mac = next_hop.via in router.neighbours or router.neighbours_file is not None
    if not known_mac and not router.asks(next_hop):
        return (
            "a route to nowhere: the next hop's MAC address is not known",
            f'add it under neighbours, as {next_hop.via}: "02:00:00:00:00:01"',
            f"via {next_hop.via}",
        )
    return None


def _addresses(
    descriptor: Descriptor, name: str, router: Router, owned: dict[str, str]
) -> Iterator[Problem]:
    """Addresses on ports that do not exist, and those that two functions or ports claim."""
    networks: dict[str, str] = {}
    for port, owns in router.addresses.items():
        at: Loc = ("functions", name, "router", "addresses", port)
        if port not in descriptor.ports:
            yield Problem(
                at, "no port is called so", known("ports", port, descriptor.ports), shown(port)
            )
        for i, own in enumerate(owns):
            interface = ipaddress.ip_interface(own)
            other = owned.setdefault(str(interface.ip), f"'{name}' on port '{port}'")
            if other != f"'{name}' on port '{port}'" or own in owns[:i]:
                yield Problem(
                    (*at, i), f"{other} has this address already", "give each its own", own
                )
            elsewhere = networks.setdefault(str(interface.network), port)
            if elsewhere != port:
                yield Problem(
                    (*at, i),
                    f"port '{elsewhere}' is in the network {interface.network} already",
                    "give each port a network of its own",
                    own,
                )


def socket_path(path: str, base: Path, runtime: Path) -> Path:
    """Return where a socket lies: a bare file name in the runtime directory."""
    return (base if "/" in path else runtime) / path


def _resources(descriptor: Descriptor, base: Path, machine: Machine) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, port in descriptor.ports.items():
        at: Loc = ("ports", name, port.kind)
        resources = []
        if port.socket and "\0" in port.path:
            yield Problem(at, "a zero byte in a path", "remove it", shown(port.path))
        elif port.socket:
            path = str(socket_path(port.path, base, machine.runtime_dir))
            size = len(os.fsencode(path))
            if size > SOCKET_PATH_MAX_BYTES:
                yield Problem(
                    at,
                    f"the socket's path has {size} bytes, and {SOCKET_PATH_MAX_BYTES} is the most "
                    f"that a socket can have",
                    "use a shorter path, e.g. under /run",
                    shown(path),
                )
            resources = [f"{path} {getattr(port, 'id', getattr(port, 'link', ''))}".strip()]
        elif isinstance(port, AfPacket | AfXdp):
            resources = [port.interface]
        elif isinstance(port, Dpdk):
            resources = [port.devargs]
        elif isinstance(port, Pcap) and port.pcap.write:
            resources = [str(base / port.pcap.write)]
        for resource in resources:
            other = taken.setdefault(resource, name)
            if other != name:
                yield Problem(at, f"port '{other}' uses it already", "use another", shown(resource))


def _is_secret(loc: Loc) -> bool:
    return loc[-1] in ("sa-file", "key-file") or (loc[0] == "ports" and loc[-1] == "openflow")


def _files(descriptor: Descriptor, base: Path) -> Iterator[Problem]:
    files: list[tuple[Loc, str | None]] = []
    pcaps = {name: port for name, port in descriptor.ports.items() if isinstance(port, Pcap)}
    read = {os.path.realpath(base / p.pcap.read): n for n, p in pcaps.items() if p.pcap.read}
    for name, port in pcaps.items():
        reader = read.get(os.path.realpath(base / port.pcap.write)) if port.pcap.write else None
        if reader is not None:
            yield Problem(
                ("ports", name, "pcap", "write"),
                f"port '{reader}' reads it",
                "write another file",
                shown(port.pcap.write),
            )
    for name, port in descriptor.ports.items():
        if isinstance(port, Pcap):
            files.append((("ports", name, "pcap", "read"), port.pcap.read))
        elif isinstance(port, Steering):
            files.append((("ports", name, "openflow"), port.key))
    if descriptor.openflow is not None:
        files += [
            (("openflow", key.replace("_", "-")), getattr(descriptor.openflow, key))
            for key in TLS_FILES
        ]
    if descriptor.standby is not None:
        files.append((("standby", "key-file"), descriptor.standby.key_file))
    for name, function in descriptor.functions.items():
        kind = function_type(function)
        for key in FILES.get(kind, ()):
            words = (kind.replace("_", "-"), key.replace("_", "-"))
            files.append((("functions", name, *words), getattr(settings(function), key)))
    dictionaries: list[tuple[Loc, str | None]] = [
        (("ports", name, "convoys", "dictionaries", i), file)
        for name, port in descriptor.ports.items()
        if port.convoys is not None
        for i, file in enumerate(port.convoys.dictionaries or ())
    ]
    dictionaries += [
        (("next-hops", name, "dictionary"), next_hop.dictionary)
        for name, next_hop in descriptor.next_hops.items()
    ]
    for loc, file in [*files, *dictionaries]:
        if file is not None and "\0" in file:
            yield Problem(loc, "a zero byte in a path", "remove it", shown(file))
        elif file is not None and not os.access(base / file, os.R_OK):
            exists = os.path.lexists(base / file)
            yield Problem(
                loc,
                "cannot be read" if exists else "no such file",
                "check its permissions" if exists else "paths start at the descriptor's folder",
                shown(str(base / file)),
            )
        elif file is not None and (base / file).is_dir():
            yield Problem(loc, "is a directory", "name a file", shown(str(base / file)))
        elif file is not None and _is_secret(loc) and others_may_read(base / file):
            yield Problem(
                loc,
                "others may read or write it, and it has keys",
                "chmod 600 it",
                shown(str(base / file)),
            )
        elif file is not None and (loc, file) in dictionaries:
            size = (base / file).stat().st_size
            if not 1 <= size <= DICTIONARY_MAX_BYTES:
                yield Problem(
                    loc,
                    f"has {size} bytes, must be 1 to {DICTIONARY_MAX_BYTES}",
                    "make one with: convoy dictionary CAPTURE -o FILE",
                    shown(str(base / file)),
                )


def _workers(descriptor: Descriptor, machine: Machine) -> Iterator[Problem]:
    cores = descriptor.workers.cores or []
    for i, core in enumerate(cores):
        at: Loc = ("workers", "cores", i)
        if core not in machine.nodes:
            yield Problem(
                at, "no such core here", f"this process may use {machine.cores_text()}", str(core)
            )
        elif core in cores[:i]:
            yield Problem(at, "given twice", "remove one", str(core))
