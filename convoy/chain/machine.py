# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What making a plan needs to know about a machine; convoy.host.machine fills it in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A machine to plan for."""

    nodes: Mapping[int, int]  # NUMA node of each core that may be used
    runtime_dir: Path  # for sockets
    siblings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # hardware threads
    hugepages_free_mb: int = 0  # that this user may take

    def cores_text(self) -> str:
        """Return the cores as 0-3,8."""
        return ranges(self.nodes)


# A virtual machine that we start, of one core: what a plan for it needs to know.
GUEST = Machine(nodes={0: 0}, runtime_dir=Path("/run"))
GUEST_DEVICES_MAX = 26  # network devices that it has slots for
_GUEST_FIRST_SLOT = 4  # behind the chip set's own


def guest_slot(number: int) -> int:
    """Return the PCI slot of a guest's network device of that number, from 0."""
    return _GUEST_FIRST_SLOT + number


def guest_device(number: int) -> str:
    """Return the PCI address of a guest's network device of that number, from 0."""
    return f"0000:00:{guest_slot(number):02x}.0"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as the kernel lists CPUs: 0-3,8."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
