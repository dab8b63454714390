# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Network functions of a descriptor: one model per type, told apart by the key that names it."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from convoy.chain.model import Address, Mac, Model, Name, Prefix, one_of, prefix

WITH_PORTS = ("tcp", "udp", "sctp", "dccp", "udplite")
PROTOCOLS = (*WITH_PORTS, "icmp", "icmpv6")
NUMBERS_WITH_PORTS = (6, 17, 33, 132, 136)


def _protocol(value: Any) -> Any:
    if isinstance(value, str) and value not in PROTOCOLS:
        raise ValueError(f"must be {', '.join(PROTOCOLS)} or a number from 0 to 255")
    if isinstance(value, int) and not 0 <= value <= 255:
        raise ValueError("must be from 0 to 255")
    return value


def _port_range(value: Any) -> Any:
    """80, "80", "1000-2000" -> 80, 80, "1000-2000"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('must be a port or a range; write 80 or "1000-2000"')
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?", value)
        if not match:
            raise ValueError('must be a port or a range; write 80 or "1000-2000"')
        low, high = int(match[1]), int(match[2] or match[1])
    else:
        low = high = value
    if not 0 <= low <= 65535 or not 0 <= high <= 65535:
        raise ValueError("must be from 0 to 65535")
    if low > high:
        raise ValueError(f"the range runs backwards; write {high}-{low}")
    return low if low == high else f"{low}-{high}"


PortRange = Annotated[int | str, BeforeValidator(_port_range), Field(examples=[53, "1000-2000"])]


class Match(Model):
    """The packets that a rule is about. What is not given matches everything."""

    src: Prefix | None = Field(None, description="source address or prefix")
    dst: Prefix | None = Field(None, description="destination address or prefix")
    proto: Annotated[int | str, BeforeValidator(_protocol)] | None = Field(
        None, description=f"{', '.join(PROTOCOLS)}, or a number"
    )
    sport: PortRange | None = Field(None, description="source port or range")
    dport: PortRange | None = Field(None, description="destination port or range")
    name: str | None = Field(None, max_length=63, description="shown with the rule's hit counter")

    @model_validator(mode="after")
    def _agree(self) -> "Match":
        if self.src and self.dst and (":" in self.src) != (":" in self.dst):
            raise ValueError("src and dst must both be IPv4 or both be IPv6")
        has_ports = self.proto is None or self.proto in (*WITH_PORTS, *NUMBERS_WITH_PORTS)
        if not has_ports and (self.sport is not None or self.dport is not None):
            raise ValueError(
                f"sport and dport need a protocol with ports; use one of {', '.join(WITH_PORTS)}"
            )
        return self


class Allow(Model):
    """A rule that lets packets pass."""

    allow: Match


class Deny(Model):
    """A rule that drops packets."""

    deny: Match


class Firewall(Model):
    """Allows or denies packets by ordered 5-tuple rules; the first match decides."""

    default: Literal["allow", "deny"] = Field("deny", description="when no rule matches")
    rules: list[one_of("actions", {"allow": Allow, "deny": Deny})] = Field(  # type: ignore[valid-type]
        [], description="rules in order"
    )
    rules_file: str | None = Field(
        None, min_length=1, description="ClassBench filter set, judged after the rules"
    )
    rules_file_action: Literal["allow", "deny"] = Field("allow", description="what its rules do")
    non_ip: Literal["pass", "drop"] = Field("pass", description="what is neither IPv4 nor IPv6")


class Route(Model):
    """Where packets to a prefix go."""

    prefix: Prefix = Field(description="destination; `default` is written in text form only")
    via: Address | None = Field(None, description="next hop; absent: the prefix is on the link")
    dev: Name = Field(description="port that they leave by")

    @model_validator(mode="after")
    def _family(self) -> "Route":
        if self.via and (":" in self.via) != (":" in self.prefix):
            raise ValueError("the prefix and via must both be IPv4 or both be IPv6")
        return self


_SKIPPED = {"proto", "metric", "scope", "src", "pref", "mtu", "advmss", "table", "weight"}


def _route(value: Any) -> Any:
    """Take a route as `ip route` prints it: 10.0.0.0/8 via 192.0.2.1 dev right."""
    if not isinstance(value, str):
        return value
    words = value.split()
    form = "write: PREFIX [via ADDRESS] dev PORT"
    if not words:
        raise ValueError(f"an empty route; {form}")
    route: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        if word in ("onlink", "linkdown", "static"):
            continue
        argument = next(rest, None)
        if argument is None:
            raise ValueError(f"'{word}' needs a value after it; {form}")
        if word in ("via", "dev"):
            if word in route:
                raise ValueError(f"'{word}' twice; {form}")
            route[word] = argument
        elif word not in _SKIPPED:
            raise ValueError(f"unknown word '{word}'; {form}")
    if "dev" not in route:
        raise ValueError(f"names no port to leave by; {form}")
    default = "::/0" if ":" in route.get("via", "") else "0.0.0.0/0"
    route["prefix"] = default if words[0] == "default" else prefix(words[0])
    if "via" in route:
        try:
            ipaddress.ip_address(route["via"])
        except ValueError:
            raise ValueError(f"'{route['via']}' is not an address; {form}") from None
    return route


AnyRoute = Annotated[Route, BeforeValidator(_route, json_schema_input_type=str | Route)]


class Router(Model):
    """Forwards IPv4 and IPv6 by longest prefix; a route names the port that packets leave by."""

    routes: list[AnyRoute] = Field([], description="PREFIX [via ADDRESS] dev PORT, or mappings")
    routes_file: str | None = Field(
        None, min_length=1, description="file of such lines, as `ip route` prints them"
    )
    neighbours: dict[Address, Mac] = Field({}, description="MAC address of each next hop")
    neighbours_file: str | None = Field(None, min_length=1, description="file of ADDRESS MAC lines")


class L2fwd(Model):
    """Layer 2: rewrites MAC addresses, swaps them, or bridges between two ports."""

    mode: Literal["rewrite", "swap", "bridge"] = Field(
        "rewrite", description="set MACs; exchange them; or learn them and bridge"
    )
    src: Mac | None = Field(None, description="rewrite: new source; default: the out port's")
    dst: Mac | None = Field(None, description="rewrite: new destination; default: unchanged")
    sides: list[Name] | None = Field(
        None, min_length=2, max_length=2, description="bridge: its ports; default: the chain's"
    )
    entries: int | None = Field(None, ge=1, le=1 << 20, description="bridge: MAC table (4096)")
    age_s: int | None = Field(None, ge=1, le=1_000_000, description="bridge: forget after (300)")

    @model_validator(mode="after")
    def _fits(self) -> "L2fwd":
        belongs = {"rewrite": ("src", "dst"), "bridge": ("sides", "entries", "age_s")}
        for mode, names in belongs.items():
            for name in names:
                if mode != self.mode and getattr(self, name) is not None:
                    raise ValueError(
                        f"{name.replace('_', '-')} is for mode {mode}, and this is mode {self.mode}"
                    )
        if self.sides and self.sides[0] == self.sides[1]:
            raise ValueError(f"both sides are '{self.sides[0]}'; a bridge joins two ports")
        return self


class FirewallFunction(Model):
    """A stateless packet filter."""

    firewall: Firewall


class RouterFunction(Model):
    """A router."""

    router: Router


class L2fwdFunction(Model):
    """A layer 2 forwarder."""

    l2fwd: L2fwd


FUNCTIONS: dict[str, type[Model]] = {
    "firewall": FirewallFunction,
    "router": RouterFunction,
    "l2fwd": L2fwdFunction,
}
AnyFunction: Any = one_of("types of function", FUNCTIONS)


def function_type(function: Model) -> str:
    """Return the name of a function's type: the key that it was written with."""
    return next(name for name, model in FUNCTIONS.items() if type(function) is model)


def settings(function: Model) -> Model:
    """Return what stands under that key."""
    inner: Model = getattr(function, function_type(function))
    return inner


def config(function: Model) -> Mapping[str, Any]:
    """Return a function's part of the plan: JSON values, named as docs/functions.md has them."""
    inner = settings(function)
    result = inner.model_dump(exclude_none=True)
    if isinstance(inner, Firewall):
        result["rules"] = [
            {"action": action, **match}
            for rule in result["rules"]
            for action, match in rule.items()
        ]
    if isinstance(inner, Router):
        result["neighbours"] = [
            {"address": address, "mac": mac} for address, mac in inner.neighbours.items()
        ]
    return result
