# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a running process keeps, whatever plan it goes over to: its cores, how idle, its memory.

A plan for it has these as they run. Where its descriptor asks for others, that is said.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from convoy.base.problem import Problem, shown
from convoy.chain.load import Loaded
from convoy.chain.place import places_on

FIX = "it changes only by a new process: `convoy apply --handover`, or a restart"


def refuse_others(loaded: Loaded, running: Mapping[str, Any]) -> None:
    """Raise DescriptorError where a descriptor asks for other workers or memory than run."""
    problems = [
        Problem(loc, f"the node runs with {runs}", FIX, value)
        for loc, value, runs in (*_workers(loaded, running), *_memory(loaded, running))
    ]
    if problems:
        raise loaded.text.error(problems)


def more_cores_note(loaded: Loaded, running: Mapping[str, Any]) -> str:
    """Return what to say where a new process would use more of a descriptor's cores, or ""."""
    given = loaded.descriptor.workers.cores or []
    workers = len(running["workers"])
    if len(given) <= workers or places_on(loaded.descriptor) <= workers:
        return ""
    return f"the node keeps its {workers} of {len(given)} workers.cores: {FIX}"


def _workers(loaded: Loaded, running: Mapping[str, Any]) -> Iterator[tuple[Any, str, object]]:
    workers = loaded.descriptor.workers
    cores = [worker["core"] for worker in running["workers"]]
    if workers.cores is not None and workers.cores[: len(cores)] != cores:
        yield ("workers", "cores"), shown(workers.cores), cores
    idle = {worker.get("idle", "poll") for worker in running["workers"]}
    if "idle" in workers.model_fields_set and idle != {workers.idle}:
        yield ("workers", "idle"), shown(workers.idle), ", ".join(sorted(idle))


def _memory(loaded: Loaded, running: Mapping[str, Any]) -> Iterator[tuple[Any, str, object]]:
    memory, eal = loaded.descriptor.memory, running.get("eal", {})
    mb = eal.get("memory_mb")
    if memory.mb is not None and mb is not None and memory.mb != mb:
        yield ("memory", "mb"), shown(memory.mb), f"{mb} MiB"
    huge = bool(eal.get("hugepages"))
    if memory.hugepages == ("never" if huge else "always"):
        yield ("memory", "hugepages"), shown(memory.hugepages), "them" if huge else "none"
