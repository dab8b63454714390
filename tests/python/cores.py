# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The cores of this process, for what tests start."""

import os


def _cores() -> list[int]:
    cores = sorted(os.sched_getaffinity(0))
    first = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % len(cores)
    return cores[first:] + cores[:first]


# What polls takes a whole core. Tests beside each other (xdist) each begin with another one.
CORES = _cores()
