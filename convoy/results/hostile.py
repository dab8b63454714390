# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy.bench.hostile/2: what a guest costs its neighbours on the same worker."""

import statistics
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

Layout = Literal["split", "packed"]


class _Model(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Trial(_Model):
    """One round with one guest."""

    neighbour_pps: NonNegativeFloat  # that the neighbour's chain carried
    kept: NonNegativeFloat  # neighbour_pps in parts of that of the same round's reference
    longest_poll_iteration_ns: NonNegativeInt
    guest_rx_pkts: NonNegativeInt  # that the node took from the guest
    guest_rx_errors: NonNegativeInt  # that the node refused
    guest_tx_pkts: NonNegativeInt  # that the node put into the guest's buffers
    guest_broken_queues: NonNegativeInt  # that the node uses no more


class GuestRow(_Model):
    """One guest of one kind of port."""

    port: str
    layout: Layout | None  # of its rings; None: the port has only one
    guest: str
    what: str
    reference: str  # the guest that it is compared with
    bound: float | None  # kept must not be less; None: a guest that may cost its share
    trials: tuple[Trial, ...]

    @property
    def kind(self) -> str:
        """Return the kind of port and of its rings, for a person."""
        return self.port if self.layout is None else f"{self.port} {self.layout}"

    @property
    def kept(self) -> float:
        """Return the median over the rounds."""
        return statistics.median(trial.kept for trial in self.trials)

    @property
    def longest_us(self) -> float:
        """Return the median of the rounds' longest poll iterations."""
        return statistics.median(t.longest_poll_iteration_ns for t in self.trials) / 1e3

    @property
    def within_bound(self) -> bool | None:
        """Return whether it costs its neighbours no more than it may; None: no bound."""
        return None if self.bound is None else self.kept >= self.bound


class HostileHost(_Model):
    """Where it was measured."""

    cpu: str
    node_core: NonNegativeInt
    tester_core: NonNegativeInt
    frame_bytes: int
    trial_s: PositiveFloat


class HostileBench(_Model):
    """The document of one run."""

    schema_tag: Literal["convoy.bench.hostile/2"] = Field(
        "convoy.bench.hostile/2", alias="schema", serialization_alias="schema"
    )
    rows: tuple[GuestRow, ...]
    host: HostileHost
