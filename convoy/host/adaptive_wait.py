# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long frames to a next hop wait for more packets, by what the waiting saves behind it.

Waiting adds latency; what it gives is work saved where the frames go. That work has no worth while
the node there is idle most of the time. So frames wait only if the node there is busy, and only as
long as another step of the wait makes its packets cheaper (docs/convoys.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from convoy.client import Client, ClientError
from convoy.errors import ConvoyError
from convoy.host.scope import Scope

STEPS_US = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SAVING_MIN = 0.03  # of a packet's cost, for which another step of the wait is kept
ROOM = 0.05  # of the busy share, by which a shorter wait must stay below the limit
REST_MAX = 64  # periods, after steps that saved nothing
MET = 0.25  # of the time between two packets, from which a wait may meet another one
PACKETS_MIN = 1000  # in a period; fewer say nothing


@dataclass(frozen=True)
class Load:
    """What the other end did in a period."""

    packets: int
    busy: float  # share of what it can do, 0 to 1 and more
    cost: float  # of a packet, in any unit


class GoneError(ConvoyError):
    """The node at the other end does not answer; the next look may find it again."""


class OtherEnd(Protocol):
    """What frames of a next hop go to."""

    def load(self) -> Load | None:
        """Return what it did since the last call; None: this was the first. Raises GoneError."""


class NextNode(Scope):
    """A node that says itself how busy it is, over its read.sock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._client: Client | None = None
        self._before: _Cycles | None = None

    def load(self) -> Load | None:
        """See OtherEnd. Busy is its busiest worker; a packet costs cycles of all."""
        try:
            if self._client is None:
                self._client = Client(self._path)
            now = _Cycles.of(self._client.counts())
        except ClientError as error:
            self._leave()
            raise GoneError(str(error)) from None
        before, self._before = self._before, now
        return None if before is None else now.since(before)

    def _leave(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._before = None


@dataclass(frozen=True)
class _Cycles:
    """What a node's workers had done at a time."""

    packets: int
    workers: list[tuple[int, int]]  # busy cycles, and all

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> Self:
        workers = [(worker["busy_cycles"], worker["total_cycles"]) for worker in counts["workers"]]
        return cls(counts["accounting"]["received"], workers)

    def since(self, before: Self) -> Load | None:
        packets = self.packets - before.packets
        spent = [
            (busy - old[0], total - old[1])
            for (busy, total), old in zip(self.workers, before.workers, strict=False)
        ]
        if len(self.workers) != len(before.workers) or any(total <= 0 for _, total in spent):
            return None
        if packets < PACKETS_MIN:
            return Load(packets, 0, 0)
        cost = sum(busy for busy, _ in spent) / packets
        return Load(packets, max(busy / total for busy, total in spent), cost)


class FrameLimit:
    """What takes no more than so many frames a second: a card, a link, somebody else's switch."""

    def __init__(
        self, frames_per_s: float, period_s: float, sent: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Take what is sent to the next hop in all: `packets` and `frames`."""
        self._most = frames_per_s * period_s
        self._sent = sent
        self._before: Mapping[str, Any] | None = None

    def load(self) -> Load | None:
        """See OtherEnd. A packet costs its share of a frame."""
        now = self._sent()
        before, self._before = self._before, now
        if before is None:
            return None
        packets, frames = (now[key] - before[key] for key in ("packets", "frames"))
        if packets < PACKETS_MIN:
            return Load(packets, 0, 0)
        return Load(packets, frames / self._most, frames / packets)


@dataclass
class AdaptiveWait:
    """A wait that follows the load of the other end: one step, up or down, in each period.

    at_most_us: which no packet waits longer. period_s: between two looks at the other end.
    busy_from: share from which the other end's work is worth a wait; 0: always.
    """

    at_most_us: float
    period_s: float
    busy_from: float = 0.7
    wait_us: float = 0
    _costs: dict[float, float] = field(default_factory=dict)  # of a packet, by wait
    _tried_from: float | None = None  # the wait before a step up whose effect is unknown
    _settling: bool = False  # the period in which the wait changed is of both
    _rest: int = 0  # periods without a step up
    _next_rest: int = 4

    def _steps(self, packets: int) -> list[float]:
        """Return the waits in which another packet may come."""
        steps = {*(step for step in STEPS_US if step < self.at_most_us), self.at_most_us}
        us = 1e6 * self.period_s / packets  # from one to the next
        return [0, *sorted(step for step in steps if step >= MET * us)]

    def _go(self, wait_us: float) -> float:
        self._settling = wait_us != self.wait_us
        self.wait_us = wait_us
        return wait_us

    def forget(self) -> float:
        """Nothing is known of the other end: nothing waits. Returns the wait in us."""
        self._costs.clear()
        self._tried_from = None
        self._rest, self._next_rest = 0, 4
        return self._go(0)

    def after(self, load: Load | None) -> float:
        """Return the wait in us for the next period, after what the other end did in this one."""
        if load is None:
            return self.wait_us
        if load.packets < PACKETS_MIN or load.cost <= 0:
            return self.forget()
        if self._settling:
            self._settling = False
            return self.wait_us
        self._costs[self.wait_us] = load.cost
        self._rest = max(0, self._rest - 1)
        tried_from, self._tried_from = self._tried_from, None
        if tried_from is not None:
            if load.cost > self._costs[tried_from] * (1 - SAVING_MIN):
                self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, REST_MAX)
                return self._go(tried_from)
            self._next_rest = 4
        steps = self._steps(load.packets)
        shorter = [step for step in steps if step < self.wait_us]
        longer = [step for step in steps if step > self.wait_us]
        if shorter and self._busy_with(shorter[-1], load) < self.busy_from - ROOM:
            return self._go(shorter[-1])
        if longer and load.busy >= self.busy_from and self._rest == 0:
            self._tried_from = self.wait_us
            return self._go(longer[0])
        return self.wait_us

    def _busy_with(self, wait_us: float, load: Load) -> float:
        """Return what the busy share would be with another wait, as far as was seen."""
        return load.busy * self._costs.get(wait_us, load.cost) / load.cost
