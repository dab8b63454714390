# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Parameters of the network functions, made from nf/ by `make generated`: do not edit."""

from typing import Literal

from pydantic import Field

from convoy.chain.model import File, Mac, Outputs, Parameters, Text


class BalancerParameters(Parameters):
    """Spreads the flows to a service over its backends (Maglev, NSDI 2016)."""

    mode: Literal["dsr", "nat", "ipip", "gue"] = Field(
        "dsr", description="to the backend's MAC address, to its IP address, or in a tunnel to it"
    )
    gue_port: int = Field(6080, ge=1, le=65535, description="gue: the backends' UDP port")
    mtu: int | None = Field(
        None,
        ge=576,
        le=65535,
        description="ipip, gue: the longest packet outside; default: the least of the ports",
    )
    table_size: int = Field(
        65537, ge=251, le=5000011, description="places of Maglev's table, a prime"
    )
    seed: int = Field(
        0,
        ge=0,
        le=4294967295,
        description="of the flows' hash: equal in all balancers of a service",
    )


class BridgeParameters(Parameters):
    """Joins two ports: learns MAC addresses and sends each packet to the other side."""

    entries: int = Field(4096, ge=1, le=1048576, description="addresses in its table")
    age_s: int = Field(
        300, ge=1, le=1000000, description="seconds of silence after which an address is forgotten"
    )


class CacheParameters(Parameters):
    """Answers DNS queries whose answers it has seen pass."""

    port: int = Field(53, ge=1, le=65535, description="UDP port of servers")
    memory_mb: int = Field(
        64, ge=8, le=65536, description="of all workers together, taken at the start"
    )
    max_ttl_s: int = Field(86400, ge=1, le=604800, description="the longest that an answer is kept")


class ClassifierParameters(Parameters):
    """Marks packets (DSCP, VLAN) and sends them to other chains, by ordered rules."""

    rest: Text | None = Field(
        None, description="output of what no rule matches; default: the next function"
    )
    outputs: Outputs = Field({}, description="chains, by output")


class FirewallParameters(Parameters):
    """Allows or denies packets by ordered rules; the first match decides."""

    default: Literal["deny", "allow"] = Field("deny", description="when no rule matches")
    rules_file: File | None = Field(
        None, description="ClassBench filter set, matched after the rules"
    )
    rules_file_action: Literal["deny", "allow"] = Field("allow", description="what its rules do")
    non_ip: Literal["pass", "drop"] = Field("pass", description="what is neither IPv4 nor IPv6")
    stateful: bool = Field(
        False, description="rules match flows: answers and related ICMP errors pass"
    )
    tcp_loose: bool = Field(False, description="stateful: TCP may begin without a SYN")
    tcp_window: Literal["none", "resets", "all"] = Field(
        "none",
        description="stateful: which TCP packets are dropped that their receiver would not accept",
    )


class L2fwdParameters(Parameters):
    """Layer 2 forwarding: rewrites MAC addresses, or swaps them."""

    mode: Literal["rewrite", "swap"] = Field("rewrite", description="set MACs, or exchange them")
    src: Mac | None = Field(None, description="rewrite: new source; default: the out port's")
    dst: Mac | None = Field(None, description="rewrite: new destination; default: unchanged")


class NatParameters(Parameters):
    """NAT for IPv4: internal hosts share external addresses and ports."""

    share_address: bool = Field(
        False, description="an external address may be the node's router's, too"
    )
    block_size: int = Field(512, ge=64, le=4096, description="ports of a block")
    blocks_per_subscriber: int = Field(
        8, ge=1, le=64, description="blocks that one internal address may have on one worker"
    )
    block_rest_s: int = Field(
        120,
        ge=0,
        le=86400,
        description="how long a block that was given back is kept from others, s",
    )
    mapping: Literal["endpoint-independent", "address-and-port-dependent"] = Field(
        "endpoint-independent", description="whether one external port serves all remote ends"
    )
    filtering: Literal[
        "endpoint-independent", "address-and-port-dependent", "address-dependent"
    ] = Field(
        "endpoint-independent",
        description="who may send to a port in use: any remote end, or those sent to",
    )
    hairpinning: bool = Field(
        True, description="whether internal hosts reach each other by external addresses"
    )
    mappings: int = Field(65536, ge=64, le=67108864, description="mappings of all workers together")
    block_log: Text | None = Field(
        None, description="file that each block's beginning and end is appended to, as JSON lines"
    )


