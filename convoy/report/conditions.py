# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Under what a setup was measured, beyond functions, frame size and CPU speed. Pure."""

from dataclasses import dataclass

from convoy.results.scenario import Scenario


@dataclass(frozen=True)
class Conditions:
    """What two rows must have in common to be compared as the same thing."""

    deployment: str = "inline"
    cores: int = 1  # of the device
    queues: int = 1  # pairs, of each port
    chains: int = 1  # independent ones, on the device's cores
    convoys: int = 0  # packets that the tester sent in one frame; 0 and 1: one each
    aggregates: bool = False  # the device sends (and takes) convoys
    evenly: bool = True  # packets were due one by one, at equal distances
    placement: str = ""  # of a process for each function, where cores were chosen for it
    options: tuple[tuple[str, str], ...] = ()  # the device's own, but for convoys
    entries: int | None = None  # routes and rules; None: not known
    flows: int | None = None

    @property
    def plain(self) -> bool:
        """Return whether packets came and left one by one."""
        return self.convoys <= 1 and not self.aggregates


def conditions(scenario: Scenario | None, setup: str, device: str) -> Conditions:
    """Return what a run's plan says of a setup."""
    if scenario is None or setup not in scenario.setups:
        return Conditions()
    spec = scenario.setups[setup]
    options = dict(spec.options.get(device, {}))
    aggregates = options.pop("convoys", "no") != "no"
    return Conditions(
        deployment=spec.deployment,
        # Placed functions have a core each (convoy/run/session.py).
        cores=max(spec.cores, len(spec.functions) if spec.placement else 1),
        queues=spec.queues,
        chains=spec.chains,
        convoys=spec.convoys,
        aggregates=aggregates,
        evenly=not (spec.pacing or scenario.pacing),
        placement=spec.placement or "",
        options=tuple(sorted(options.items())),
        entries=spec.entries,
        flows=scenario.flows,
    )
