# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Functions as metrics: what all count, and what one kind knows."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from convoy.metrics.exposition import Kind, Metric, Page, label

Values = Mapping[str, Any]

# A function that several chains share counts their packets together: chain="a,b".
OWN = ("function", "chain")

FUNCTION_INFO = Metric(
    Kind.INFO, "convoy_function", "A function, its type and its chains.", (*OWN, "type")
)
FUNCTION = {
    key: Metric(kind, f"convoy_function_{name}", words, OWN)
    for key, kind, name, words in (
        ("packets", Kind.COUNTER, "packets", "Packets that came to the function."),
        ("bytes", Kind.COUNTER, "bytes", "Bytes of these packets."),
        ("busy_cycles", Kind.COUNTER, "busy_cycles", "Cycles that these packets took."),
        ("originated", Kind.COUNTER, "originated_packets", "Packets that the function made."),
        ("absorbed", Kind.COUNTER, "absorbed_packets", "Packets that it consumed."),
        ("held", Kind.GAUGE, "held_packets", "Packets that it keeps now."),
        (
            "copied_out",
            Kind.COUNTER,
            "copied_out_packets",
            "Packets copied out of a buffer that several shared.",
        ),
    )
}
LATENCY = {
    key: Metric(Kind.HISTOGRAM, f"convoy_function_{key}_seconds", words, (*OWN, "le"))
    for key, words in (
        ("latency", "From when packets came to the function until they went on; drawn ones."),
        ("ring_latency", "In the ring before the function, of packets that were drawn."),
    )
}
DROPPED = Metric(
    Kind.COUNTER,
    "convoy_function_dropped_packets",
    "Packets that the function dropped.",
    (*OWN, "reason"),
)
OUTPUT = Metric(
    Kind.COUNTER,
    "convoy_function_output_packets",
    "Packets that left by an output.",
    (*OWN, "output"),
)
RULE = Metric(
    Kind.COUNTER,
    "convoy_function_rule_packets",
    "Packets that rules of a name decided; of a stateful firewall, flows.",
    (*OWN, "rule"),
)
NO_RULE = Metric(Kind.COUNTER, "convoy_function_unmatched_packets", "The same, of no rule.", OWN)

BACKEND_UP = Metric(
    Kind.GAUGE,
    "convoy_balancer_backend_up",
    "Whether health checks say that the backend answers.",
    (*OWN, "backend"),
)
BACKEND = {
    key: Metric(kind, f"convoy_balancer_backend_{name}", words, (*OWN, "backend"))
    for key, kind, name, words in (
        ("flows", Kind.GAUGE, "flows", "Flows to the backend now."),
        ("created", Kind.COUNTER, "created_flows", "Flows that began."),
        ("share", Kind.GAUGE, "share_ratio", "Part of the table that leads to the backend."),
        ("probes", Kind.COUNTER, "probes", "Health checks sent."),
        ("answers", Kind.COUNTER, "probe_answers", "Health checks answered."),
    )
}
CACHE_REFUSED = Metric(
    Kind.COUNTER,
    "convoy_cache_refused_answers",
    "Answers that were not learned, by why.",
    (*OWN, "reason"),
)
NAT_PORTS = Metric(
    Kind.GAUGE,
    "convoy_nat_ports",
    "External ports by the state of their block: used by a subscriber, resting, free.",
    (*OWN, "state"),
)
NEIGHBOURS = Metric(
    Kind.GAUGE, "convoy_router_neighbours", "Neighbours by their state.", (*OWN, "state")
)
ROUTES = Metric(Kind.GAUGE, "convoy_router_routes", "Routes.", (*OWN, "family"))
COLOURED = {
    key: Metric(
        Kind.COUNTER, f"convoy_policer_{key}", f"{key.capitalize()} by colour.", (*OWN, "colour")
    )
    for key in ("packets", "bytes")
}
SID = Metric(Kind.COUNTER, "convoy_srv6_sid_packets", "Packets to a segment.", (*OWN, "sid"))
NSH_PATH = Metric(
    Kind.COUNTER,
    "convoy_nsh_path_packets",
    "Packets by service path and index.",
    (*OWN, "path", "index"),
)
IDS_RULE = Metric(
    Kind.COUNTER, "convoy_ids_rule_packets", "Packets that a rule matched.", (*OWN, "rule")
)
_SA = (*OWN, "direction", "policy", "spi")
SA = {
    key: Metric(Kind.COUNTER, f"convoy_vpn_sa_{name}", words, _SA)
    for key, name, words in (
        ("packets", "packets", "Packets of a security association."),
        ("bytes", "bytes", "Bytes of these packets."),
        ("replayed", "replayed_packets", "Packets that came twice, or too late."),
        ("bad_tags", "forged_packets", "Packets whose tag was wrong."),
    )
}
SA_LIMIT = Metric(
    Kind.GAUGE,
    "convoy_vpn_sa_limit_reached",
    "Whether a security association reached its soft or its hard limit.",
    (*_SA, "limit"),
)
VPN_POLICY = Metric(
    Kind.COUNTER, "convoy_vpn_policy_packets", "Packets by named policy.", (*OWN, "policy")
)

