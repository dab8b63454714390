# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Facts from /sys and /proc. Every reader takes the root to read under, so that tests can make
a machine of their own; a file that is not there is None, never a guess."""

import os
from dataclasses import dataclass
from pathlib import Path

from convoy.chain.machine import Machine
from convoy.host.folders import runtime_dir

ROOT = Path("/")


def text(root: Path, path: str) -> str | None:
    """Return a file's content without the white space around it, or None."""
    try:
        return (root / path).read_text(errors="replace").strip()
    except OSError:
        return None


def number(root: Path, path: str) -> int | None:
    """Return a file's content as a number, or None."""
    content = text(root, path)
    try:
        return int(content) if content is not None else None
    except ValueError:
        return None


def cpu_list(content: str | None) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel prints it: 0-3,8."""
    cores: set[int] = set()
    for part in (content or "").split(","):
        low, _, high = part.strip().partition("-")
        if low.isdigit() and (high or low).isdigit():
            cores |= set(range(int(low), int(high or low) + 1))
    return tuple(sorted(cores))


@dataclass(frozen=True)
class Hugepages:
    """Hugepages of one size."""

    size_kb: int
    total: int
    free: int

    @property
    def free_mb(self) -> int:
        """What is free, in MiB."""
        return self.size_kb * self.free // 1024


def hugepages(root: Path = ROOT) -> tuple[Hugepages, ...]:
    """Return the hugepages of every size, over all NUMA nodes."""
    result = []
    for folder in sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB"))
        total, free = number(folder, "nr_hugepages"), number(folder, "free_hugepages")
        result.append(Hugepages(size, total or 0, free or 0))
    return tuple(result)


def hugetlb_mounts(root: Path = ROOT) -> tuple[str, ...]:
    """Return where hugetlbfs is mounted."""
    lines = (text(root, "proc/mounts") or "").splitlines()
    words = [line.split() for line in lines]
    return tuple(w[1] for w in words if len(w) > 2 and w[2] == "hugetlbfs")


def online(root: Path = ROOT) -> tuple[int, ...]:
    """Return the CPUs that are on."""
    return cpu_list(text(root, "sys/devices/system/cpu/online"))


def nodes(root: Path = ROOT) -> dict[int, int]:
    """Return the NUMA node of each CPU that is on (0 where the kernel knows of none)."""
    result = dict.fromkeys(online(root), 0)
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        for core in cpu_list(text(folder, "cpulist")):
            if core in result:
                result[core] = int(folder.name.removeprefix("node"))
    return result


def siblings(root: Path = ROOT) -> dict[int, tuple[int, ...]]:
    """Return the hardware threads of each CPU's physical core."""
    base = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return {core: cpu_list(text(root, base.format(core))) or (core,) for core in online(root)}


def this_machine(root: Path = ROOT, allowed: set[int] | None = None) -> Machine:
    """Return this machine as plans need it: only the CPUs that this process may use."""
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    by_core = nodes(root) or dict.fromkeys(sorted(allowed), 0)
    usable = os.geteuid() == 0 and bool(hugetlb_mounts(root))
    return Machine(
        nodes={core: node for core, node in by_core.items() if core in allowed},
        runtime_dir=runtime_dir(),
        siblings=siblings(root),
        hugepages_free_mb=max((h.free_mb for h in hugepages(root)), default=0) if usable else 0,
    )


def cpu_model(root: Path = ROOT) -> str:
    """Return the processor's name."""
    for line in (text(root, "proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
