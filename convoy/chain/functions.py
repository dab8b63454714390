# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Network functions of a descriptor: one model per type, told apart by the key that names it.

Types and their parameters are those of nf/ (parameters.py is made from it). A type that has more
than single values, or rules between them, has a model of its own here.
"""

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)

from convoy.base.model import Model, Name, one_of
from convoy.chain.cache import Cache
from convoy.chain.ids import Ids
from convoy.chain.model import Address, Mac, Parameters, Prefix, prefix
from convoy.chain.nat64 import Nat64
from convoy.chain.nsh import Nsh, NshEncap
from convoy.chain.parameters import (
    MORE,
    PARAMETERS,
    BalancerParameters,
    BridgeParameters,
    ClassifierParameters,
    FirewallParameters,
    L2fwdParameters,
    NatParameters,
    PolicerParameters,
    RouterParameters,
)
from convoy.chain.rule_match import Match, port_range
from convoy.chain.srv6 import Srv6, Srv6Encap
from convoy.chain.vpn import Vpn


class Allow(Model):
    """A rule that lets packets pass."""

    allow: Match


class Deny(Model):
    """A rule that drops packets."""

    deny: Match


class Firewall(FirewallParameters):
    """With its rules."""

    rules: list[one_of("actions", {"allow": Allow, "deny": Deny})] = Field(  # type: ignore[valid-type]
        [], description=MORE["firewall"]["rules"]
    )

    @model_validator(mode="after")
    def _fragments_of_flows(self) -> "Firewall":
        for i, rule in enumerate(self.rules):
            match = rule.allow if isinstance(rule, Allow) else rule.deny
            if self.stateful and match.fragment == "later":
                raise ValueError(
                    f"rule {i + 1}: fragment: later: of a stateful firewall they go with their "
                    "flow; leave the rule out"
                )
        return self

    def as_plan(self) -> dict[str, Any]:
        """Return the rules with their actions among the keys."""
        result = super().as_plan()
        result["rules"] = [
            {"action": action, **match}
            for rule in result["rules"]
            for action, match in rule.items()
        ]
        if self.rules_file is None:
            del result["rules_file_action"]
        return result


class RouteHop(Model):
    """One of a route's next hops."""

    via: Address | None = Field(None, description="next hop; absent: the prefix is on the link")
    dev: Name | None = Field(
        None, description="port; absent: the one whose addresses' networks have the next hop"
    )


class Route(RouteHop):
    """Where packets to a prefix go."""

    prefix: Prefix = Field(description="destination; `default` is written in text form only")
    nexthops: list[RouteHop] | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="several next hops, one for each flow; instead of via and dev",
    )
    type: Literal["unicast", "blackhole", "unreachable", "prohibit"] | None = Field(
        None, description="others than unicast lead nowhere; their senders are told so, or not"
    )

    @model_validator(mode="after")
    def _family(self) -> "Route":
        leads = self.type in (None, "unicast")
        if not leads and (self.via or self.dev or self.nexthops):
            raise ValueError(f"leads nowhere ({self.type}); remove via, dev and nexthops")
        if self.nexthops and (self.via or self.dev):
            raise ValueError("has nexthops; remove via and dev beside them")
        for next_hop in self.next_hops if leads else ():
            if next_hop.via is None and next_hop.dev is None:
                raise ValueError(f"names no port to leave by; {_FORM}")
            if next_hop.via and (":" in next_hop.via) != (":" in self.prefix):
                raise ValueError("the prefix and via must both be IPv4 or both be IPv6")
        return self

    @property
    def next_hops(self) -> Sequence[RouteHop]:
        """Its next hops."""
        return self.nexthops or [self]


_FORM = "write: PREFIX [via ADDRESS] [dev PORT]"
_SKIPPED = {"proto", "metric", "scope", "src", "pref", "mtu", "advmss", "table", "weight"}
_NOWHERE = ("blackhole", "unreachable", "prohibit")


def _hop(words: list[str]) -> dict[str, str]:
    """Take the words of one next hop."""
    next_hop: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word in ("onlink", "linkdown", "static"):
            continue
        argument = next(rest, None)
        if argument is None:
            raise ValueError(f"'{word}' needs a value after it; {_FORM}")
        if word in ("via", "dev"):
            if word in next_hop:
                raise ValueError(f"'{word}' twice; {_FORM}")
            next_hop[word] = argument
        elif word not in _SKIPPED:
            raise ValueError(f"unknown word '{word}'; {_FORM}")
    if "via" in next_hop:
        try:
            ipaddress.ip_address(next_hop["via"])
        except ValueError:
            raise ValueError(f"'{next_hop['via']}' is not an address; {_FORM}") from None
    return next_hop


