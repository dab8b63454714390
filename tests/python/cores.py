# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The cores of this process, for what tests start."""

import os

CORES = sorted(os.sched_getaffinity(0))
# Of each process that tests beside others (xdist), another one. Only for tests that choose the core
# of all that they start: who also lets Convoy choose may have two that poll on one core.
OWN_CORE = CORES[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % len(CORES)]