# Of a type of function: numbers of its info by their keys.
NUMBERS = {
    kind: {key: Metric(what, f"convoy_{kind}_{name}", words, OWN) for key, what, name, words in all}
    for kind, all in {
        "bridge": (
            ("learned", Kind.GAUGE, "stations", "MAC addresses that it knows now."),
            ("entries", Kind.GAUGE, "max_stations", "MAC addresses that it has room for."),
        ),
        "cache": (
            ("hits", Kind.COUNTER, "hits", "Queries that were answered here."),
            ("misses", Kind.COUNTER, "misses", "Queries that went on to their server."),
            ("others", Kind.COUNTER, "other_queries", "Queries of kinds that are not answered."),
            ("learned", Kind.COUNTER, "learned_answers", "Answers that were learned."),
            ("expired", Kind.COUNTER, "expired_answers", "Answers found too old."),
            ("evicted", Kind.COUNTER, "evicted_answers", "Answers that made room for others."),
            ("entries", Kind.GAUGE, "entries", "Answers that it has now."),
        ),
        "firewall": (("rules_count", Kind.GAUGE, "rules", "Rules."),),
        "ids": (
            ("rules_count", Kind.GAUGE, "rules", "Rules."),
            ("rules_skipped", Kind.GAUGE, "skipped_rules", "Rules beyond the subset, left out."),
            ("searched_packets", Kind.COUNTER, "searched_packets", "Payloads searched."),
            ("searched_bytes", Kind.COUNTER, "searched_bytes", "Bytes of these."),
            ("streams", Kind.COUNTER, "streams", "TCP connections matched as streams."),
            ("streams_refused", Kind.COUNTER, "refused_streams", "No room for these."),
            ("alerts", Kind.COUNTER, "alerts", "Alerts."),
            ("alerts_suppressed", Kind.COUNTER, "suppressed_alerts", "Kept back by thresholds."),
            ("alerts_lost", Kind.COUNTER, "lost_alerts", "Alerts that were not written."),
            ("over_budget", Kind.COUNTER, "over_budget_packets", "Their rules needed too much."),
        ),
        "nat": (
            ("mappings", Kind.GAUGE, "mappings", "Mappings now."),
            ("subscribers", Kind.GAUGE, "subscribers", "Internal addresses that have ports."),
            ("block_log_lost", Kind.COUNTER, "lost_log_events", "Events not in the block log."),
        ),
        "nat64": (
            ("packets_to_ipv4", Kind.COUNTER, "to_ipv4_packets", "IPv6 packets that became IPv4."),
            ("packets_to_ipv6", Kind.COUNTER, "to_ipv6_packets", "IPv4 packets that became IPv6."),
            ("fragments", Kind.COUNTER, "fragments", "Fragments made, beside the first of each."),
            ("icmp_errors_sent", Kind.COUNTER, "icmp_errors", "ICMP errors sent."),
            ("clients", Kind.GAUGE, "clients", "IPv4 addresses that clients were given."),
        ),
        "policer": (("entries", Kind.GAUGE, "meters", "Meters that are in use."),),
        "router": (
            ("address_conflicts", Kind.COUNTER, "address_conflicts", "Others with its address."),
            ("solicitations", Kind.COUNTER, "solicitations", "Questions for neighbours sent."),
            ("answered", Kind.COUNTER, "answered_packets", "Answers about its own addresses."),
            ("icmp_errors", Kind.COUNTER, "icmp_errors", "ICMP errors sent."),
            ("icmp_errors_limited", Kind.COUNTER, "icmp_errors_limited", "ICMP errors held back."),
            ("fragmented", Kind.COUNTER, "fragmented_packets", "Packets sent as fragments."),
            ("kernel_routes", Kind.GAUGE, "kernel_routes", "Routes taken from the kernel."),
            ("kernel_changes", Kind.COUNTER, "kernel_changes", "Changes of these."),
            ("kernel_overruns", Kind.COUNTER, "kernel_overruns", "Times that changes got lost."),
            ("kernel_packets_up", Kind.COUNTER, "kernel_tx_packets", "Packets to the kernel."),
            ("kernel_packets_down", Kind.COUNTER, "kernel_rx_packets", "Packets of the kernel."),
            ("kernel_packets_lost", Kind.COUNTER, "kernel_lost_packets", "Not taken by it."),
        ),
        "srv6": (("icmp_errors_sent", Kind.COUNTER, "icmp_errors", "ICMP errors sent."),),
        "vpn": (
            ("rest_packets_out", Kind.COUNTER, "unmatched_packets", "Packets of no policy."),
            ("icmp_errors_sent", Kind.COUNTER, "icmp_errors", "ICMP errors sent."),
        ),
    }.items()
}


