# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy.bench.nf/3: cycles per packet of network functions in memory, as bench-nf prints it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt


class _Model(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Cycles(_Model):
    """TSC ticks per packet or flow: of all repeats the median, the extremes, and each of them."""

    median: NonNegativeFloat
    min: NonNegativeFloat
    max: NonNegativeFloat
    repeats: tuple[NonNegativeFloat, ...]


class FunctionRow(_Model):
    """One function (or path, or reference) with one number of routes and rules, or of flows."""

    function: str
    entries: NonNegativeInt  # 0: it has no table
    bytes: PositiveInt | None = (
        None  # of packets, with FCS, where that is not the host's frame_bytes
    )
    patterns: PositiveInt | None = None  # that ids searches for
    cycles_per_packet: Cycles  # a function's own, as the node counts busy cycles; all others: whole
    with_path_cycles_per_packet: Cycles | None = None  # a function's, from received buffers on
    second_core_cycles_per_packet: Cycles | None = None  # of a ring between two cores
    # Of functions that remember flows, and of their references. Memory is by flow of a full table.
    flows: PositiveInt | None = None  # that are known
    table_bytes_per_flow: NonNegativeFloat | None = None  # the flow table's; 0: it has none of ours
    functions_bytes_per_flow: NonNegativeFloat | None = None  # what functions keep beside it
    cycles_per_new_flow: Cycles | None = None  # its first packet
    cycles_per_ended_flow: Cycles | None = None  # its time-out
    new_flows_per_second: NonNegativeInt | None = None  # opened and ended, by medians

    @property
    def size(self) -> tuple[int | None, ...]:
        """What rows that can be compared have in common."""
        return self.entries, self.flows, self.bytes, self.patterns

    @property
    def whole(self) -> Cycles:
        """From received buffers to verdicts: what compares with a reference."""
        return self.with_path_cycles_per_packet or self.cycles_per_packet


class CostsHost(_Model):
    """Where and how it was measured."""

    cpu: str
    dpdk: str
    kernel: str
    tsc_hz: PositiveInt
    core: NonNegativeInt
    hugepages: bool
    frame_bytes: PositiveInt  # with FCS
    burst_packets: PositiveInt
    packets: PositiveInt  # different ones
    l2_bytes: PositiveInt
    working_set_bytes: PositiveInt


class NfBench(_Model):
    """The document of one run."""

    schema_tag: Literal["convoy.bench.nf/3"] = Field(alias="schema")
    results: tuple[FunctionRow, ...]
    host: CostsHost

    def like(self, row: FunctionRow, function: str) -> FunctionRow | None:
        """Return another function's row of the same size, or None where it was not measured."""
        for other in self.results:
            if other.function == function and other.size == row.size:
                return other
        return None
