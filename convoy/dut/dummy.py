# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A device that is a curve: how many cycles a packet costs, what it does when there are too many.

It tests the search, the bench and the report where there is no network, in no time; its results
are marked, so that nobody takes them for a measurement. Its tester is convoy.tester.dummy.
"""

from dataclasses import dataclass

from convoy.chain.functions import FUNCTIONS
from convoy.dut.base import Ability, Cost, Device, Presence, Running, Setup

KIND = "dummy"  # of its ports
TSC_HZ = 2_600_000_000


@dataclass(frozen=True)
class Curve:
    """How it answers."""

    cycles_per_packet: float = 200.0
    cycles_per_byte: float = 0.02
    function_cycles: float = 40.0  # more, for each function
    latency_ns: float = 2000.0
    hiccups: float = 0.0  # share of trials that lose hiccup_loss more
    hiccup_loss: float = 0.02
    invalid: float = 0.0  # share of trials of which the tester says that it had a pause
    noise: float = 0.0  # standard deviation of its speed from trial to trial, a share

    def cycles(self, functions: int, frame_bytes: float) -> float:
        """Return what a packet costs."""
        own = self.cycles_per_packet + functions * self.function_cycles
        return own + frame_bytes * self.cycles_per_byte

    def capacity_pps(self, functions: int, frame_bytes: float) -> float:
        """Return the rate it keeps up with."""
        return TSC_HZ / self.cycles(functions, frame_bytes)


class RunningDummy(Running):
    """A curve with its functions."""

    def __init__(self, curve: Curve, setup: Setup) -> None:
        self.curve = curve
        self.functions = len(setup.functions)
        self.commands = (("dummy", *(function.type for function in setup.functions)),)
        self._alive = True
        self._cycles = 0
        self._packets = 0

    def ready(self, deadline_s: float) -> None:
        """It is."""

    def alive(self) -> bool:
        """Return whether it was not stopped."""
        return self._alive

    def spent(self, packets: int, frame_bytes: float) -> None:
        """Count what so many packets cost it."""
        self._packets += packets
        self._cycles += round(packets * self.curve.cycles(self.functions, frame_bytes))

    def cost(self) -> Cost:
        """Return what was counted."""
        return Cost(self._cycles, self._packets, "the dummy's curve")

    def stop(self) -> None:
        """End it."""
        self._alive = False


class Dummy(Device):
    """The curve as a device."""

    name = "dummy"
    ability = Ability(
        functions=frozenset(FUNCTIONS),
        port_kinds=frozenset({KIND}),
        deployments=frozenset({"inline", "pipeline", "process"}),
        remembers=True,
    )

    def __init__(self, curve: Curve | None = None) -> None:
        self.curve = curve or Curve()

    def presence(self) -> Presence:
        """It is always here."""
        return Presence("1", remark="a response curve, not a measurement")

    def start(self, setup: Setup) -> Running:
        """Return the curve."""
        return RunningDummy(self.curve, setup)
