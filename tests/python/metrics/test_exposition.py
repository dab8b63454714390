# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Metrics as text, read back by another implementation's strict parser; and their names."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as older_families

from convoy.metrics import functions, node
from convoy.metrics.exposition import Format, Kind, Metric, Page, label
from convoy.metrics.node import down, page_of

from .conftest import made_up, samples_of, value

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
HOSTILE = 'a"b\\c\nd{e}=,#'


def declared() -> list[Metric]:
    """Every metric that there can be."""
    parsed: list[Metric] = []

    def walk(thing: object) -> None:
        if isinstance(thing, Metric):
            parsed.append(thing)
        elif isinstance(thing, dict):
            for each in thing.values():
                walk(each)

    for module in (node, functions):
        for name, thing in vars(module).items():
            if name[:2] != "__":
                walk(thing)
    return list(dict.fromkeys(parsed))


def test_names_are_as_prometheus_wants_them():
    names = [metric.name for metric in declared()]
    assert len(names) == len(set(names))
    for metric in declared():
        assert re.fullmatch(r"convoy(_[a-z0-9]+)+", metric.name)
        assert not re.search(r"_(total|info|count|sum|bucket|pkts|[num]s|usec|kb|mb)$", metric.name)
        assert metric.help.endswith("."), metric.name


def test_any_name_is_a_label():
    page = Page()
    page.add(node.UP, 1, label("x", HOSTILE))
    assert value(samples_of(page.text()), "convoy_up", x=HOSTILE) == 1
    (family,) = older_families(page.text(Format.TEXT))
    assert family.samples[0].labels == {"x": HOSTILE}


def test_counts_are_said_whole():
    counts = made_up()
    counts["functions"]["f0"]["chains"] = ["a", "b"]
    samples = samples_of(page_of(counts, "1.2.3").text())
    assert value(samples, "convoy_up") == 1
    assert value(samples, "convoy_build_info", version="1.2.3") == 1
    assert value(samples, "convoy_function_packets_total", function="f1", chain="c1") == 10**15 + 1
    assert value(
        samples, "convoy_function_dropped_packets_total",
        function="f2", chain="c2", reason="denied",
    ) == 2  # fmt: skip
    assert value(samples, "convoy_function_bytes_total", function="f0", chain="a,b") == 0
    assert value(
        samples, "convoy_function_rule_packets_total", function="f1", chain="c1", rule="r1"
    ) == 7  # fmt: skip
    assert value(samples, "convoy_port_link_up", port="p1") == 1
    longest = value(samples, "convoy_worker_longest_iteration_seconds", worker="0", core="1")
    assert longest == 1.5e-6


def test_convoys_are_a_histogram():
    samples = samples_of(page_of(made_up(), "1").text())
    name = "convoy_next_hop_frame_packets"
    below = {
        dict(labels)["le"]: number for (key, labels), number in samples.items()
        if key == f"{name}_bucket"
    }  # fmt: skip
    assert below["1.0"] == below["16.0"] == 10
    assert below["32.0"] == below["128.0"] == 14
    assert below["+Inf"] == value(samples, f"{name}_count", next_hop="b") == 15
    assert value(samples, f"{name}_sum", next_hop="b") == 10 + 4 * 23 + 255


def test_bursts_are_a_histogram_whose_buckets_are_the_nodes():
    samples = samples_of(page_of(made_up(), "1").text())
    name = "convoy_port_rx_burst_frames"
    below = [
        value(samples, f"{name}_bucket", port="p1", le=le)
        for le in ("1.0", "4.0", "8.0", "128.0", "256.0", "+Inf")
    ]
    assert below == [5, 5, 7, 7, 8, 8]
    assert value(samples, f"{name}_count", port="p1") == 8
    assert value(samples, f"{name}_sum", port="p1") == 1000  # its frames


def test_latency_is_in_seconds():
    samples = samples_of(page_of(made_up(), "1").text())
    name, of = "convoy_function_latency_seconds", {"function": "f1", "chain": "c1"}
    below = [
        value(samples, f"{name}_bucket", **of, le=le)
        for le in ("2.56e-07", "1.024e-06", "4.096e-06", "0.067108864", "+Inf")
    ]
    assert below == [2, 3, 4, 4, 6]
    assert value(samples, f"{name}_count", **of) == 6
    assert value(samples, f"{name}_sum", **of) == pytest.approx(0.14000262)
    assert value(samples, "convoy_port_rx_wait_seconds_count", port="p1") == 6
    assert not any("ring_latency" in key for key, _ in samples)  # no pipeline


def test_controllers_are_there_only_if_the_node_has_some():
    names = ("entries", "controllers", "connections", "changes", "refused", "frames")
    counts = {name: i for i, name in enumerate((*names, "frames_refused"))}
    samples = samples_of(page_of({**made_up(), "openflow": counts}, "1").text())
    assert value(samples, "convoy_openflow_entries") == 0
    assert value(samples, "convoy_openflow_changes_total") == 3
    assert value(samples, "convoy_openflow_refused_frames_total") == 6
    assert "openflow" not in page_of(made_up(), "1").text()


def test_both_formats_say_the_same():
    page = page_of(made_up(), "1")
    older = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in older_families(page.text(Format.TEXT))
        for sample in family.samples
    }
    assert older == samples_of(page.text())


