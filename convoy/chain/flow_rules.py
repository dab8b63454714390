# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as Open vSwitch's OpenFlow rules: what the papers call a data-plane function.

Each function of a path is a table. A packet that it lets through goes on to the next one's table,
and from the table behind the last one out of a port. A router whose routes leave by several ports
has tables behind it for each.

Rules are as devices are compared with them, for IPv4, or exact: what comes out is then what comes
out of our node, for every packet with right headers. Exact are the families of rules without
addresses, non-first fragments, and what a router drops.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convoy.chain.meaning import (
    Balancer,
    Firewall,
    Layer2,
    Meaning,
    Nat,
    Policer,
    Ports,
    Router,
    Rule,
)
from convoy.errors import InputError

TABLES = 254  # that a bridge has
_NO_RULES = ("group_id=", "meter=")  # lines that are none, but what rules name
BEFORE_RULES = 65_000  # priority
_FIRST_RULE = 60_000  # priority: rules go down from it, and every rule needs one of its own
_WORDS = {6: "tcp", 17: "udp", 132: "sctp"}  # protocols of which OpenFlow knows the ports
_MULTICAST = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"
# What our router forwards from nobody, and to nobody (nf/router/router.c).
_NOBODY = ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")


@dataclass(frozen=True)
class Out:
    """Where packets leave."""

    port: int  # OpenFlow's number
    mac: str  # of the port that a packet leaves by in the end


class Tables:
    """Tables that are free, in order."""

    def __init__(self, first: int) -> None:
        """Begin with a table."""
        self.next = first

    def take(self) -> int:
        """Return the next one. Raises InputError: there is none."""
        if self.next >= TABLES:
            raise InputError(f"Open vSwitch has {TABLES} tables; place fewer functions in it")
        self.next += 1
        return self.next - 1


def path_rules(
    meanings: Sequence[Meaning],
    tables: Tables,
    come: int,
    outs: Mapping[str, Out],
    to: str,
    exact: bool = True,
) -> list[str]:
    """Return the rules of a path, as ovs-ofctl add-flows reads them. Its first table comes first.

    Before a table that needs one is its group or meter, as add-group or add-meter read it.

    come: the port that its packets come in by; outs: ports by the names that routes have; to: the
    one that packets leave by, unless a router says otherwise.
    Raises InputError for what OpenFlow cannot say.
    """
    if not meanings:
        return [f"table={tables.take()},priority=1,in_port={come},actions=output:{outs[to].port}"]
    table, meaning = tables.take(), meanings[0]
    leads = [to]
    if isinstance(meaning, Router):
        leads = list(dict.fromkeys(route.dev for route in meaning.routes)) or [to]
    behind: list[str] = []
    on: dict[str, str] = {}
    for dev in leads:
        on[dev] = f"goto_table:{tables.next}"
        behind += path_rules(meanings[1:], tables, come, outs, dev, exact)
    way = Way(table, on, {dev: outs[dev].mac for dev in leads}, to, exact)
    lines = WORDS[type(meaning)](meaning, way)
    own = [line if line.startswith(_NO_RULES) else f"table={table},{line}" for line in lines]
    return [*own, *behind]


@dataclass(frozen=True)
class Way:
    """Where packets go on from a table."""

    table: int
    on: Mapping[str, str]  # the action, by port in the end
    macs: Mapping[str, str]  # addresses of these ports
    to: str  # the port, unless a function says otherwise
    exact: bool

    @property
    def next(self) -> str:
        """Return the action of what a function lets through."""
        return self.on[self.to]


def _nat(nat: Nat, way: Way) -> Iterator[str]:
    table = way.next.removeprefix("goto_table:")
    pool = f"{nat.pool[0]}-{nat.pool[-1]}"
    yield f"priority=2,ip,nw_src={nat.inside},actions=ct(commit,nat(src={pool}),table={table})"
    yield f"priority=1,actions={way.next}"


def _firewall(firewall: Firewall, way: Way) -> Iterator[str]:
    if len(firewall.rules) > _FIRST_RULE - 10:
        raise InputError(
            f"firewall: {len(firewall.rules)} rules; OpenFlow has priorities for 59990"
        )
    for i, rule in enumerate(firewall.rules):
        for match in _exact_matches(rule) if way.exact else _matches(rule, ""):
            yield f"priority={_FIRST_RULE - i},{match},actions={way.next if rule.allow else 'drop'}"
    default = way.next if firewall.default_allow else "drop"
    yield f"priority=2,ip,actions={default}"
    yield f"priority=2,ipv6,actions={default}"
    yield f"priority=1,actions={way.next}"


