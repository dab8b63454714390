# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a node's work costs, as convoy bench profile measures it: cycles to service times.

An unaggregated packet costs port + its bytes + its function. In a convoy it costs packet +
its bytes + its function, and each convoy that comes and leaves again port + frame on top:

    "costs": {"tsc_hz": 2.6e9,
              "port": {"cycles": 200, "cycles_per_byte": 0.1},   a frame in and out again
              "frame": {"cycles": 40},         a convoy: its header, disaggregated and aggregated
              "packet": {"cycles": 8},         each packet inside it, taken out and put in
              "aggregating": {"cycles": 90},   optional: a single packet in, and out in a convoy
              "functions": {"router": {"cycles": 20, "aggregated_cycles": 9}, ...}}    its own work

aggregated_cycles, optional, is the work on a packet that came in a convoy. What a single packet
costs more if it leaves as it came (port less aggregating) is what a frame costs to be sent.
"""

import statistics
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from convoy.errors import InputError

PS_PER_S = 10**12


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Cycles(_Strict):
    """TSC ticks."""

    cycles: float = Field(ge=0)


class Own(Cycles):
    """A function's own work on a packet."""

    aggregated_cycles: float | None = Field(None, ge=0)


class Port(Cycles):
    """A frame in and out again: fixed, and for each of its bytes."""

    cycles_per_byte: float = Field(ge=0)


class Costs(_Strict):
    """The costs of one node."""

    tsc_hz: float = Field(gt=0)
    port: Port
    frame: Cycles
    packet: Cycles
    aggregating: Cycles | None = None
    functions: dict[str, Own]

    def _ps(self, cycles: float) -> int:
        return round(cycles / self.tsc_hz * PS_PER_S)

    def own(self, function: str, convoys: bool = False) -> float:
        """Return a function's own cycles per packet. Raises InputError."""
        if function not in self.functions:
            raise InputError(
                f"like: '{function}': the profile has {', '.join(sorted(self.functions))}"
            )
        one = self.functions[function]
        if convoys and one.aggregated_cycles is not None:
            return one.aggregated_cycles
        return one.cycles

    def service(self, function: str, convoys: bool) -> dict[str, int]:
        """Return a node's service, in picoseconds, as the network's JSON has it."""
        own = self.own(function, convoys)
        per_byte = self._ps(self.port.cycles_per_byte)
        if not convoys:
            return {
                "per_packet_ps": max(1, self._ps(self.port.cycles + own)),
                "per_byte_ps": per_byte,
            }
        port = self.port.cycles
        sent = max(0.0, port - (port if self.aggregating is None else self.aggregating.cycles))
        return {
            "per_packet_ps": max(1, self._ps(self.packet.cycles + own)),
            "per_byte_ps": per_byte,
            "per_frame_ps": self._ps(port + self.frame.cycles - sent),
            "per_sent_ps": self._ps(sent),
            "per_single_ps": max(1, self._ps(port - sent + self.own(function))),
        }

    def rate_pps(self, function: str, packets: int, packet_bytes: int) -> float:
        """Return the packets per second of a node that is always busy; packets: in a frame."""
        service = self.service(function, convoys=packets > 1)
        each = service["per_packet_ps"] + packet_bytes * service["per_byte_ps"]
        frame = service.get("per_frame_ps", 0) + service.get("per_sent_ps", 0)
        return PS_PER_S / (each + frame / packets)


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the least squares line through points (x, y): its height at 0, its slope."""
    try:
        slope, height = statistics.linear_regression(*zip(*points, strict=True))
    except (statistics.StatisticsError, TypeError):
        raise InputError("a cost per byte needs two sizes; give --sizes 64,1500") from None
    return height, slope


def fit(
    tsc_hz: float,
    port_cycles: Mapping[int, float],
    function_cycles: Mapping[str, float],
    frame_cycles: Mapping[int, float],
) -> Costs:
    """Return the costs that fit what was measured. Raises InputError.

    port_cycles: of a frame in and out, by its bytes; function_cycles: own, per packet;
    frame_cycles: disaggregating and aggregating, of each packet, by packets in it.
    """
    fixed, per_byte = line(list(port_cycles.items()))
    # c(n) = frame / n + packet: of n packets together frame + n * packet, weighted alike.
    packet, frame = line([(1 / n, cycles) for n, cycles in frame_cycles.items()])
    return Costs(
        tsc_hz=tsc_hz,
        port=Port(cycles=round(max(0.0, fixed), 2), cycles_per_byte=round(max(0.0, per_byte), 4)),
        frame=Cycles(cycles=round(max(0.0, frame), 2)),
        packet=Cycles(cycles=round(max(0.0, packet), 2)),
        functions={name: Own(cycles=round(cycles, 2)) for name, cycles in function_cycles.items()},
    )
