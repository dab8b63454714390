# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The cores of this process, for what tests start."""

import os

_allowed = sorted(os.sched_getaffinity(0))
_turn = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % len(_allowed)
# Each process that tests beside others (xdist) begins with another one: poll loops on the first, or
# on the last, are not all on the same.
CORES = _allowed[_turn:] + _allowed[:_turn]
# Only for tests that choose the core of all that they start: who also lets Convoy choose may have
# two that poll on one core.
OWN_CORE = CORES[0]
