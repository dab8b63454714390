# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs the programs that measure parts in memory, nothing around them: cycles per packet."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from convoy.errors import ConvoyError, InputError
from convoy.host.command import run
from convoy.host.machine import hugepages
from convoy.host.priority import prefer
from convoy.host.process import Process
from convoy.host.programs import need
from convoy.results.nf import NfBench

DEADLINE_S = 120.0
REPEATS = {
    "next-hop": 101, "frame": 11, "vring": 11, "views": 11, "crossing": 21, "latency": 2001,
}  # fmt: skip
SMALL_BYTES = 4096  # the working set that stays in the first cache
# Building tables of 100,000 rules takes seconds, a repeat takes milliseconds.
SILENCE_DEADLINE_S = 300.0
MEMORY_MB = 4096


def command(what: str, repeats: int | None = None) -> tuple[str, ...]:
    """Return the command that measures one of REPEATS. Raises InputError."""
    return (str(need(f"bench-{what}")), str(repeats or REPEATS[what]))


def measure(what: str, repeats: int | None = None) -> dict[str, Any]:
    """Run it and return the document that it printed.

    Raises ConvoyError where the program fails, InputError where it is not there.
    """
    ended = run(command(what, repeats), DEADLINE_S)
    try:
        result = json.loads(ended.stdout) if ended.exit_code == 0 else None
    except ValueError as error:
        raise ConvoyError(f"bench-{what}: printed no JSON: {error}") from None
    if not isinstance(result, dict):
        raise ConvoyError(f"bench-{what}: {ended.lines()[-1]}")
    return result


@dataclass(frozen=True)
class FrameCost:
    """Median TSC ticks per packet, by packets per frame, for packets of packet_bytes."""

    packets: int
    packet_bytes: int
    walk: float
    pack: float


def bench_frame(repeats: int) -> tuple[FrameCost, ...]:
    """Measure. Packets are in the first cache, where a function has just touched them.

    Raises ConvoyError where bench-frame fails, InputError where it is not there.
    """
    result: dict[tuple[int, int], dict[str, float]] = {}
    for row in measure("frame", repeats)["results"]:
        if row["working_set_bytes"] == SMALL_BYTES:
            place = result.setdefault((row["packets"], row["packet_bytes"]), {})
            place[row["function"]] = row["cycles_per_packet"]["median"]
    return tuple(
        FrameCost(packets, packet_bytes, row["walk"], row["pack"])
        for (packets, packet_bytes), row in sorted(result.items())
    )


def _arguments(
    functions: Sequence[str],
    entries: Sequence[int],
    flows: Sequence[int],
    repeats: int,
    core: int | None,
) -> list[str]:
    words = ["--repeats", str(repeats)]
    if functions:
        words += ["--function", ",".join(functions)]
    if entries:
        words += ["--entries", ",".join(map(str, entries))]
    if flows:
        words += ["--flows", ",".join(map(str, flows))]
    if core is not None:
        words += ["--core", str(core)]
    if any(pages.free_mb >= MEMORY_MB for pages in hugepages()):
        words.append("--hugepages")
    return words


def bench_nf(
    functions: Sequence[str],
    entries: Sequence[int],
    flows: Sequence[int],
    repeats: int,
    core: int | None,
    progress: Callable[[str, int, int], None],
) -> NfBench:
    """Measure functions in memory. progress gets what is being done, how far it is, of how much.

    No functions, entries or flows: all, and bench-nf's own choice. Raises InputError for what
    bench-nf does not take, ConvoyError where it fails.
    """
    arguments = _arguments(functions, entries, flows, repeats, core)
    with Process([need("bench-nf"), *arguments]) as bench:
        prefer(bench.pid)
        result: dict[str, Any] = {}
        for number in itertools.count():
            line = bench.stdout.line(number, SILENCE_DEADLINE_S)
            if line is None:
                break
            document = json.loads(line)
            if document.get("event") == "progress":
                progress(document["what"], document["done"], document["of"])
            else:
                result = document
        if bench.wait(SILENCE_DEADLINE_S) != 0 or not result:
            raise (InputError if bench.exit_code == 2 else ConvoyError)(bench.last_words())
    return NfBench.model_validate(result)
