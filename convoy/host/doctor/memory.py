# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Memory: hugepages, where they are mounted, and what is free."""

from collections.abc import Iterator
from pathlib import Path

from convoy.host.doctor.finding import Finding
from convoy.host.machine import hugepages, hugetlb_mounts, text

WANTED_MB = 1024
ENOUGH_MB = 512  # what convoyd takes unless its descriptor says otherwise


def check(root: Path) -> Iterator[Finding]:
    """Yield findings about memory."""
    yield _hugepages(root)
    yield from _per_node(root)
    yield _on_request(root)
    yield _available(root)


def _hugepages(root: Path) -> Finding:
    sizes = hugepages(root)
    result = ", ".join(f"{h.free} of {h.total} free, {h.size_kb} kB each" for h in sizes)
    why = "everything runs without them, with more TLB misses; network cards need them"
    fix = f"echo {WANTED_MB // 2} | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    if not sizes:
        return Finding("hugepages", "note", "none: this kernel has no support for them", why)
    if max(h.free_mb for h in sizes) < ENOUGH_MB:
        return Finding("hugepages", "note", result, why, fix)
    if not hugetlb_mounts(root):
        mount = "sudo mkdir -p /dev/hugepages && sudo mount -t hugetlbfs none /dev/hugepages"
        return Finding("hugepages", "note", f"{result}; not mounted", why, mount)
    return Finding("hugepages", "ok", result)


def _on_request(root: Path) -> Finding:
    """Without hugepages packets lie on large pages that the kernel gives on request."""
    path = "sys/kernel/mm/transparent_hugepage/enabled"
    choices = (text(root, path) or "none: this kernel has no support for them").strip()
    chosen = choices.partition("[")[2].partition("]")[0] or choices
    if chosen in ("always", "madvise"):
        return Finding("large pages", "ok", f"on request ({chosen})")
    why = "where hugepages are not free, packets lie on small pages, with more TLB misses"
    fix = f"echo madvise | sudo tee /{path}" if chosen == "never" else ""
    return Finding("large pages", "note", chosen, why, fix)


def _per_node(root: Path) -> Iterator[Finding]:
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    path = "hugepages/hugepages-2048kB/nr_hugepages"
    counts = {node.name: text(node, path) for node in nodes}
    have = [name for name, count in counts.items() if count not in (None, "0")]
    if have and len(have) < len(counts):
        missing = ", ".join(name for name in counts if name not in have)
        fix = f"echo 512 | sudo tee /sys/devices/system/node/{missing.split(',')[0]}/{path}"
        why = "workers on that node use memory of the other"
        yield Finding("hugepages by node", "note", f"none on {missing}", why, fix)


def _available(root: Path) -> Finding:
    for line in (text(root, "proc/meminfo") or "").splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "MemAvailable:" and words[1].isdigit():
            megabytes = int(words[1]) // 1024
            result = f"{megabytes} MiB available"
            if megabytes >= WANTED_MB:
                return Finding("memory", "ok", result)
            return Finding(
                "memory",
                "problem",
                result,
                f"convoyd may take {WANTED_MB} MiB",
                "free some, or set memory: {mb: 256} in the descriptor",
            )
    return Finding("memory", "ok", "unknown")
