# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What functions do, in parts that other languages can say: OpenFlow, nftables, Click, VPP.

read() gives a function's parts, or says why it has none. Its callers turn them into a language:
convoy/chain/flow_rules.py into Open vSwitch's, others are those of devices (convoy/dut/).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import Any

from convoy.base.model import Model
from convoy.chain import functions as described
from convoy.chain.functions import function_type, settings
from convoy.chain.nat64 import Nat64
from convoy.chain.rule_match import NUMBERS_WITH_PORTS
from convoy.chain.vpn import Vpn
from convoy.errors import InputError

Ports = tuple[int, int]  # first and last
_NUMBERS = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58, "sctp": 132, "dccp": 33, "udplite": 136}


@dataclass(frozen=True)
class Rule:
    """Packets that match all of what is given are allowed, or denied. Addresses are of IPv4."""

    allow: bool
    src: IPv4Network | None = None
    dst: IPv4Network | None = None
    proto: int | None = None
    sport: Ports | None = None
    dport: Ports | None = None


@dataclass(frozen=True)
class Firewall:
    """The first rule that matches decides; then the default. What is not IP passes."""

    rules: tuple[Rule, ...]
    default_allow: bool
    stateful: bool = False  # what comes from the left, and the answers to it


@dataclass(frozen=True)
class Nat:
    """Source addresses of what leaves by the right port are translated, and answers back."""

    inside: IPv4Network
    pool: IPv4Network


@dataclass(frozen=True)
class Route:
    """Packets to a prefix leave by a port, to the next hop's address."""

    prefix: IPv4Network
    via: IPv4Address
    mac: str
    dev: str  # the port


@dataclass(frozen=True)
class Router:
    """Longest prefix, TTL less one, both MAC addresses rewritten; no route: dropped."""

    routes: tuple[Route, ...]


@dataclass(frozen=True)
class Layer2:
    """Forwards frames: with other addresses (None: as it was), or swapped."""

    src: str | None = None
    dst: str | None = None
    swap: bool = False
    bridge: bool = False  # learning, like every switch; frames stay as they are
    src_of_port: bool = False  # the source is the address of the port that it leaves by


@dataclass(frozen=True)
class Balancer:
    """Frames to a service go to the MAC address of a backend, those of a flow always to the same
    one. Which that is, each device decides for itself. Others stay as they are.
    """

    services: tuple[IPv4Address, ...]
    macs: tuple[str, ...]


@dataclass(frozen=True)
class Policer:
    """IP packets pass at a rate, and a burst of them at once; what is more is dropped."""

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Translator:
    """IPv4 becomes IPv6, and IPv6 IPv4 (RFC 7915). MAC addresses stay."""

    rows: tuple[tuple[IPv4Network, IPv6Network], ...]  # addresses here and there, bit by bit


@dataclass(frozen=True)
class Tunnel:
    """Packets from one side are sealed by ESP with AES-GCM, those from the other one opened. MAC
    addresses stay.
    """

    opens: bool  # what comes from the left
    match: IPv4Network  # destinations, or of what was opened sources
    associations: str = ""  # as in an sa-file


Meaning = Firewall | Router | Layer2 | Nat | Balancer | Policer | Translator | Tunnel


def read(function: Model) -> Meaning:
    """Return what a function of a descriptor does.

    Raises InputError for what other languages have no words for: the text begins with the type.
    """
    name = function_type(function)
    if name not in MEANINGS:
        raise InputError(
            f"{name.replace('_', '-')}: only our own node knows this function; others have "
            f"{', '.join(MEANINGS)}"
        )
    return MEANINGS[name][1](settings(function))


def types_of(meanings: Collection[type[Meaning]]) -> frozenset[str]:
    """Return the types of function that a language with words for these meanings has."""
    return frozenset(name for name, (meaning, _) in MEANINGS.items() if meaning in meanings)


def _network(text: str | None) -> IPv4Network | None:
    if text is None:
        return None
    try:
        return IPv4Network(text)
    except ValueError:
        raise InputError(f"{text}: others than our node do IPv4; give an IPv4 prefix") from None


def _ports(value: int | str | None) -> Ports | None:
    if value is None:
        return None
    low, _, high = str(value).partition("-")
    return int(low), int(high or low)


def _firewall(config: described.Firewall) -> Firewall:
    if config.rules_file is not None or config.non_ip != "pass":
        raise InputError(
            "firewall: others than our node have its rules alone; leave out rules-file and non-ip"
        )
    rules = []
    for rule in config.rules:
        match = rule.allow if isinstance(rule, described.Allow) else rule.deny
        if match.asks_fields():
            raise InputError(
                "firewall: others than our node have rules about addresses, protocols and ports; "
                "leave out the other keys"
            )
        proto = match.proto if not isinstance(match.proto, str) else _NUMBERS[match.proto]
        sport, dport = _ports(match.sport), _ports(match.dport)
        if (sport or dport) and proto not in NUMBERS_WITH_PORTS:
            raise InputError(
                "firewall: a rule with ports needs a protocol, for others than our node"
            )
        allow = isinstance(rule, described.Allow)
        src, dst = _network(match.src), _network(match.dst)
        rules.append(Rule(allow, src, dst, proto, sport, dport))
    return Firewall(tuple(rules), config.default == "allow", config.stateful)