def add_functions(page: Page, functions: Mapping[str, Values]) -> None:
    """Add all functions of a node."""
    for name, function in functions.items():
        labels = f"{label('function', name)},{label('chain', ','.join(function['chains']))}"
        page.add(FUNCTION_INFO, 1, f"{labels},{label('type', function['type'])}")
        for key, metric in FUNCTION.items():
            page.add(metric, function[key], labels)
        for key, metric in LATENCY.items():
            if key in function:
                page.add_latency(metric, function[key], labels)
        for reason, packets in function["drops"].items():
            page.add(DROPPED, packets, f"{labels},{label('reason', reason)}")
        for output, packets in function.get("outputs", {}).items():
            page.add(OUTPUT, packets, f"{labels},{label('output', output)}")
        if "info" in function:
            _add_info(page, labels, function["type"], function["info"])


def _add_info(page: Page, labels: str, kind: str, info: Values) -> None:
    for key, metric in NUMBERS.get(kind, {}).items():
        if key in info:
            page.add(metric, info[key], labels)
    if "rules" in info:
        _add_rules(page, labels, info)
    if kind == "balancer":
        _add_backends(page, labels, info["backends"])
    elif kind == "cache":
        for reason, answers in info["refused"].items():
            page.add(CACHE_REFUSED, answers, f"{labels},{label('reason', reason)}")
    elif kind == "ids":
        _add_hits(page, labels, info)
    elif kind == "nat":
        _add_nat_ports(page, labels, info["blocks"])
    elif kind == "policer":
        for colour, counted in info["colours"].items():
            for key, metric in COLOURED.items():
                page.add(metric, counted[key], f"{labels},{label('colour', colour)}")
    elif kind == "router":
        for family, routes in info["routes"].items():
            page.add(ROUTES, routes, f"{labels},{label('family', family)}")
        for key, number in info.items():
            if key.startswith("neighbours_"):
                state = key.removeprefix("neighbours_")
                page.add(NEIGHBOURS, number, f"{labels},{label('state', state)}")
    elif kind == "srv6":
        _add_sums(page, SID, labels, ((label("sid", one["sid"]), one) for one in info["sids"]))
    elif kind == "vpn":
        _add_vpn(page, labels, info)
    elif kind == "nsh":
        paths = (
            (f"{label('path', str(one['path']))},{label('index', str(one['index']))}", one)
            for one in info["paths"]
        )
        _add_sums(page, NSH_PATH, labels, paths)


def _add_hits(page: Page, labels: str, info: Values) -> None:
    hits = ((label("rule", f"{one['gid']}:{one['sid']}"), one) for one in info["hits"])
    _add_sums(page, IDS_RULE, labels, hits)


def _add_vpn(page: Page, labels: str, info: Values) -> None:
    for sa in info["sas"]:
        own = ",".join(label(key, str(sa[key])) for key in ("direction", "policy", "spi"))
        for key, metric in SA.items():
            if key in sa:
                page.add(metric, sa[key], f"{labels},{own}")
        for limit in ("soft", "hard"):
            reached = int(sa[f"{limit}_limit_reached"])
            page.add(SA_LIMIT, reached, f"{labels},{own},{label('limit', limit)}")
    named = (one for one in info["policies"] if "name" in one)
    packets = ((label("policy", one["name"]), {"packets": one["packets_out"]}) for one in named)
    _add_sums(page, VPN_POLICY, labels, packets)


def _add_rules(page: Page, labels: str, info: Values) -> None:
    """Add rules by name. Of more rules than it lists a node lists those with a name first.

    Where all that it lists have names there may be others: which ones are listed depends on
    traffic then, and none is added.
    """
    rules = info["rules"]
    named = [rule for rule in rules if "name" in rule]
    if len(named) < len(rules) or info.get("rules_count", len(rules)) == len(rules):
        _add_sums(page, RULE, labels, ((label("rule", rule["name"]), rule) for rule in named))
    for key in ("default_packets", "rest_packets"):
        if key in info:
            page.add(NO_RULE, info[key], labels)


def _add_sums(page: Page, metric: Metric, labels: str, counted: Any) -> None:
    """Add packets by a label, which several may have together."""
    sums: Counter[str] = Counter()
    for by, one in counted:
        sums[by] += one["packets"]
    for by, packets in sums.items():
        page.add(metric, packets, f"{labels},{by}")


def _add_backends(page: Page, labels: str, backends: list[Values]) -> None:
    for backend in backends:
        own = f"{labels},{label('backend', backend['address'])}"
        if "up" in backend:
            page.add(BACKEND_UP, int(backend["up"]), own)
        for key, metric in BACKEND.items():
            if key in backend:
                page.add(metric, backend[key], own)


def _add_nat_ports(page: Page, labels: str, blocks: Values) -> None:
    states = {state: blocks[state] for state in ("used", "resting")}
    states["free"] = blocks["total"] - sum(states.values())
    for state, number in states.items():
        page.add(NAT_PORTS, number * blocks["ports"], f"{labels},{label('state', state)}")