def _route(value: Any) -> Any:
    """Take a route as `ip route` prints it: 10.0.0.0/8 via 192.0.2.1 dev right."""
    if not isinstance(value, str):
        return value
    words = value.split()
    if not words:
        raise ValueError(f"an empty route; {_FORM}")
    route: dict[str, Any] = {}
    if words[0] in _NOWHERE:
        route["type"] = words.pop(0)
    if not words:
        raise ValueError(f"no prefix; write: {route['type']} PREFIX")
    parts: list[list[str]] = [[]]
    for word in words[1:]:
        if word == "nexthop":
            parts.append([])
        else:
            parts[-1].append(word)
    route |= _hop(parts[0])
    if len(parts) > 1:
        route["nexthops"] = [_hop(part) for part in parts[1:]]
    elif "dev" not in route and "via" not in route and "type" not in route:
        raise ValueError(f"names no port to leave by; {_FORM}")
    if "type" in route:
        route.pop("dev", None)  # `ip route` prints a device that has no meaning
    first = route["nexthops"][0] if "nexthops" in route else route
    default = "::/0" if ":" in first.get("via", "") else "0.0.0.0/0"
    route["prefix"] = default if words[0] == "default" else prefix(words[0])
    return route


AnyRoute = Annotated[Route, BeforeValidator(_route, json_schema_input_type=str | Route)]


def _own(text: str) -> str:
    """Check an address with its network's length."""
    try:
        if "/" not in text or "%" in text:
            raise ValueError
        own = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError(
            "must be an address with its network's length; write one like 192.0.2.1/24 or "
            "2001:db8::1/64"
        ) from None
    if own.version == 6 and own.ip.is_link_local:
        raise ValueError("is link-local; remove it: ports give themselves such addresses")
    if (
        own.ip.is_multicast
        or own.ip.is_unspecified
        or own.ip.is_loopback
        or (own.version == 4 and int(own.ip) >> 28 == 15)
    ):
        raise ValueError("is not the address of a router")
    ends = {own.network.network_address, own.network.broadcast_address}
    if own.version == 4 and own.network.prefixlen <= 30 and own.ip in ends:
        raise ValueError(f"is not a host's in {own.network}; write another of this network")
    return str(own)


OwnAddress = Annotated[
    str, AfterValidator(_own), Field(examples=["192.0.2.1/24", "2001:db8::1/64"])
]


class KernelRoutes(Model):
    """Where Linux has the routes."""

    kernel: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="network namespace: a name of `ip netns`, or the path of one",
        examples=["router", "/proc/1/ns/net"],
    )


def _source(value: Any) -> str:
    return "kernel" if isinstance(value, dict | KernelRoutes) else "list"


RouteSource = Annotated[
    Annotated[list[AnyRoute], Tag("list")] | Annotated[KernelRoutes, Tag("kernel")],
    Discriminator(_source),
]


class Router(RouterParameters):
    """With its addresses, routes and neighbours."""

    addresses: dict[Name, list[OwnAddress]] = Field({}, description=MORE["router"]["addresses"])
    routes: RouteSource = Field([], description=MORE["router"]["routes"])
    neighbours: dict[Address, Mac] = Field({}, description=MORE["router"]["neighbours"])

    @model_validator(mode="after")
    def _has_one_table(self) -> "Router":
        if isinstance(self.routes, KernelRoutes):
            if self.routes_file is not None:
                raise ValueError("routes-file: the kernel has the routes; add these there")
            if not self.addresses:
                raise ValueError("routes: kernel needs addresses, for its ports' interfaces")
        return self

    @property
    def listed(self) -> list[Route]:
        """The routes that stand here."""
        return [] if isinstance(self.routes, KernelRoutes) else self.routes

    def as_plan(self) -> dict[str, Any]:
        """Return the neighbours as a list."""
        return super().as_plan() | {
            "neighbours": [{"address": ip, "mac": mac} for ip, mac in self.neighbours.items()]
        }

    def asks(self, next_hop: RouteHop) -> bool:
        """Return whether it can ask for a next hop's MAC address: it has an address beside it."""
        if next_hop.via is None:
            return False
        if next_hop.dev is not None and ipaddress.ip_address(next_hop.via).is_link_local:
            return any(":" in own for own in self.addresses.get(next_hop.dev, ()))
        port = self.connected(next_hop.via, next_hop.dev)
        return port is not None

    def connected(self, via: str, dev: str | None = None) -> str | None:
        """Return the port whose addresses' networks have a next hop, or None."""
        address = ipaddress.ip_address(via)
        best = max(
            (
                (ipaddress.ip_interface(own).network.prefixlen, port)
                for port, owns in self.addresses.items()
                for own in owns
                if dev in (None, port)
                if address in ipaddress.ip_interface(own).network
            ),
            default=None,
        )
        return best[1] if best else None


