# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Rates that advice may rest on: rows of the asked traffic, sorted by the way to run a chain.

Only like is compared with like. Rows of convoys say nothing about plain packets, nor the other way
round; nor do bursts, a slowed core, several chains on a core, or an A/A control about the load that
is asked. Deployment, ports, placement and the device's options make another way to run a chain.
Several cores are the same way with more cores, where each has a queue pair.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from convoy.advise.traffic import Traffic
from convoy.report.row import Row, path_name

KINDS = {"ovs-dpdk": "rules of the switch", "linux": "a container (kernel)"}
NAMES = {"vm": "a virtual machine"}
NOT_A_HOME = frozenset({"dummy", "testpmd"})  # a curve; and what forwards and nothing else
SERVERS = ("link", "veth")  # a convoyd for each function, as between servers (scenario numa)


@dataclass(frozen=True)
class Way:
    """How a chain is run; rows of the same way differ in functions and cores only."""

    device: str
    deployment: str
    port_kind: str
    placement: str
    options: tuple[tuple[str, str], ...]
    queues: int  # of each core
    run: str  # of which run, where there are several: these may be of different machines

    def __str__(self) -> str:
        """Return it as people read it."""
        parts = [KINDS.get(self.device) or f"{NAMES.get(self.device, self.device)}, "
                 f"{self.deployment}"]  # fmt: skip
        parts += [f"{self.queues} queues a core"] if self.queues > 1 else []
        parts += [self.placement] if self.placement else []
        parts += [f"{name}={value}" for name, value in self.options]
        return ", ".join(parts) + (f" [{self.run}]" if self.run else "")


@dataclass(frozen=True)
class Rate:
    """A row's rate, and what it was measured under."""

    scenario: str
    setup: str
    functions: tuple[str, ...]
    size: str
    convoys: int  # packets in a frame, on the way in; 0: plain packets
    cores: int
    entries: int | None
    flows: int | None
    rate_pps: float
    lower_bound: bool  # censored: the tester could not offer more
    emulated: str  # a remark that makes it no candidate; empty: none
    tsc_hz: float | None = None  # of the machine

    @property
    def mpps(self) -> str:
        """Return the rate as people write it."""
        return f"{'≥ ' if self.lower_bound else ''}{self.rate_pps / 1e6:.2f} Mpps"

    def __str__(self) -> str:
        """Return which row of the results it is."""
        load = f"convoys of {self.convoys}" if self.convoys else "plain packets"
        size = f"{self.size} B" if self.size.isdigit() else self.size
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        more = [f"{self.entries} routes or rules"] if self.entries is not None else []
        more += [f"{self.flows:,} flows"] if self.flows is not None else []
        where = ", ".join((f"{size} {load}", cores, *more))
        return f"{self.mpps} ({self.scenario}: {self.setup}; {where})"

    @property
    def path(self) -> str:
        """Return the functions as reports write them."""
        return path_name(self.functions)


def comparable(row: Row, traffic: Traffic) -> bool:
    """Return whether a row says something about this traffic through one chain."""
    under = row.conditions
    arrives = under.plain if not traffic.convoys else (
        under.aggregates and under.convoys == traffic.convoys
    )  # fmt: skip
    return (
        row.rate_pps is not None
        and row.contends
        and row.device not in NOT_A_HOME
        and row.size == traffic.size
        and arrives
        and under.evenly
        and under.chains == 1
        # Of several cores that share the queues, some would be without work.
        and (under.deployment != "inline" or under.queues % under.cores == 0)
    )


def _way(row: Row) -> Way:
    under = row.conditions
    return Way(
        row.device,
        under.deployment,
        row.port_kind,
        under.placement,
        under.options,
        max(under.queues // under.cores, 1),
        row.run,
    )


def _rate(row: Row) -> Rate:
    under = row.conditions
    emulated = next((note for note in row.notes if "not comparable" in note), "")
    return Rate(
        row.scenario,
        row.setup,
        row.functions,
        row.size,
        0 if under.plain else under.convoys,
        under.cores,
        under.entries,
        under.flows,
        row.rate_pps or 0.0,
        row.lower_bound,
        emulated,
        row.tsc_hz,
    )


def evidence(rows: Iterable[Row], traffic: Traffic) -> dict[Way, tuple[Rate, ...]]:
    """Return the rates that say something about a load, by the way to run a chain."""
    result: dict[Way, list[Rate]] = {}
    for row in rows:
        if comparable(row, traffic):
            result.setdefault(_way(row), []).append(_rate(row))
    return {way: tuple(rates) for way, rates in result.items()}