def _nat(config: described.Nat) -> Nat:
    inside, pool = _network(config.inside[0]), _network(config.pool[0])
    one = len(config.inside) == len(config.pool) == 1
    if not one or inside is None or pool is None or config.forwards:
        raise InputError("nat: others than our node have one prefix inside and one outside")
    return Nat(inside, pool)


def _router(config: described.Router) -> Router:
    if config.routes_file is not None or config.neighbours_file is not None:
        raise InputError(
            "router: others than our node have the routes of the descriptor; leave out routes-file "
            "and neighbours-file"
        )
    if isinstance(config.routes, described.KernelRoutes):
        raise InputError("router: others than our node have its own routes; leave out kernel")
    routes = []
    for route in config.listed:
        prefix = _network(route.prefix)
        if prefix is None or route.via is None or route.dev is None:
            raise InputError(f"router: {route.prefix}: write PREFIX via ADDRESS dev PORT")
        mac = config.neighbours.get(route.via)
        if mac is None:
            raise InputError(f"router: {route.via}: give its MAC address under neighbours")
        routes.append(Route(prefix, IPv4Address(route.via), mac, route.dev))
    return Router(tuple(routes))


def _layer2(config: described.L2fwd) -> Layer2:
    if config.mode == "rewrite":
        return Layer2(config.src, config.dst, src_of_port=config.src is None)
    return Layer2(swap=True)


def _bridge(config: described.Bridge) -> Layer2:
    return Layer2(bridge=True)


def _balancer(config: described.Balancer) -> Balancer:
    macs = [backend.mac for backend in config.backends if backend.mac is not None]
    given = set().union(*(backend.model_fields_set for backend in config.backends))
    services = [service.address for service in config.services]
    if config.mode != "dsr" or config.health is not None or given != {"address", "mac"}:
        raise InputError(
            "balancer: others than our node spread over MAC addresses, equally; give mode dsr and "
            "backends of address and mac alone"
        )
    if any(service.proto != "any" or ":" in service.address for service in config.services):
        raise InputError("balancer: others than our node have services by IPv4 address alone")
    return Balancer(tuple(map(IPv4Address, services)), tuple(macs))


def _policer(config: described.Policer) -> Policer:
    own = config.meter != "srtcm" or config.per != "all" or config.colour_aware
    actions = (config.green, config.yellow, config.red)
    if own or config.cir_bps is None or actions != ("pass", "drop", "drop"):
        raise InputError(
            "policer: others than our node have one rate for all; give cir-bps and yellow: drop"
        )
    burst = config.cbs_bytes or max(config.cir_bps // (8 * 20), 15_000)  # as policer_config() has
    return Policer(config.cir_bps, burst)


def _translator(config: Nat64) -> Translator:
    rows = [(IPv4Network(row.ipv4), IPv6Network(row.ipv6)) for row in config.eam]
    if config.hosts and config.prefix is not None and config.prefix.endswith("/96"):
        behind = int(IPv6Network(config.prefix).network_address)
        for four in map(IPv4Network, config.hosts):
            address = behind + int(four.network_address)
            rows.append((four, IPv6Network((address, 96 + four.prefixlen))))
    equal = all(four.num_addresses == six.num_addresses for four, six in rows)
    if not rows or not equal or config.clients is not None or config.ttl != "decrement":
        raise InputError(
            "nat64: others than our node have hosts behind a prefix of 96 bits, and rows of eam "
            "with as many addresses on both sides; leave out clients and ttl"
        )
    return Translator(tuple(rows))


def _tunnel(config: Vpn) -> Tunnel:
    match = config.policies[0].match if len(config.policies) == 1 else None
    if match is None:
        raise InputError("vpn: others than our node have one policy")
    opens = config.outside == ["left"]
    network = _network(match.src if opens else match.dst)
    if network is None:
        raise InputError(
            "vpn: others than our node have a policy about one prefix; give dst, or src of what "
            "is opened"
        )
    return Tunnel(opens, network)


# What a type is in other languages; one that is not here is our node's alone. Each language has a
# table of the meanings that it has words for (flow_rules.py; click.py ... of devices).
MEANINGS: dict[str, tuple[type[Meaning], Callable[[Any], Meaning]]] = {
    "firewall": (Firewall, _firewall),
    "router": (Router, _router),
    "l2fwd": (Layer2, _layer2),
    "bridge": (Layer2, _bridge),
    "nat": (Nat, _nat),
    "balancer": (Balancer, _balancer),
    "policer": (Policer, _policer),
    "nat64": (Translator, _translator),
    "vpn": (Tunnel, _tunnel),
}
