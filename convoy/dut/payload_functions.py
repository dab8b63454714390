# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions of scenarios that only our own node has: those on payloads, tunnels and translation.

What changes packets beyond recognition has an opposite, which makes them what they were: the tester
counts what it sent. Put both into one path: `seal, unseal`, `to-ipv6, to-ipv4`.
"""

from convoy.dut.addresses import DESTINATIONS, DPORT, SOURCES
from convoy.dut.base import Function
from convoy.errors import InputError

# Nobody's secret: traffic of benchmarks.
_KEY = "0x" + "5a" * 20
_ENDS = ("192.0.2.1", "192.0.2.2")


def classifier(rules: int) -> Function:
    """Return a classifier of so many rules of which benchmark traffic meets the last: a mark."""
    if rules < 1:
        raise InputError(f"classifier: {rules} rules; at least 1 is needed: the one that marks")
    others = [
        {"match": {"src": f"10.{i >> 8}.{i & 255}.0/24", "proto": "udp", "dport": 1 + i % 4000},
         "dscp": 10}
        for i in range(rules - 1)
    ]  # fmt: skip
    last = {"match": {"src": str(SOURCES), "proto": "udp", "dport": DPORT}, "dscp": 46}
    return Function("classifier", {"rules": [*others, last]})


def seal(aggregate: bool = False) -> Function:
    """Return a vpn that encrypts benchmark traffic: ESP with AES-128-GCM over IPv4.

    aggregate: many packets in each ESP packet (AGGFRAG of RFC 9347), not one.
    """
    return _vpn("right", {"dst": str(DESTINATIONS)}, *_ENDS, aggregate=aggregate)


def unseal(aggregate: bool = False) -> Function:
    """Return the vpn of the other end."""
    return _vpn("left", {"src": str(DESTINATIONS)}, *reversed(_ENDS), aggregate=aggregate)


def _vpn(
    outside: str, match: dict[str, str], local: str, peer: str, *, aggregate: bool
) -> Function:
    spis = {end: 0x1000 + number for number, end in enumerate(_ENDS, 1)}  # by who receives
    config = {"outside": [outside], "policies": [{"name": "bench", "match": match}]}
    more = "esn yes aggregate yes" if aggregate else "esn yes"
    associations = (
        f"out {spis[peer]:#x} policy bench local {local} peer {peer} key {_KEY} {more}\n"
        f"in {spis[local]:#x} policy bench local {local} key {_KEY} {more}\n"
    )
    return Function("vpn", config, {"sa-file": associations})


def ids(rules: int) -> Function:
    """Return an ids of so many rules, one pattern each, none of which benchmark traffic has."""
    if not 1 <= rules <= 100_000:
        raise InputError(f"ids: {rules} rules; give 1 to 100000")
    lines = [
        f'alert udp any any -> any any (msg:"{i}"; content:"convoy pattern {i:06}"; sid:{i + 1};)\n'
        for i in range(rules)
    ]
    return Function("ids", {}, {"rules-file": "".join(lines)})


def nat64() -> Function:
    """Return a nat64 that translates benchmark traffic to IPv6, or back: both are the same."""
    return Function(
        "nat64",
        {
            "prefix": "2001:db8:64::/96",
            "hosts": [str(SOURCES)],
            "eam": [{"ipv4": str(DESTINATIONS), "ipv6": "2001:db8:a::/112"}],
            "source": "192.0.2.1",
            "source-ipv6": "2001:db8:1::1",
            "ipv6-mtu": 1500,  # else what is longer than 1,280 bytes is fragmented
        },
    )
