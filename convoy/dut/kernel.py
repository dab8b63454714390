# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as the Linux kernel does them, as shell scripts: for a namespace or a virtual machine.

A script configures one function between two interfaces, `left` and `right`, with ip and nft.

firewall: a bridge, and nftables rules in its forward hook. router: the kernel's own, with permanent
neighbours. l2fwd: a bridge; where addresses are to be written, nftables forwards from the left
interface's ingress to the right one, which a bridge cannot. So do a balancer, by a hash of the
flow, and a policer, by nftables' limit. nat64: tayga, a program, between two routes. vpn: a router
with policies of xfrm. A stateful firewall and a nat: a router with connection tracking, rules in
its forward hook, masquerading in its postrouting hook.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
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
    Translator,
    Tunnel,
)
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


@dataclass(frozen=True)
class Script:
    """How a function is configured, and a program that does it, if the kernel does not."""

    text: str
    program: str = ""  # of a shell; runs as long as the function is there, begun before the text
    modules: tuple[str, ...] = ()  # of Debian's kernel, which a guest's loads


def script(function: Function | None, for_us: bool = True, back: Function | None = None) -> Script:
    """Return the script of a function; None: a bridge, which is all that forwarding needs.

    for_us: frames come with LEFT_MAC, a router's own address; else it must take others' too.
    back: the same function for what comes in by the right interface.
    Raises InputError for what the kernel cannot do.
    """
    if function is None:
        return Script(_QUIET + _BRIDGE)
    other = read(back, "left") if back is not None else None
    meaning = read(function)
    text = _QUIET + "".join(_lines(meaning, for_us, other))
    program = _tayga(meaning) if isinstance(meaning, Translator) else ""
    return Script(text, program, _MODULES.get(type(meaning), ()))


def _lines(meaning: Meaning, for_us: bool, back: Meaning | None) -> Iterator[str]:
    if back is not None and type(back) is not type(meaning):
        raise InputError("what comes back must meet the same kind of function")
    yield from MEANINGS[type(meaning)](meaning, for_us, back)