def _exact_matches(rule: Rule) -> Iterator[str]:
    """Yield matches for both families, where a rule has no addresses; fragments as our node.

    A rule with ports does not allow non-first fragments, which have none, but denies them.
    """
    for family in ("", "6") if rule.src is None and rule.dst is None else ("",):
        for match in _matches(rule, family):
            yield f"{match},ip_frag=not_later" if "tp_" in match else match
        if not rule.allow and (_masks(rule.sport) != [""] or _masks(rule.dport) != [""]):
            without_ports = Rule(rule.allow, rule.src, rule.dst, rule.proto)
            for match in _matches(without_ports, family):
                yield f"{match},ip_frag=later"


def _matches(rule: Rule, family: str) -> Iterator[str]:
    """Yield matches; a range of ports is several: values and masks. family: "", or "6"."""
    ip = f"ipv{family}" if family else "ip"
    if rule.proto is None:
        words = [ip]
    elif rule.proto in _WORDS:
        words = [f"{_WORDS[rule.proto]}{family}"]
    elif rule.sport or rule.dport:
        raise InputError(f"firewall: OpenFlow knows no ports of protocol {rule.proto}")
    else:
        words = [ip, f"nw_proto={rule.proto}"]
    words += [f"nw_src={rule.src}"] if rule.src else []
    words += [f"nw_dst={rule.dst}"] if rule.dst else []
    for sport in _masks(rule.sport):
        for dport in _masks(rule.dport):
            ports = [f"tp_src={sport}"] if sport else []
            ports += [f"tp_dst={dport}"] if dport else []
            yield ",".join([*words, *ports])


def _masks(ports: Ports | None) -> list[str]:
    """Return a range as VALUE/MASK, as few as there can be; [""]: any port."""
    if ports is None or ports == (0, 65535):
        return [""]
    low, high = ports
    masks = []
    while low <= high:
        size = low & -low or 1 << 16
        while size > high - low + 1:
            size >>= 1
        masks.append(f"0x{low:x}/0x{0x10000 - size:x}" if size > 1 else str(low))
        low += size
    return masks


def _router(router: Router, way: Way) -> Iterator[str]:
    if way.exact:
        yield f"priority={BEFORE_RULES},{_MULTICAST},actions=drop"
        for prefix in _NOBODY:
            yield f"priority={BEFORE_RULES},ip,nw_src={prefix},actions=drop"
            yield f"priority={BEFORE_RULES},ip,nw_dst={prefix},actions=drop"
        for ttl in (0, 1):  # dec_ttl would tell a controller
            yield f"priority={BEFORE_RULES},ip,nw_ttl={ttl},actions=drop"
    for route in router.routes:
        mac, on = way.macs[route.dev], way.on[route.dev]
        actions = f"dec_ttl,set_field:{mac}->eth_src,set_field:{route.mac}->eth_dst,{on}"
        yield f"priority={10 + route.prefix.prefixlen},ip,nw_dst={route.prefix},actions={actions}"
    yield "priority=1,actions=drop"


def _layer2(layer2: Layer2, way: Way) -> Iterator[str]:
    src = way.macs[way.to] if layer2.src_of_port else layer2.src
    words = [f"set_field:{src}->eth_src,"] if src else []
    words += [f"set_field:{layer2.dst}->eth_dst,"] if layer2.dst else []
    if layer2.bridge:
        words = []  # to where it would be flooded: there are two ports
    if layer2.swap:
        source, destination = "NXM_OF_ETH_SRC[]", "NXM_OF_ETH_DST[]"
        words = [f"push:{source},push:{destination},pop:{source},pop:{destination},"]
    yield f"priority=1,actions={''.join(words)}{way.next}"


def _balancer(balancer: Balancer, way: Way) -> Iterator[str]:
    if way.exact:
        raise InputError("balancer: Open vSwitch chooses other backends than our node")
    on = way.next.removeprefix("goto_table:")
    buckets = "".join(
        f",bucket=actions=set_field:{mac}->eth_dst,resubmit(,{on})" for mac in balancer.macs
    )
    yield f"group_id={way.table + 1},type=select{buckets}"
    for service in balancer.services:
        yield f"priority=2,ip,nw_dst={service},actions=group:{way.table + 1}"
    yield f"priority=1,actions={way.next}"


def _policer(policer: Policer, way: Way) -> Iterator[str]:
    if way.exact:
        raise InputError("policer: Open vSwitch counts other bytes than our node: whole frames")
    rate, burst = policer.rate_bps // 1000, policer.burst_bytes * 8 // 1000
    band = f"band=type=drop,rate={rate},burst_size={burst}"
    yield f"meter={way.table + 1},kbps,burst,{band}"
    for family in ("ip", "ipv6"):
        yield f"priority=2,{family},actions=meter:{way.table + 1},{way.next}"
    yield f"priority=1,actions={way.next}"


WORDS: dict[type[Meaning], Callable[[Any, Way], Iterator[str]]] = {
    Firewall: _firewall,
    Router: _router,
    Layer2: _layer2,
    Nat: _nat,
    Balancer: _balancer,
    Policer: _policer,
}
