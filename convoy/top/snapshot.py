# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node at one moment, as the page draws it: what its plan joins, and what it counted."""

import time
from collections.abc import Mapping
from typing import Any

from convoy.client import Client, ClientError
from convoy.host.counts import SCHEMA

Json = dict[str, Any]


def read(client: Client) -> Json:
    """Return a node's snapshot (convoy.watch/1). Raises ClientError.

    Counters are totals since the node's start; `at_ms` is of a clock that only goes forward.
    """
    counts, plan = client.counts(), client.plan()
    if counts.get("schema") != SCHEMA:
        raise ClientError(
            f"the node is Convoy {client.hello.version}, whose counts are "
            f"{counts.get('schema')}; this one reads {SCHEMA}"
        )
    try:
        return _snapshot(client, counts, plan)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ClientError(f"the node's counts cannot be read: {error!r}") from None


def _snapshot(client: Client, counts: Mapping[str, Any], plan: Mapping[str, Any]) -> Json:
    return {
        "schema": "convoy.watch/1",
        "pid": client.hello.pid,
        "version": client.hello.version,
        "at_ms": time.monotonic_ns() // 1_000_000,
        "tsc_hz": counts["tsc_hz"],
        "ports": {name: _port(port) for name, port in counts["ports"].items()},
        "chains": chains_of(plan),
        "functions": {name: _function(one) for name, one in counts["functions"].items()},
        "next_hops": {name: _next_hop(next_hop) for name, next_hop in counts["next_hops"].items()},
        "flows": {name: _flows(flows) for name, flows in counts["flows"].items()},
        "workers": [_worker(worker) for worker in counts["workers"]],
        "accounting": dict(counts["accounting"]),
    }


def chains_of(plan: Mapping[str, Any]) -> list[Json]:
    """Return a plan's chains: ports, functions in their order, and where outputs lead."""
    outputs = {
        function["name"]: {output["name"]: output["chain"] for output in function["outputs"]}
        for function in plan["functions"]
        if function.get("outputs")
    }
    chains = []
    for chain in plan["chains"]:
        path: list[str] = []
        for stage in plan["stages"]:  # of a pipeline one behind the other; of workers all alike
            if stage["chain"] == chain["name"]:
                path += [name for name in stage["path"] if name not in path]
        chains.append(
            {
                "name": chain["name"],
                "in": chain.get("in"),
                "out": chain.get("out"),
                "path": path,
                "outputs": {name: outputs[name] for name in path if name in outputs},
            }
        )
    return chains


def _some(drops: Mapping[str, int]) -> dict[str, int]:
    return {why: count for why, count in drops.items() if count}


def _latencies(counted: Mapping[str, Any], *keys: str) -> Json:
    """Return what was timed; an older node has none of it."""
    return {key: counted[key] for key in keys if key in counted}


def _port(port: Mapping[str, Any]) -> Json:
    keys = ("kind", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes")
    return {
        **{key: port[key] for key in keys},
        "link": (port.get("device") or {}).get("link"),
        **_latencies(port, "rx_wait", "rx_latency", "tx_latency"),
        "drops": _some(port["drops"]),
    }


def _function(function: Mapping[str, Any]) -> Json:
    keys = ("type", "packets", "bytes", "busy_cycles", "originated", "absorbed", "held")
    return {
        **{key: function[key] for key in keys},
        "drops": _some(function["drops"]),
        "outputs": dict(function.get("outputs") or {}),
        **_latencies(function, "ring_latency", "latency"),
    }


def _next_hop(next_hop: Mapping[str, Any]) -> Json:
    return {key: next_hop[key] for key in ("port", "packets", "frames")}


def _flows(flows: Mapping[str, Any]) -> Json:
    keys = ("flows_ipv4", "flows_ipv6", "max", "max_ipv6", "created", "timed_out")
    return {**{key: flows[key] for key in keys}, "drops": _some(flows["drops"])}


def _worker(worker: Mapping[str, Any]) -> Json:
    return {
        key: worker[key] for key in ("core", "busy_cycles", "total_cycles", "longest_iteration_ns")
    }
