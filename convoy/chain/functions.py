# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Network functions of a descriptor: one model per type, told apart by the key that names it.

Types and their parameters are those of nf/ (parameters.py is made from it). A type that has more
than single values, or rules between them, has a model of its own here.
"""

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, create_model, model_validator

from convoy.base.model import Model, Name, one_of
from convoy.chain.model import Address, Mac, Parameters, Prefix, prefix
from convoy.chain.parameters import (
    MORE,
    PARAMETERS,
    BridgeParameters,
    FirewallParameters,
    L2fwdParameters,
    RouterParameters,
)

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
    name: str | None = Field(
        None, min_length=1, max_length=63, description="shown with the rule's hit counter"
    )

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


class Firewall(FirewallParameters):
    """With its rules."""

    rules: list[one_of("actions", {"allow": Allow, "deny": Deny})] = Field(  # type: ignore[valid-type]
        [], description=MORE["firewall"]["rules"]
    )

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


class Router(RouterParameters):
    """With its routes and neighbours."""

    routes: list[AnyRoute] = Field([], description=MORE["router"]["routes"])
    neighbours: dict[Address, Mac] = Field({}, description=MORE["router"]["neighbours"])

    def as_plan(self) -> dict[str, Any]:
        """Return the neighbours as a list."""
        return super().as_plan() | {
            "neighbours": [{"address": ip, "mac": mac} for ip, mac in self.neighbours.items()]
        }


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


_OWN: dict[str, type[Parameters]] = {
    "bridge": Bridge,
    "firewall": Firewall,
    "l2fwd": L2fwd,
    "router": Router,
}


def _function(name: str) -> type[Model]:
    """Return the model of {name: {parameters}}."""
    inner = _OWN.get(name, PARAMETERS[name])
    fields: Any = {name: (inner, ...)}
    made = create_model(
        inner.__name__.removesuffix("Parameters") + "Function", __base__=Model, **fields
    )
    made.__doc__ = PARAMETERS[name].__doc__
    return made


# By the key of a descriptor: nf/ and plans have _ where descriptors have -.
FUNCTIONS: dict[str, type[Model]] = {name.replace("_", "-"): _function(name) for name in PARAMETERS}
AnyFunction: Any = one_of("types of function", FUNCTIONS)


def function_type(function: Model) -> str:
    """Return the name of a function's type as nf/ has it."""
    (name,) = type(function).model_fields
    return name


def settings(function: Model) -> Parameters:
    """Return what stands under that key."""
    inner: Parameters = getattr(function, function_type(function))
    return inner
