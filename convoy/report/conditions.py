# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Under what a setup was measured, beyond functions, frame size and CPU speed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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


def conditions(scenario: Mapping[str, Any], setup: str, device: str) -> Conditions:
    """Return what a run's plan says of a setup. scenario: as plan.yaml has it."""
    spec = (scenario.get("setups") or {}).get(setup)
    if not isinstance(spec, Mapping):
        return Conditions()
    options = {str(k): str(v) for k, v in ((spec.get("options") or {}).get(device) or {}).items()}
    aggregates = options.pop("convoys", "no") != "no"
    placement = spec.get("placement") or ""
    pacing = spec.get("pacing") or scenario.get("pacing")
    return Conditions(
        deployment=spec.get("deployment") or "inline",
        # Placed functions have a core each (convoy/run/session.py).
        cores=max(spec.get("cores") or 1, len(spec.get("functions") or ()) if placement else 1),
        queues=spec.get("queues") or 1,
        chains=spec.get("chains") or 1,
        convoys=spec.get("convoys") or 0,
        aggregates=aggregates,
        evenly=not pacing,
        placement=placement,
        options=tuple(sorted(options.items())),
        entries=spec.get("entries"),
        flows=scenario.get("flows"),
    )
