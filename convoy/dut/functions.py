# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the functions under test do, said once for every device.

A function is written as a chain descriptor has it (convoy/chain/functions.py); read() gives
its parts (convoy/chain/meaning.py) to devices that speak another language. Packets go from left to
right. A device's ports have the same addresses everywhere, so that what leaves is the same
byte for byte whoever forwarded it: frames to a router go to LEFT_MAC, and come from RIGHT_MAC.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Network
from typing import Any

from pydantic import ValidationError

from convoy.chain.functions import FUNCTIONS
from convoy.chain.meaning import Firewall, Layer2, Meaning, Nat, Router, Tunnel
from convoy.chain.meaning import read as meaning_of
from convoy.dut.addresses import (
    DESTINATIONS,
    DPORT,
    FEW,
    INSIDE,
    OUTSIDE,
    RIGHT_MAC,
    SERVICE,
    SOURCES,
)
from convoy.dut.base import Function
from convoy.dut.payload_functions import classifier, ids, nat64, seal, unseal
from convoy.errors import InputError, first_problem


def read(function: Function, leaves: str = "right") -> Meaning:
    """Return what a function does. Raises InputError for what not every device can do.

    leaves: the port that packets are to go out of; the left one for what comes back.
    """
    if function.type not in FUNCTIONS:
        raise InputError(f"{function.type}: no such function; there are {', '.join(FUNCTIONS)}")
    try:
        given = {key: key for key in function.files} | dict(function.config)
        model = FUNCTIONS[function.type].model_validate({function.type: given})
    except ValidationError as error:
        raise InputError(first_problem(error)) from None
    meaning = meaning_of(model)
    if isinstance(meaning, Router):
        for route in meaning.routes:
            if route.dev != leaves:
                raise InputError(f"router: {route.prefix}: write PREFIX via ADDRESS dev {leaves}")
    if isinstance(meaning, Layer2) and meaning.src_of_port:
        return replace(meaning, src=RIGHT_MAC)
    if isinstance(meaning, Tunnel):
        return replace(meaning, associations=function.files["sa-file"])
    return meaning


def tracks(functions: Sequence[Function]) -> bool:
    """Return whether a chain is a stateful firewall before a nat, which other devices have as one:
    connection tracking. Raises InputError for other chains with state.
    """
    meanings = [read(function) for function in functions]
    state = [isinstance(m, Nat) or (isinstance(m, Firewall) and m.stateful) for m in meanings]
    if any(state) and not (len(state) == 2 and all(state) and isinstance(meanings[1], Nat)):
        raise InputError("devices are compared with a stateful firewall before a nat, and no more")
    return any(state)


def firewall(rules: int) -> Function:
    """Return a firewall of so many rules of which benchmark traffic meets only the last.

    That is what the papers measured: each packet is compared with all of them, and passes.
    """
    if rules < 1:
        raise InputError(f"firewall: {rules} rules; at least 1 is needed: the one that allows")
    deny: list[dict[str, Any]] = [
        {"deny": {"src": f"10.{i >> 8}.{i & 255}.0/24", "proto": "udp", "dport": 1 + i % 4000}}
        for i in range(rules - 1)
    ]
    last = {
        "allow": {"src": str(SOURCES), "dst": str(DESTINATIONS), "proto": "udp", "dport": DPORT}
    }
    return Function("firewall", {"default": "deny", "rules": [*deny, last]})


def router(routes: int) -> Function:
    """Return a router of so many routes, all of which benchmark traffic meets. 1 to 65,536."""
    if not 1 <= routes <= 1 << 16:
        raise InputError(f"router: {routes} routes; give 1 to 65536")
    known = FEW if routes <= FEW.num_addresses else DESTINATIONS
    bits = (routes - 1).bit_length()  # 2^bits equal parts,
    pairs = (1 << bits) - routes  # of which so many pairs are one prefix, one bit shorter
    length = known.prefixlen + bits
    parts = 1 << (32 - length)
    starts = [(2 * i * parts, length - 1) for i in range(pairs)]
    starts += [(i * parts, length) for i in range(2 * pairs, 1 << bits)]
    prefixes = [IPv4Network((int(known[0]) + at, bits)) for at, bits in starts]
    next_hops = min(routes, 254)
    return Function(
        "router",
        {
            "routes": [
                f"{prefix} via 192.0.2.{1 + i % next_hops} dev right"
                for i, prefix in enumerate(prefixes)
            ],
            "neighbours": {
                f"192.0.2.{1 + i}": f"02:00:00:00:01:{1 + i:02x}" for i in range(next_hops)
            },
        },
    )


