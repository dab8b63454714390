# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy.bench.nf/2: cycles per packet of network functions in memory, as bench-nf prints it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cycles(_Model):
    """TSC ticks per packet: of all repeats the median and the extremes, and each of them."""

    median: NonNegativeFloat
    min: NonNegativeFloat
    max: NonNegativeFloat
    repeats: tuple[NonNegativeFloat, ...]


class FunctionRow(_Model):
    """One function (or path, or reference) with one number of routes and rules."""

    function: str
    entries: NonNegativeInt  # 0: it has no table
    cycles_per_packet: Cycles  # a function's own, as the node counts busy cycles; all others: whole
    with_path_cycles_per_packet: Cycles | None = None  # a function's, from received buffers on
    second_core_cycles_per_packet: Cycles | None = None  # of a ring between two cores

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
    flows: PositiveInt
    l2_bytes: PositiveInt
    working_set_bytes: PositiveInt


class NfBench(_Model):
    """The document of one run."""

    schema_tag: Literal["convoy.bench.nf/2"] = Field(alias="schema")
    results: tuple[FunctionRow, ...]
    host: CostsHost

    def row(self, function: str, entries: int) -> FunctionRow | None:
        """Return the row of a function, or None where it was not measured."""
        for row in self.results:
            if (row.function, row.entries) == (function, entries):
                return row
        return None
