# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Several devices of one kind at a time, each with a chain of its own: seen as one."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from convoy.dut.base import Cost, Device, Running, Setup


class Several(Running):
    """Independent chains. What they keep from each other is no disturbance: it is measured."""

    def __init__(self, device: Device, setups: Sequence[Setup]) -> None:
        """Start one device after another. Raises ConvoyError if one does not run."""
        self._kept = ExitStack()
        self._shares = any(setup.oversubscribed for setup in setups)
        self._each: list[Running] = []
        try:
            for setup in setups:
                self._each.append(self._kept.enter_context(device.start(setup)))
        except BaseException:
            self._kept.close()
            raise
        self.commands = tuple(command for each in self._each for command in each.commands)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return what each of them has to say, once."""
        where = "share a core; their poll loops yield" if self._shares else "have a core each"
        cores = f"{len(self._each)} independent chains {where}"
        return (*dict.fromkeys(n for each in self._each for n in each.notes), cores)

    def ready(self, deadline_s: float) -> None:
        """Wait for each of them."""
        for each in self._each:
            each.ready(deadline_s)

    def alive(self) -> bool:
        """Return whether all still run."""
        return all(each.alive() for each in self._each)

    def counters(self) -> dict[str, Any] | None:
        """Return what each counts."""
        return self._named(lambda each: each.counters())

    def cost(self) -> Cost | None:
        """Return what they spent together, if all of them know."""
        costs = [each.cost() for each in self._each]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        return Cost(
            sum(cost.busy_cycles for cost in known),
            sum(cost.packets for cost in known),
            known[0].source,
        )

    def output(self) -> Mapping[str, str]:
        """Return what all their processes said."""
        return {
            f"chain {number}: {name}": text
            for number, each in enumerate(self._each, 1)
            for name, text in each.output().items()
        }

    def processes(self) -> tuple[int, ...]:
        """Return the ids of all."""
        return tuple(pid for each in self._each for pid in each.processes())

    def cooperative_threads(self) -> tuple[int, ...]:
        """Return those of all, if all have such."""
        result = [each.cooperative_threads() for each in self._each]
        return tuple(thread for threads in result for thread in threads) if all(result) else ()

    def stop(self) -> None:
        """End all of them."""
        self._kept.close()

    def _named(self, ask: Callable[[Running], Any]) -> dict[str, Any]:
        return {f"chain {number}": ask(each) for number, each in enumerate(self._each, 1)}