class Nat64Parameters(Parameters):
    """Translates between IPv6 and IPv4, packet by packet (SIIT: RFC 7915, 6052, 7757)."""

    client_idle_s: int = Field(
        14400,
        ge=1,
        le=604800,
        description="how long a client is silent before its address is another's, s",
    )
    ipv6_mtu: int = Field(
        1280,
        ge=1280,
        le=65535,
        description="the longest IPv6 packet that is made of IPv4 without DF, bytes",
    )
    zero_checksum: Literal["make", "drop"] = Field(
        "make", description="what becomes of UDP over IPv4 without a checksum"
    )
    traffic_class: Literal["copy", "zero"] = Field(
        "copy", description="whether DSCP and ECN go over"
    )
    ttl: Literal["decrement", "check"] = Field(
        "decrement", description="whether a hop is taken here, or by a router behind"
    )
    icmp_rate: int = Field(
        1000, ge=0, le=1000000, description="ICMP errors per second and worker; 0: none"
    )


class NshParameters(Parameters):
    """Forwards, decapsulates and proxies NSH (RFC 8300) by service path and index."""

    oam: Literal["drop", "forward"] = Field(
        "drop", description="packets with the O bit: forward leaves them to rows that forward"
    )
    not_nsh: Literal["drop", "pass"] = Field(
        "drop", description="what becomes of packets without the header"
    )
    outputs: Outputs = Field({}, description="chains, by output")


class NshEncapParameters(Parameters):
    """Gives packets a Network Service Header (RFC 8300), by ordered rules."""


class PolicerParameters(Parameters):
    """Measures rates (RFC 2697, 2698, 4115); drops or marks packets by their colour."""

    meter: Literal["srtcm", "trtcm", "trtcm-4115"] = Field(
        "srtcm", description="RFC 2697 (one rate), 2698 or 4115 (two rates)"
    )
    cir_bps: int | None = Field(
        None, ge=1, le=400000000000, description="committed rate, bits of IP packets per second"
    )
    pir_bps: int | None = Field(
        None, ge=1, le=400000000000, description="trtcm: peak rate, bits per second"
    )
    eir_bps: int | None = Field(
        None, ge=1, le=400000000000, description="trtcm-4115: excess rate, bits per second"
    )
    cbs_bytes: int | None = Field(
        None,
        ge=1,
        le=4294967295,
        description="committed burst; default: 50 ms of the rate, at least 15000",
    )
    pbs_bytes: int | None = Field(
        None, ge=1, le=4294967295, description="trtcm: peak burst; default as cbs_bytes"
    )
    ebs_bytes: int | None = Field(
        None,
        ge=1,
        le=4294967295,
        description="srtcm, trtcm-4115: excess burst; default as cbs_bytes",
    )
    cir_pps: int | None = Field(
        None,
        ge=1,
        le=1000000000,
        description="committed rate, packets per second, in place of cir_bps",
    )
    pir_pps: int | None = Field(
        None, ge=1, le=1000000000, description="trtcm: peak rate, packets per second"
    )
    eir_pps: int | None = Field(
        None, ge=1, le=1000000000, description="trtcm-4115: excess rate, packets per second"
    )
    cbs_packets: int | None = Field(
        None,
        ge=1,
        le=4294967295,
        description="committed burst; default: 50 ms of the rate, at least 64",
    )
    pbs_packets: int | None = Field(
        None, ge=1, le=4294967295, description="trtcm: peak burst; default as cbs_packets"
    )
    ebs_packets: int | None = Field(
        None,
        ge=1,
        le=4294967295,
        description="srtcm, trtcm-4115: excess burst; default as cbs_packets",
    )
    colour_aware: bool = Field(
        False, description="packets come with the colour of their DSCP: AFx1, AFx2, AFx3"
    )
    per: Literal["all", "host", "flow"] = Field(
        "all", description="one meter for all packets, for each host, or for each flow"
    )
    host: Literal["src", "dst"] = Field(
        "src", description="per host: by source or destination address"
    )
    ipv4_prefix: int = Field(
        32, ge=1, le=32, description="per host: addresses that share so many bits are one host"
    )
    ipv6_prefix: int = Field(64, ge=1, le=128, description="per host: the same for IPv6")
    entries: int = Field(
        65536, ge=64, le=16777216, description="hosts or flows that each worker has room for"
    )
    non_ip: Literal["pass", "drop"] = Field(
        "pass", description="what is neither IPv4 nor IPv6; it is not measured"
    )
    outputs: Outputs = Field({}, description="chains, by output")


