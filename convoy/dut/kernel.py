# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as the Linux kernel does them, as shell scripts: for a namespace or a virtual machine.

A script configures one function between two interfaces, `left` and `right`, with ip and nft.

firewall: a bridge, and nftables rules in its forward hook. router: the kernel's own, with permanent
neighbours. l2fwd: a bridge; where addresses are to be written, nftables forwards from the left
interface's ingress to the right one, which a bridge cannot. A stateful firewall and a nat: a router
with connection tracking, rules in its forward hook, masquerading in its postrouting hook.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from convoy.chain.meaning import Firewall, Layer2, Meaning, Nat, Ports, Router, Rule
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC, TESTER_MAC
from convoy.dut.base import Flows, Function
from convoy.dut.functions import read
from convoy.errors import InputError

_CONNTRACK = "/proc/sys/net/netfilter"
# Where br_netfilter is loaded, a new namespace has these on, whatever its bridges say.
_BRIDGE = """\
for i in /proc/sys/net/bridge/bridge-nf-call-*; do test ! -e $i || echo 0 > $i; done
ip link add br0 type bridge stp_state 0 mcast_snooping 0 nf_call_iptables 0
ip link set left master br0 up
ip link set right master br0 up
ip link set br0 up
"""
# No IPv6: the kernel would send packets of its own. Reverse paths: nobody told it of the sources.
_QUIET = """\
for i in all default; do
  echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6
  echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter
  echo 0 > /proc/sys/net/ipv4/conf/$i/send_redirects
done
"""


def script(function: Function | None, for_us: bool = True, back: Function | None = None) -> str:
    """Return the script of a function; None: a bridge, which is all that forwarding needs.

    for_us: frames come with LEFT_MAC, a router's own address; else it must take others' too.
    back: the same function for what comes in by the right interface.
    Raises InputError for what the kernel cannot do.
    """
    if function is None:
        return _QUIET + _BRIDGE
    other = read(back, "left") if back is not None else None
    return _QUIET + "".join(_lines(read(function), for_us, other))


def _lines(meaning: Meaning, for_us: bool, back: Meaning | None) -> Iterator[str]:
    if back is not None and type(back) is not type(meaning):
        raise InputError("what comes back must meet the same kind of function")
    yield from MEANINGS[type(meaning)](meaning, for_us, back)


def changes_destination(function: Function) -> bool:
    """Return whether frames come out of a function with another destination address."""
    meaning = read(function)
    return isinstance(meaning, Router) or (
        isinstance(meaning, Layer2) and (meaning.dst is not None or meaning.swap)
    )


def _nft(family: str, hook: str, rules: list[str], name: str = "through") -> str:
    body = "\n".join([f"{hook}; policy accept;", *rules])
    return f"nft -f - <<END\ntable {family} convoy {{\nchain {name} {{\n{body}\n}}\n}}\nEND\n"


def _firewall(firewall: Firewall, for_us: bool, back: Firewall | None) -> Iterator[str]:
    yield _BRIDGE
    rules = list(_rules(firewall))
    if back is not None:
        # The first rule that matches decides: those for the other direction come first.
        rules = [f'iifname "right" {rule}' for rule in _rules(back)] + rules
    yield _nft("bridge", "type filter hook forward priority 0", rules)


def _rules(firewall: Firewall) -> Iterator[str]:
    default = _verdict(firewall.default_allow)
    for rule in firewall.rules:
        yield f"{_match(rule)} {_verdict(rule.allow)}".strip()
    yield f"ether type {{ ip, ip6 }} {default}"


def _verdict(allow: bool) -> str:
    return "accept" if allow else "drop"


def _match(rule: Rule) -> str:
    words = [] if rule.src is None else [f"ip saddr {rule.src}"]
    words += [] if rule.dst is None else [f"ip daddr {rule.dst}"]
    words += [] if rule.proto is None else [f"meta l4proto {rule.proto}"]
    words += _ports("sport", rule.sport) + _ports("dport", rule.dport)
    return " ".join(words or ["ether type ip"])