def layer2() -> Function:
    """Return a layer 2 forwarder that writes both addresses."""
    return Function("l2fwd", {"mode": "rewrite", "src": RIGHT_MAC, "dst": "02:00:00:00:02:01"})


def macswap() -> Function:
    """Return a layer 2 forwarder that swaps the addresses."""
    return Function("l2fwd", {"mode": "swap"})


def bridge() -> Function:
    """Return a learning bridge, which changes nothing."""
    return Function("bridge")


def balancer(backends: int) -> Function:
    """Return a balancer of one service, with so many backends by MAC address. 1 to 4,096."""
    if not 1 <= backends <= 4096:
        raise InputError(f"balancer: {backends} backends; give 1 to 4096")
    return Function(
        "balancer",
        {
            "services": [{"address": str(SERVICE)}],
            "backends": [
                {
                    "address": f"10.0.{i >> 8}.{i & 255}",
                    "mac": f"02:00:00:01:{i >> 8:02x}:{i & 255:02x}",
                }
                for i in range(backends)
            ],
        },
    )


def policer(rate_bps: int = 100_000_000_000) -> Function:
    """Return a policer, by default of a rate that benchmark traffic does not reach."""
    return Function("policer", {"cir-bps": rate_bps, "yellow": "drop"})


def stateful() -> Function:
    """Return a firewall that lets connections begin on the left only."""
    return Function(
        "firewall",
        {
            "stateful": True,
            "default": "deny",
            "rules": [
                {"allow": {"src": str(INSIDE), "dst": str(DESTINATIONS), "proto": proto,
                           "dport": DPORT}}
                for proto in ("udp", "tcp")
            ],
        },
    )  # fmt: skip


def nat(flows: int = 1 << 16) -> Function:
    """Return a NAT of the hosts behind stateful functions, for so many flows."""
    return Function(
        "nat",
        {
            "outside": ["right"],
            "inside": [str(INSIDE)],
            "pool": [str(OUTSIDE)],
            # As many ports as a host of benchmark traffic uses, and one: all blocks fit.
            "block-size": 64,
            "block-rest-s": 0,
            "mappings": max(flows, 1 << 10),
        },
    )


def _with_defaults(kind: str, entries: int) -> Function:
    return Function(kind)


# What a scenario may ask for, by name; the number is of its routes or rules. Types that are not
# named here have their defaults.
WORKLOADS: dict[str, Callable[[int], Function]] = {
    **{name: partial(_with_defaults, name) for name in FUNCTIONS},
    "firewall": firewall,
    "router": router,
    "l2fwd": lambda entries: layer2(),
    "macswap": lambda entries: macswap(),
    "balancer": balancer,
    "policer": lambda entries: policer(),
    "classifier": classifier,
    "ids": ids,
    "seal": lambda entries: seal(),
    "unseal": lambda entries: unseal(),
    "seal-aggfrag": lambda entries: seal(aggregate=True),
    "unseal-aggfrag": lambda entries: unseal(aggregate=True),
    "to-ipv6": lambda entries: nat64(),
    "to-ipv4": lambda entries: nat64(),
    "stateful": lambda entries: stateful(),
    "nat": lambda entries: nat(),
}
# Of these, those that remember flows: their traffic comes from INSIDE, and answers come back.
STATEFUL = ("stateful", "nat")
# Of these, those that make packets longer, or take that back: full ones have no room for it.
GROWING = (
    "nat64", "to-ipv6", "to-ipv4", "vpn", "seal", "unseal", "seal-aggfrag", "unseal-aggfrag",
    "nsh-encap", "srv6-encap",
)  # fmt: skip