class RouterParameters(Parameters):
    """Forwards IPv4 and IPv6 by longest prefix; with addresses it lives in networks."""

    routes_file: File | None = Field(
        None, description="file of such lines, as `ip route` prints them"
    )
    neighbours_file: File | None = Field(None, description="file of ADDRESS MAC lines")
    neighbour_entries: int = Field(
        1024, ge=16, le=65536, description="neighbours whose MAC addresses it learns"
    )
    route_entries: int = Field(
        16384, ge=1024, le=1048576, description="routes of the kernel that it has room for"
    )
    icmp_rate: int = Field(
        1000, ge=0, le=1000000, description="ICMP errors per second and worker; 0: none"
    )


class Srv6Parameters(Parameters):
    """Segments of the node: End, End.X, End.DX2/4/6, End.DT4/6/46 (RFC 8986)."""

    icmp_rate: int = Field(
        1000, ge=0, le=1000000, description="ICMPv6 errors per second and worker; 0: none"
    )
    outputs: Outputs = Field({}, description="chains, by output")


class Srv6EncapParameters(Parameters):
    """Puts packets into SRv6 (H.Encaps of RFC 8986), by ordered rules."""

    icmp_rate: int = Field(
        1000, ge=0, le=1000000, description="ICMPv6 errors per second and worker; 0: none"
    )


class TtlLimitParameters(Parameters):
    """Drops packets whose TTL or hop limit is under a bound (RFC 5082)."""

    min: int = Field(2, ge=1, le=255, description="lowest TTL or hop limit that passes")
    non_ip: Literal["pass", "drop"] = Field(
        "pass", description="what happens to packets that are neither IPv4 nor IPv6"
    )


class IdsParameters(Parameters):
    """Matches payloads with rules in Suricata's language; alerts, drops and passes."""

    rules_file: File = Field(
        ..., description="rules, in the subset of Suricata's language that ids knows"
    )
    unsupported: Literal["error", "skip"] = Field(
        "error", description="a rule beyond the subset is an error, or is left out"
    )
    alerts_file: Text | None = Field(None, description="file to append alerts to, as EVE JSON")
    alerts_socket: Text | None = Field(
        None, description="unix datagram socket to send alerts to, as EVE JSON"
    )
    fragments: Literal["match", "drop"] = Field(
        "match", description="each fragment is matched by itself, or dropped"
    )
    stateful: bool = Field(False, description="remember flows: match TCP as streams")
    streams: int = Field(
        4096,
        ge=1,
        le=1000000,
        description="stateful: TCP connections of each worker that are streams",
    )
    segments: int = Field(
        1024, ge=1, le=65535, description="stateful: segments of each worker that wait for a gap"
    )
    window: int = Field(
        2048,
        ge=512,
        le=16384,
        description="stateful: bytes of a stream in which a rule's contents are",
    )
    depth: int = Field(
        1048576,
        ge=0,
        le=1000000000000000,
        description="stateful: bytes of a stream's direction that are matched; 0: all",
    )
    checksums: Literal["verify", "ignore"] = Field(
        "verify", description="stateful: a segment with a wrong one is no part of its stream, or is"
    )
    budget: int = Field(
        4,
        ge=1,
        le=1000,
        description="steps of a packet's rules for each byte of it, and of 1,024 more",
    )
    over_budget: Literal["drop", "pass"] = Field(
        "drop", description="what becomes of a packet whose rules need more steps"
    )