@pytest.mark.parametrize(
    ("named", "listed", "all_of_them", "is_listed"),
    [
        (2, 2, 2, True),
        (2, 5, 5, True),
        (2, 100, 5000, True),  # the others of those that it lists have no name: no other has one
        (100, 100, 5000, False),  # others may have names: which are listed depends on traffic
    ],
)
def test_rules_by_name(named: int, listed: int, all_of_them: int, is_listed: bool):
    counts = made_up(functions=1)
    rules = [{"index": i, "packets": 1} for i in range(listed)]
    for rule in rules[:named]:
        rule["name"] = f"r{rule['index'] // 2}"  # two share a name
    counts["functions"]["f0"]["info"] = {"rules": rules, "rules_count": all_of_them}
    samples = samples_of(page_of(counts, "1").text())
    values = [n for (name, _), n in samples.items() if name == "convoy_function_rule_packets_total"]
    assert values == ([2.0] * (named // 2) if is_listed else [])


NAT = {
    "mappings": 3, "subscribers": 2, "block_log_lost": 1,
    "blocks": {"used": 2, "resting": 1, "total": 10, "ports": 512},
}  # fmt: skip
CACHE = {"hits": 9, "misses": 2, "refused": {"truncated": 4, "unasked": 0}}
BACKEND = {"address": "192.0.2.1", "flows": 4, "created": 9, "share": 0.5, "up": False}
SA = {
    "direction": "in", "policy": "site", "spi": 4097, "packets": 8, "bytes": 99, "bad_tags": 2,
    "replayed": 1, "soft_limit_reached": True, "hard_limit_reached": False,
}  # fmt: skip
VPN = {
    "sas": [SA], "rest_packets_out": 3, "icmp_errors_sent": 0,
    "policies": [{"name": "site", "packets_out": 7}, {"packets_out": 1}],
}  # fmt: skip
OF_SA = {"direction": "in", "policy": "site", "spi": "4097"}
ROUTER = {"routes": {"ipv4": 3, "ipv6": 1}, "neighbours_reachable": 2, "fragmented": 5}


@pytest.mark.parametrize(
    ("kind", "info", "name", "labels", "wanted"),
    [
        ("nat", NAT, "convoy_nat_ports", {"state": "free"}, 7 * 512),
        ("nat", NAT, "convoy_nat_ports", {"state": "used"}, 1024),
        ("nat", NAT, "convoy_nat_lost_log_events_total", {}, 1),
        ("cache", CACHE, "convoy_cache_hits_total", {}, 9),
        ("cache", CACHE, "convoy_cache_refused_answers_total", {"reason": "truncated"}, 4),
        ("balancer", {"backends": [BACKEND]}, "convoy_balancer_backend_up",
         {"backend": "192.0.2.1"}, 0),
        ("balancer", {"backends": [BACKEND]}, "convoy_balancer_backend_created_flows_total",
         {"backend": "192.0.2.1"}, 9),
        ("router", ROUTER, "convoy_router_routes", {"family": "ipv6"}, 1),
        ("router", ROUTER, "convoy_router_neighbours", {"state": "reachable"}, 2),
        ("router", ROUTER, "convoy_router_fragmented_packets_total", {}, 5),
        ("policer", {"colours": {"red": {"packets": 5, "bytes": 9}}, "entries": 1},
         "convoy_policer_bytes_total", {"colour": "red"}, 9),
        ("nat64", {"packets_to_ipv4": 4, "packets_to_ipv6": 2, "fragments": 1,
                   "icmp_errors_sent": 3}, "convoy_nat64_to_ipv4_packets_total", {}, 4),
        ("nat64", {"clients": 7}, "convoy_nat64_clients", {}, 7),
        ("srv6", {"sids": [{"sid": "fc00::1", "packets": 3}]}, "convoy_srv6_sid_packets_total",
         {"sid": "fc00::1"}, 3),
        ("nsh", {"paths": [{"path": 7, "index": 255, "packets": 3}]},
         "convoy_nsh_path_packets_total", {"path": "7", "index": "255"}, 3),
        ("vpn", VPN, "convoy_vpn_sa_forged_packets_total", OF_SA, 2),
        ("vpn", VPN, "convoy_vpn_sa_limit_reached", OF_SA | {"limit": "soft"}, 1),
        ("vpn", VPN, "convoy_vpn_policy_packets_total", {"policy": "site"}, 7),
        ("vpn", VPN, "convoy_vpn_unmatched_packets_total", {}, 3),
        ("ids", {"hits": [{"gid": 1, "sid": 7, "packets": 3}]}, "convoy_ids_rule_packets_total",
         {"rule": "1:7"}, 3),
        ("ids", {"hits": [], "alerts_lost": 4}, "convoy_ids_lost_alerts_total", {}, 4),
        ("classifier", {"rules": [], "rest_packets": 6}, "convoy_function_unmatched_packets_total",
         {}, 6),
        ("bridge", {"learned": 6, "entries": 8}, "convoy_bridge_stations", {}, 6),
    ],
)  # fmt: skip
def test_what_a_kind_of_function_knows(kind, info, name, labels, wanted):
    counts = made_up(functions=1)
    counts["functions"]["f0"] |= {"type": kind, "info": info}
    samples = samples_of(page_of(counts, "1").text())
    assert value(samples, name, function="f0", chain="c0", **labels) == wanted


def test_a_node_that_is_down_is_one_number():
    assert samples_of(down().text()) == {("convoy_up", frozenset()): 0}


def test_the_page_lists_every_metric():
    rows = re.findall(r"^\| `(convoy_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", PAGE.read_text(), re.M)
    assert rows == [
        (metric.sample if metric.kind != Kind.HISTOGRAM else metric.name, str(metric.kind),
         ", ".join(f"`{name}`" for name in metric.labels if name != "le"), metric.help)
        for metric in declared()
    ]  # fmt: skip
