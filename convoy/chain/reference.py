# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The option reference of docs/descriptor.md, made from the models."""

from collections.abc import Iterator

from convoy.base.model import Model
from convoy.base.model_reference import section
from convoy.chain.descriptor import Chain, Control, Descriptor, Memory, Telemetry, Workers
from convoy.chain.flows import Flows, Timeouts
from convoy.chain.functions import FUNCTIONS, Forward, Placed, Route
from convoy.chain.match import ChainMatch
from convoy.chain.nat64 import Mapping
from convoy.chain.next_hops import NextHop
from convoy.chain.nsh import NshRule, ServicePath, Tlv, VxlanGpe
from convoy.chain.openflow import OpenFlow
from convoy.chain.ports import PORTS, Captures, Convoys
from convoy.chain.rule_match import Match
from convoy.chain.srv6 import LocalSid, Srv6Rule
from convoy.chain.standby import Standby
from convoy.chain.vpn import VpnPolicy


def reference() -> str:
    """Return the reference as Markdown, without the introduction that people wrote."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from section("## Descriptor", Descriptor)
    yield "## `ports`\n\nThe key that comes first names the kind.\n"
    for kind, model in PORTS.items():
        yield from section(f"### `{kind}`", model)
        if kind == "pcap":
            yield from section("#### `pcap:`", Captures)
    yield from section("### `convoys:` of any port", Convoys)
    yield "## `functions`\n\nThe key names the type; under it stand its settings.\n"
    yield from section("### `place` of any function", Placed)
    for name, function in FUNCTIONS.items():
        field = function.model_fields[name.replace("-", "_")]
        inner = field.annotation
        assert isinstance(inner, type) and issubclass(inner, Model)
        yield from section(f"### `{name}`", inner, function.__doc__)
        if name == "firewall":
            yield from section("#### `rules`: `allow:` or `deny:`", Match)
        if name == "nat":
            yield from section("#### `forwards`", Forward)
        if name == "nat64":
            yield from section("#### `eam`", Mapping)
        if name == "nsh":
            yield from section("#### `paths`", ServicePath)
        if name == "nsh-encap":
            yield from section("#### `rules`", NshRule)
            yield from section("#### `tlvs`", Tlv)
            yield from section("#### `vxlan-gpe`, of nsh too", VxlanGpe)
        if name == "srv6":
            yield from section("#### `sids`", LocalSid)
        if name == "srv6-encap":
            yield from section("#### `rules`", Srv6Rule)
        if name == "router":
            yield from section("#### `routes`", Route)
        if name == "vpn":
            yield from section("#### `policies`", VpnPolicy)
    yield from section("## `chains`", Chain)
    yield from section("### `match`", ChainMatch)
    yield from section("## `next-hops`", NextHop)
    yield from section("## `flows`", Flows)
    yield from section("### `timeouts`", Timeouts)
    yield from section("## `workers`", Workers)
    yield from section("## `memory`", Memory)
    yield from section("## `telemetry`", Telemetry)
    yield from section("## `control`", Control)
    yield from section("## `openflow`", OpenFlow)
    yield from section("## `standby`", Standby)