class VpnParameters(Parameters):
    """ESP tunnels with AES-GCM (RFC 4303, 4106), to the peers of a file."""

    default: Literal["discard", "bypass"] = Field(
        "discard", description="what becomes of packets that no policy matches"
    )
    sa_file: File = Field(
        ..., description="security associations; a file that only its owner may read"
    )
    udp_port: int = Field(4500, ge=1, le=65535, description="the node's port of ESP in UDP")
    mtu: int | None = Field(
        None,
        ge=576,
        le=65535,
        description="the longest packet outside; default: the least of the outside ports",
    )
    icmp_rate: int = Field(
        1000, ge=0, le=1000000, description="ICMP errors per second and worker; 0: none"
    )


PARAMETERS: dict[str, type[Parameters]] = {
    "balancer": BalancerParameters,
    "bridge": BridgeParameters,
    "cache": CacheParameters,
    "classifier": ClassifierParameters,
    "firewall": FirewallParameters,
    "l2fwd": L2fwdParameters,
    "nat": NatParameters,
    "nat64": Nat64Parameters,
    "nsh": NshParameters,
    "nsh_encap": NshEncapParameters,
    "policer": PolicerParameters,
    "router": RouterParameters,
    "srv6": Srv6Parameters,
    "srv6_encap": Srv6EncapParameters,
    "ttl_limit": TtlLimitParameters,
    "ids": IdsParameters,
    "vpn": VpnParameters,
}
# What the fields are for that a type's own model must add.
MORE: dict[str, dict[str, str]] = {
    "balancer": {
        "source": "where tunnels and probes over IPv4 come from",
        "source_ipv6": "where tunnels and probes over IPv6 come from",
        "health": "asks backends whether they are there",
        "services": "addresses that clients use",
        "backends": "who serves them",
    },
    "bridge": {"sides": "its two ports; default: the chain's"},
    "cache": {"outside": "ports that servers are behind"},
    "classifier": {"rules": "rules in order"},
    "firewall": {"rules": "rules in order"},
    "nat": {
        "outside": "ports that lead to the outside",
        "pool": "external addresses: IPv4 addresses or prefixes",
        "inside": "internal addresses: IPv4 prefixes",
        "ports": "external ports of each address of the pool",
        "forwards": "static mappings for packets from outside",
    },
    "nat64": {
        "prefix": "IPv4 addresses as IPv6 hosts see them: 32, 40, 48, 56, 64 or 96 bits",
        "hosts": "IPv4 prefixes of IPv6 hosts whose addresses have the prefix",
        "eam": "explicit address mappings (RFC 7757)",
        "clients": "IPv4 addresses of all other IPv6 hosts, one each, as they begin to send",
        "source": "source of ICMP errors, an IPv4 address of the node",
        "source_ipv6": "source of ICMPv6 errors, an IPv6 address of the node",
    },
    "nsh": {"paths": "what becomes of packets, by service path and index"},
    "nsh_encap": {"rules": "rules in order: who gets which header"},
    "policer": {
        "green": "pass, drop, {dscp: N} or {output: NAME}",
        "yellow": "pass, drop, {dscp: N} or {output: NAME}",
        "red": "pass, drop, {dscp: N} or {output: NAME}",
    },
    "router": {
        "addresses": "of its own, by port, with their networks' lengths: it lives in these",
        "routes": "PREFIX [via ADDRESS] [dev PORT], or mappings; or {kernel: NETNS}",
        "neighbours": "MAC addresses of those that are not asked for it",
    },
    "srv6": {"sids": "its segments, and what becomes of packets to them"},
    "srv6_encap": {
        "source": "source address of the outer header, one of the node's",
        "rules": "rules in order: who gets which segments",
    },
    "ids": {"variables": "what $NAME means in the rules: addresses or ports"},
    "vpn": {
        "outside": "ports that tunnels go out by, and come in by",
        "policies": "in order: what is protected, and what not",
    },
}
# Parameters that are paths of files to read.
FILES: dict[str, tuple[str, ...]] = {
    "firewall": ("rules_file",),
    "router": ("routes_file", "neighbours_file"),
    "ids": ("rules_file",),
    "vpn": ("sa_file",),
}