def changes_destination(function: Function) -> bool:
    """Return whether frames come out of a function with another destination address."""
    meaning = read(function)
    return isinstance(meaning, (Router, Balancer)) or (
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


def tracking(functions: Sequence[Function], flows: Flows) -> Script:
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
    return Script("".join(script))


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


_FLOW = "ip saddr . ip daddr . ip protocol . th sport . th dport"


def _balancer(balancer: Balancer, for_us: bool, back: None) -> Iterator[str]:
    """At ingress, as l2fwd: a frame for another MAC address would not be routed."""
    places = ", ".join(f"{i} : {mac}" for i, mac in enumerate(balancer.macs))
    chosen = f"jhash {_FLOW} mod {len(balancer.macs)} map {{ {places} }}"
    rules = [f"ip daddr {service} ether daddr set {chosen}" for service in balancer.services]
    yield "ip link set left up\nip link set right up\n"
    yield _nft("netdev", _INGRESS, [*rules, "fwd to right"])


def _policer(policer: Policer, for_us: bool, back: None) -> Iterator[str]:
    bound = f"rate over {policer.rate_bps // 8} bytes/second burst {policer.burst_bytes} bytes"
    rules = [f"meta protocol {{ ip, ip6 }} limit {bound} drop", "fwd to right"]
    yield "ip link set left up\nip link set right up\n"
    yield _nft("netdev", _INGRESS, rules)


# Behind the right interface, whatever the address, is the function that comes next: frames keep
# their MAC addresses, as they do on our node.
_ON = f"""\
ip link set lo up
ip link set left address {LEFT_MAC} up
ip link set right address {TESTER_MAC} addrgenmode none up
echo 1 > /proc/sys/net/ipv4/ip_forward
for i in left right; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done
ip neigh replace 192.0.2.254 lladdr {LEFT_MAC} dev right nud permanent
"""


def _only_for_us(kind: str, for_us: bool) -> None:
    if not for_us:
        raise InputError(f"{kind}: the kernel has it before a function that writes MAC addresses")


def _translator(translator: Translator, for_us: bool, back: None) -> Iterator[str]:
    """What comes from the left goes to tayga, and what comes from tayga to the right."""
    _only_for_us("nat64", for_us)
    if shutil.which("tayga", path=f"{os.environ.get('PATH')}:/usr/sbin:/sbin") is None:
        raise InputError("nat64: not installed: tayga (Debian: apt-get install tayga)")
    yield "until ip link show nat64 > /dev/null 2>&1; do sleep 0.05; done\n"
    yield _ON
    yield f"""\
ip link set nat64 addrgenmode none mtu 1500 up
for i in all left right nat64; do echo 0 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done
for i in left right nat64; do echo 0 > /proc/sys/net/ipv6/conf/$i/accept_ra; done
echo 0 > /proc/sys/net/ipv4/conf/nat64/rp_filter
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip -6 neigh replace 2001:db8:ffff::fe lladdr {LEFT_MAC} dev right nud permanent
ip rule add iif left table 100
ip -6 rule add iif left table 100
ip route add default dev nat64 table 100
ip -6 route add default dev nat64 table 100
ip route add default via 192.0.2.254 dev right onlink
ip -6 route add default via 2001:db8:ffff::fe dev right onlink
"""


def _tayga(translator: Translator) -> str:
    lines = ["tun-device nat64", "ipv4-addr 192.0.2.253", "ipv6-addr 2001:db8:ffff::fd"]
    lines += [f"map {four} {six}" for four, six in translator.rows]
    return "exec tayga --nodetach -c /proc/self/fd/0 <<END\n" + "\n".join(lines) + "\nEND\n"


def _tunnel(tunnel: Tunnel, for_us: bool, back: None) -> Iterator[str]:
    _only_for_us("vpn", for_us)
    words = [line.split() for line in tunnel.associations.splitlines()]
    ends = {line[0]: {"spi": line[1], **dict(zip(line[2::2], line[3::2], strict=True))}
            for line in words}  # fmt: skip
    known = {"spi", "policy", "local", "peer", "key", "esn"}
    if ends.keys() != {"in", "out"} or not all(end.keys() <= known for end in ends.values()):
        raise InputError(f"vpn: the kernel is given associations of {', '.join(sorted(known))}")
    local, peer = ends["out"]["local"], ends["out"]["peer"]
    come, go = (f"src {peer} dst {local}", f"src {local} dst {peer}")
    yield f"{_ON}ip address add {local}/32 dev lo\n"
    for way, end in ((come, ends["in"]), (go, ends["out"])):
        esn = " flag esn" if end.get("esn") == "yes" else ""
        yield (
            f"ip xfrm state add {way} proto esp spi {end['spi']} reqid 1 mode tunnel"
            f" replay-window 1024{esn} aead 'rfc4106(gcm(aes))' {end['key']} 128\n"
        )
    if tunnel.opens:
        template = f"tmpl {come} proto esp reqid 1 mode tunnel"
        yield f"ip xfrm policy add dst {tunnel.match} dir fwd {template}\n"
    else:
        template = f"tmpl {go} proto esp reqid 1 mode tunnel"
        yield f"ip route add {peer} via 192.0.2.254 dev right onlink\n"
        yield f"ip xfrm policy add dst {tunnel.match} dir out {template}\n"
    yield f"ip route add {tunnel.match} via 192.0.2.254 dev right onlink\n"


# Of the kernel of Debian, beyond those that every guest has. Ciphers need others, and random
# numbers, by names that modules.dep does not know.
_CIPHER = ("sha512_generic", "drbg", "ctr", "ghash_generic", "gcm", "seqiv")
_MODULES: dict[type[Meaning], tuple[str, ...]] = {
    Balancer: ("nft_hash",),
    Policer: ("nft_limit",),
    Translator: ("tun",),
    Tunnel: ("xfrm_user", "esp4", *_CIPHER),
}
MODULES = tuple(dict.fromkeys(module for each in _MODULES.values() for module in each))
MEANINGS: dict[type[Meaning], Callable[[Any, bool, Any], Iterator[str]]] = {
    Firewall: _firewall,
    Router: _router,
    Layer2: _layer2,
    Balancer: _balancer,
    Policer: _policer,
    Translator: _translator,
    Tunnel: _tunnel,
}