def _ports(name: str, ports: Ports | None) -> list[str]:
    if ports is None or ports == (0, 65535):
        return []
    low, high = ports
    return [f"th {name} {low}" if low == high else f"th {name} {low}-{high}"]


def tracking(functions: Sequence[Function], flows: Flows) -> str:
    """Return the script of a stateful firewall before a nat (convoy/dut/functions.py, tracks)."""
    firewall, nat = map(read, functions)
    assert isinstance(firewall, Firewall) and isinstance(nat, Nat)
    # Behind both interfaces is the tester, whatever the address.
    inside, outside = "192.0.2.1", "192.0.2.2"
    lines = [
        "link set lo up",
        f"link set left address {LEFT_MAC} up",
        f"link set right address {RIGHT_MAC} up",
        f"address add {nat.pool[1]}/32 dev right",
        f"neigh replace {inside} lladdr {TESTER_MAC} dev left nud permanent",
        f"neigh replace {outside} lladdr {TESTER_MAC} dev right nud permanent",
        f"route add {nat.inside} via {inside} dev left onlink",
        f"route add default via {outside} dev right onlink",
    ]
    forward = [f'iifname "left" {rule}' for rule in _rules(firewall)]
    forward += ["ct state established,related accept", "drop"]
    masquerade = [f'oifname "right" ip saddr {nat.inside} masquerade']
    script = [
        _QUIET,
        "echo 1 > /proc/sys/net/ipv4/ip_forward\n",
        "for i in left right; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done\n",
        "ip -batch - <<END\n" + "\n".join(lines) + "\nEND\n",
        _nft("inet", "type filter hook forward priority 0", forward),
        _nft("inet", "type nat hook postrouting priority 100", masquerade, "leave"),
    ]
    if flows.idle_s is not None:
        script.append(
            f"for i in {_CONNTRACK}/nf_conntrack_udp_timeout* "
            f"{_CONNTRACK}/nf_conntrack_tcp_timeout*; do echo {flows.idle_s} > $i; done\n"
        )
    return "".join(script)


def _router(router: Router, for_us: bool, back: Router | None) -> Iterator[str]:
    lines = [
        "link set lo up",  # makes the local table, without which no next hop is valid
        f"link set left address {LEFT_MAC} up",
        f"link set right address {RIGHT_MAC} up",
    ]
    lines += _routes(router, "right")
    yield "echo 1 > /proc/sys/net/ipv4/ip_forward\n"
    # Names of conf/ are per interface once those exist.
    yield "for i in left right; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done\n"
    yield "ip -batch - <<END\n" + "\n".join(lines) + "\nEND\n"
    if not for_us:
        yield _nft("netdev", _INGRESS, ["meta pkttype set unicast"])
    if back is not None:
        yield "ip -batch - <<END\n" + "\n".join(_routes(back, "left")) + "\nEND\n"


def _routes(router: Router, dev: str) -> list[str]:
    next_hops = {route.via: route.mac for route in router.routes}
    lines = [
        f"neigh replace {via} lladdr {mac} dev {dev} nud permanent"
        for via, mac in next_hops.items()
    ]
    return lines + [f"route add {r.prefix} via {r.via} dev {dev} onlink" for r in router.routes]


_INGRESS = "type filter hook ingress device left priority 0"


def _layer2(layer2: Layer2, for_us: bool, back: Layer2 | None) -> Iterator[str]:
    if back is not None and not layer2.bridge:
        raise InputError("l2fwd: the kernel writes addresses in one direction only")
    if layer2.swap:
        raise InputError("l2fwd: the kernel has no way to swap addresses; use rewrite, or a bridge")
    if layer2.bridge:
        yield _BRIDGE
        return
    yield "ip link set left up\nip link set right up\n"
    rules = [f"ether saddr set {layer2.src}"] if layer2.src else []
    rules += [f"ether daddr set {layer2.dst}"] if layer2.dst else []
    yield _nft("netdev", _INGRESS, [*rules, "fwd to right"])


MEANINGS: dict[type[Meaning], Callable[[Any, bool, Any], Iterator[str]]] = {
    Firewall: _firewall,
    Router: _router,
    Layer2: _layer2,
}
