# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What aggregation saves on the PA-Flow paper's topologies: the paper's node, and our own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from convoy.errors import InputError
from convoy.sim.engine import Engine, ShareDone, run
from convoy.sim.load import Loaded, open_topology
from convoy.sim.resolve import resolve

Json = dict[str, Any]
TOPOLOGIES = ("I", "II")
WIRE_OVERHEAD = 20  # bytes of each frame: preamble and gap
WAIT_MAX_US = 1e6


@dataclass(frozen=True)
class Way:
    """One network with one way to aggregate, and what it gave."""

    topology: str  # I or II
    node: str  # paper, or the profile of ours
    wait_us: float | None  # None: unaggregated
    offered_pps: float
    frames_at_sink: int
    packets_at_sink: int
    bytes_per_packet: float | None  # on the wire, for each original packet on a link
    busy_cores: float  # sum of the functions' busy shares
    busy_most: float  # of the busiest function
    cpu_ns: float | None  # of busy time for each original packet that a function served
    p50_s: float | None
    p99_s: float | None
    dropped_packets: int
    complete: bool

    @property
    def frames_saved(self) -> float | None:
        """Return the share of frames that the links to the sink are spared, per packet."""
        packets = self.packets_at_sink
        return 1 - self.frames_at_sink / packets if packets else None

    def document(self) -> Json:
        """Return it as JSON has it."""
        return vars(self) | {"frames_saved": self.frames_saved}


def way_of(topology: str, node: str, wait_us: float | None, result: Json) -> Way:
    """Return what a result of convoy-sim says."""
    functions = [one for one in result["nodes"] if one["kind"] == "function"]
    (sink,) = (one for one in result["nodes"] if one["kind"] == "sink")
    last = [link for link in result["links"] if link["to"] == sink["name"]]
    packets = sum(link["packets"] for link in result["links"])
    wire = sum(link["bytes"] + WIRE_OVERHEAD * link["frames"] for link in result["links"])
    served = sum(one["served_packets"] for one in functions)
    busy = sum(one["busy_share"] for one in functions)
    latency = sink["latency"] or {}
    return Way(
        topology,
        node,
        wait_us,
        result["original_packets"] / result["simulated_s"],
        sum(link["frames"] for link in last),
        sum(link["packets"] for link in last),
        wire / packets if packets else None,
        busy,
        max(one["busy_share"] for one in functions),
        busy * result["simulated_s"] * 1e9 / served if served else None,
        latency.get("p50_s"),
        latency.get("p99_s"),
        sum(one["dropped_packets"] for one in functions),
        result["complete"],
    )


def _opened(name: str, overrides: Json, load: float) -> Loaded:
    ((source, of),) = open_topology(name).topology.sources.items()
    mpps = of.on_off.mpps
    return open_topology(name, overrides | {f"sources.{source}.on-off.mpps": mpps * load})


def compare(
    waits_us: Sequence[float] = (0.0, 5.0, 20.0),
    load: float = 1.0,
    profile: str | None = None,
    duration_s: float = 0.05,
    seed: int = 1,
    engine: Engine = "auto",
    progress: Callable[[str], ShareDone] | None = None,
) -> list[Way]:
    """Run both topologies with the paper's node and ours, with and without aggregation.

    load: times the paper's rates. Raises as convoy.sim.engine.run.
    """
    for given in waits_us:
        if not 0 <= given <= WAIT_MAX_US:
            raise InputError(
                f"--wait-us '{given:g}': give microseconds from 0 to {WAIT_MAX_US:g}, as in 0,5,20"
            )
    ways: list[Way] = []
    common: Json = {"simulate": {"duration-s": duration_s, "seed": seed}}
    for number, topology in enumerate(TOPOLOGIES, 1):
        mine: Json = common if profile is None else common | {"profile": profile}
        todo: list[tuple[str, str, Json, float | None]] = [
            ("paper", f"paper-{number}", common, None),
            ("paper", f"paper-{number}", common, 20.0),
            ("convoy", f"node-{number}", mine, None),
        ]
        todo += [
            ("convoy", f"node-{number}", mine | {"aggregation.queue.wait-us": each}, each)
            for each in waits_us
        ]
        for node, name, overrides, wait in todo:
            network = resolve(_opened(name, overrides, load), wait is not None)
            on_progress = progress(f"({topology}), {node}") if progress else None
            ways.append(way_of(topology, node, wait, run(network.data, engine, on_progress)))
            if not ways[-1].complete:
                return ways
    return ways