class Bridge(BridgeParameters):
    """With its ports."""

    sides: list[Name] | None = Field(
        None, min_length=2, max_length=2, description=MORE["bridge"]["sides"]
    )

    @model_validator(mode="after")
    def _joins_two(self) -> "Bridge":
        if self.sides and self.sides[0] == self.sides[1]:
            raise ValueError(f"both sides are '{self.sides[0]}'; a bridge joins two ports")
        return self


class ClassifierRule(Model):
    """What is done with the packets that a rule matches."""

    match: Match = Field(Match(), description="default: everything")
    dscp: int | None = Field(None, ge=0, le=63, description="written to IPv4 and IPv6")
    vlan: int | None = Field(
        None, ge=0, le=4095, description="id of the outermost tag; a packet without one gets one"
    )
    output: Name | None = Field(None, description="where they go; default: the next function")


class Classifier(ClassifierParameters):
    """With its rules."""

    rules: list[ClassifierRule] = Field([], description=MORE["classifier"]["rules"])

    @model_validator(mode="after")
    def _outputs_exist(self) -> "Classifier":
        for i, output in enumerate([*(rule.output for rule in self.rules), self.rest]):
            if output is not None and output not in self.outputs:
                where = "rest" if i == len(self.rules) else f"rule {i + 1}"
                raise ValueError(f"{where}: '{output}' is not among the outputs; add it there")
        return self


