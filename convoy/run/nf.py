# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs bench-nf and reads what it prints."""

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

from convoy.errors import ConvoyError, InputError
from convoy.host.machine import hugepages
from convoy.host.priority import prefer
from convoy.host.process import Process
from convoy.host.programs import need
from convoy.results.nf import NfBench

# Building tables of 100,000 rules takes seconds, a repeat takes milliseconds.
SILENCE_DEADLINE_S = 300.0
MEMORY_MB = 3072

Progress = Callable[[str, int, int], None]


def _arguments(
    functions: Sequence[str], entries: Sequence[int], repeats: int, core: int | None
) -> list[str]:
    words = ["--repeats", str(repeats)]
    if functions:
        words += ["--function", ",".join(functions)]
    if entries:
        words += ["--entries", ",".join(map(str, entries))]
    if core is not None:
        words += ["--core", str(core)]
    if any(pages.free_mb >= MEMORY_MB for pages in hugepages()):
        words.append("--hugepages")
    return words


def bench_nf(
    functions: Sequence[str],
    entries: Sequence[int],
    repeats: int,
    core: int | None,
    progress: Progress,
) -> NfBench:
    """Measure functions in memory. progress gets what is being done, how far it is, of how much.

    No functions or no entries: all, and bench-nf's own choice. Raises InputError for what bench-nf
    does not take, ConvoyError where it fails.
    """
    arguments = _arguments(functions, entries, repeats, core)
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