class L2fwd(L2fwdParameters):
    """Without what was its mode bridge."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_bridge(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("mode") == "bridge":
            raise ValueError(
                "the bridge is a function of its own; write {bridge: {}}, with the other keys of "
                "this one"
            )
        return value

    @model_validator(mode="after")
    def _fits(self) -> "L2fwd":
        for name in ("src", "dst"):
            if self.mode != "rewrite" and getattr(self, name) is not None:
                raise ValueError(f"{name} is for mode rewrite, and this is mode {self.mode}")
        return self


class Service(Model):
    """An address that clients use."""

    address: Address = Field(description="of the service")
    proto: Literal["any", "tcp", "udp", "sctp"] = Field("any", description="protocol")
    port: int | None = Field(None, ge=1, le=65535, description="default: all")

    @model_validator(mode="after")
    def _has_ports(self) -> "Service":
        if self.port is not None and self.proto == "any":
            raise ValueError("a port needs a protocol; add proto: tcp, udp or sctp")
        return self


class Backend(Model):
    """Who serves."""

    address: Address = Field(description="what it is known by; mode nat: where packets go")
    mac: Mac | None = Field(None, description="where packets go; mode dsr needs it")
    dev: Name | None = Field(None, description="port that they leave by; default: the chain's")
    port: int | None = Field(None, ge=1, le=65535, description="nat: the new destination port")
    weight: int = Field(1, ge=0, le=1000, description="its part of the flows")
    drain: bool = Field(False, description="it gets no new flows")


class Health(Model):
    """Asks backends whether they are there."""

    by: Literal["link", "icmp", "tcp"] = Field(
        description="ARP or neighbour discovery, echo requests, or TCP connections"
    )
    port: int | None = Field(None, ge=1, le=65535, description="tcp; default: the backend's")
    interval_ms: int = Field(1000, ge=50, le=3600000, description="between two probes, ms")
    rise: int = Field(2, ge=1, le=100, description="answers in a row until it is up")
    fall: int = Field(3, ge=1, le=100, description="probes in a row without, until it is down")

    def check(self, backend: Backend) -> None:
        """Raise ValueError if a backend cannot be asked."""
        if backend.dev is None and (self.by == "link" or backend.mac is not None):
            raise ValueError(f"backend {backend.address} has no dev; health needs the port to it")
        if self.by == "tcp" and self.port is None and backend.port is None:
            raise ValueError("health has no port; tcp needs one")


class Balancer(BalancerParameters):
    """With its services, backends, and where tunnels begin."""

    source: Address | None = Field(None, description=MORE["balancer"]["source"])
    source_ipv6: Address | None = Field(None, description=MORE["balancer"]["source_ipv6"])
    health: Health | None = Field(None, description=MORE["balancer"]["health"])
    services: list[Service] = Field(
        min_length=1, max_length=256, description=MORE["balancer"]["services"]
    )
    backends: list[Backend] = Field(
        min_length=1, max_length=4096, description=MORE["balancer"]["backends"]
    )

    @model_validator(mode="after")
    def _agree(self) -> "Balancer":
        services = {service.address for service in self.services}
        tunnels = self.mode in ("ipip", "gue")
        if not tunnels and self.mtu is not None:
            raise ValueError("mtu is for modes ipip and gue; remove it")
        for name, version in (("source", 4), ("source_ipv6", 6)):
            source = getattr(self, name)
            if source is not None and ipaddress.ip_address(source).version != version:
                raise ValueError(f"{name.replace('_', '-')} must be an IPv{version} address")
        known: set[str] = set()
        for backend in self.backends:
            if backend.address in known:
                raise ValueError(f"backend {backend.address} is there twice; remove one")
            if backend.address in services:
                raise ValueError(
                    f"{backend.address} is a service and a backend; give the service its own"
                )
            if self.mode == "dsr" and backend.mac is None:
                raise ValueError(f"backend {backend.address} has no mac; mode dsr needs it")
            source = "source-ipv6" if ":" in backend.address else "source"
            needs = tunnels or self.health is not None
            if needs and getattr(self, source.replace("-", "_")) is None:
                raise ValueError(
                    f"{source} is missing, and there is backend {backend.address}; "
                    "add an address of the node that tunnels and probes come from"
                )
            if self.health is not None:
                self.health.check(backend)
            if self.mode != "nat" and backend.port is not None:
                raise ValueError(f"backend {backend.address} has a port; it is for mode nat")
            known.add(backend.address)
        if not any(backend.weight and not backend.drain for backend in self.backends):
            raise ValueError("each backend has weight 0 or drain; one must take new flows")
        return self


class Mark(Model):
    """Packets go on with another DSCP."""

    dscp: int = Field(ge=0, le=63, description="that packets get")


class Divert(Model):
    """Packets go to the chain at an output."""

    output: Name = Field(description="one of outputs")


def _action(value: Any) -> Any:
    if isinstance(value, str) and value not in ("pass", "drop"):
        raise ValueError("must be pass, drop, {dscp: N} or {output: NAME}")
    return value


def _action_kind(value: Any) -> str:
    if isinstance(value, str):
        return "word"
    is_divert = "output" in value if isinstance(value, dict) else isinstance(value, Divert)
    return "divert" if is_divert else "mark"


Action = Annotated[
    Annotated[Mark, Tag("mark")]
    | Annotated[Divert, Tag("divert")]
    | Annotated[Literal["pass", "drop"], Tag("word")],
    Discriminator(_action_kind),
    BeforeValidator(_action),
]


class Policer(PolicerParameters):
    """With what becomes of each colour."""

    green: Action = Field("pass", description=MORE["policer"]["green"])
    yellow: Action = Field("pass", description=MORE["policer"]["yellow"])
    red: Action = Field("drop", description=MORE["policer"]["red"])

    @model_validator(mode="after")
    def _has_a_rate(self) -> "Policer":
        if self.cir_bps is None and self.cir_pps is None:
            raise ValueError("has no rate; add cir-bps or cir-pps")
        for action in (self.green, self.yellow, self.red):
            if isinstance(action, Divert) and action.output not in self.outputs:
                raise ValueError(f"'{action.output}' is not among the outputs; add it there")
            if isinstance(action, Divert) and self.per == "flow":
                raise ValueError(f"output '{action.output}' is not possible per flow; drop or mark")
        return self


def _external_ports(value: Any) -> Any:
    checked = port_range(value)
    if str(checked).partition("-")[0] == "0":
        raise ValueError("must begin at 1 or higher")
    return checked


ExternalPorts = Annotated[
    int | str, BeforeValidator(_external_ports), Field(examples=[80, "8000-8010"])
]


def _ipv4_prefix(text: str) -> str:
    if ":" in text:
        raise ValueError("must be IPv4; NAT44 does not translate IPv6")
    return text


Ipv4Prefix = Annotated[Prefix, AfterValidator(_ipv4_prefix)]
Ipv4Address = Annotated[Address, AfterValidator(_ipv4_prefix)]


class Forward(Model):
    """Packets from outside that go to one internal host."""

    proto: Literal["tcp", "udp", "icmp"] = Field(description="icmp: requests, such as pings")
    external: Ipv4Address = Field(description="external address")
    port: ExternalPorts | None = Field(None, description="external port or range; not of icmp")
    to: Ipv4Address = Field(description="internal address")
    to_port: int | None = Field(
        None, ge=1, le=65535, description="internal port, the first of a range; default: as outside"
    )

    @model_validator(mode="after")
    def _has_ports(self) -> "Forward":
        if self.proto == "icmp" and (self.port is not None or self.to_port is not None):
            raise ValueError("icmp has no ports; leave out port and to-port")
        if self.proto != "icmp" and self.port is None:
            raise ValueError("port is missing; write the external port")
        return self


class Nat(NatParameters):
    """With its addresses and forwards."""

    outside: list[Name] = Field(min_length=1, description=MORE["nat"]["outside"])
    pool: list[Ipv4Prefix] = Field(min_length=1, description=MORE["nat"]["pool"])
    inside: list[Ipv4Prefix] = Field(min_length=1, description=MORE["nat"]["inside"])
    ports: ExternalPorts = Field("1024-65535", description=MORE["nat"]["ports"])
    forwards: list[Forward] = Field([], description=MORE["nat"]["forwards"])


_OWN: dict[str, type[Parameters]] = {
    "balancer": Balancer,
    "cache": Cache,
    "classifier": Classifier,
    "bridge": Bridge,
    "firewall": Firewall,
    "ids": Ids,
    "l2fwd": L2fwd,
    "nat": Nat,
    "nat64": Nat64,
    "nsh": Nsh,
    "nsh_encap": NshEncap,
    "policer": Policer,
    "router": Router,
    "srv6": Srv6,
    "srv6_encap": Srv6Encap,
    "vpn": Vpn,
}


Place = Literal["inline", "process", "shared", "switch", "container", "vm"]


class Placed(Model):
    """Where a function runs; docs/hybrid.md says what that means."""

    place: Place = Field(
        "inline",
        description="inline: in the node; process: in one of its own; shared: as process, with the "
        "node's buffers: packets pass without a copy; switch: as flow rules in Open vSwitch; "
        "container, vm: as process, in a container or a virtual machine",
    )


def _function(name: str) -> type[Placed]:
    """Return the model of {name: {parameters}, place: …}."""
    inner = _OWN.get(name, PARAMETERS[name])
    fields: Any = {name: (inner, ...)}
    made = create_model(
        inner.__name__.removesuffix("Parameters") + "Function", __base__=Placed, **fields
    )
    made.__doc__ = PARAMETERS[name].__doc__
    return made


# By the key of a descriptor: nf/ and plans have _ where descriptors have -.
FUNCTIONS: dict[str, type[Model]] = {
    name.replace("_", "-"): _function(name) for name in sorted(PARAMETERS)
}
AnyFunction: Any = one_of("types of function", FUNCTIONS)


def function_type(function: Model) -> str:
    """Return the name of a function's type as nf/ has it."""
    return next(name for name in type(function).model_fields if name != "place")


def place_of(function: Model) -> Place:
    """Return where a function runs."""
    assert isinstance(function, Placed)
    return function.place


def outputs_of(function: Model) -> dict[str, str]:
    """Return the chains that a function's outputs lead to, by output."""
    return getattr(settings(function), "outputs", {})


def settings(function: Model) -> Parameters:
    """Return what stands under that key."""
    inner: Parameters = getattr(function, function_type(function))
    return inner


def is_stateful(function: Model) -> bool:
    """Return whether it remembers what passed, so that packets and their answers must meet."""
    inner = settings(function)
    match inner:
        case Firewall():
            return inner.stateful
        case Ids():
            return inner.stateful
        case Balancer():
            return inner.mode == "nat"
        case Nat64():
            return inner.clients is not None
        case _:
            return isinstance(inner, Cache | Nat)


def remembers(function: Model) -> bool:
    """Return whether another worker would do otherwise with its packets than the one before."""
    return is_stateful(function) or isinstance(settings(function), Bridge | Policer | Vpn)


def rewrites(function: Model) -> bool:
    """Return whether it changes addresses or ports of flows."""
    inner = settings(function)
    return isinstance(inner, Nat) or (isinstance(inner, Balancer) and inner.mode == "nat")


def is_translator(function: Model) -> bool:
    """Return whether answers that come in are of the other IP version than what was sent."""
    return isinstance(settings(function), Nat64)
