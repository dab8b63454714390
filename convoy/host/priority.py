# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Measured processes go before whatever else runs here, as far as this user may ask for that.

Linux shares a core between sessions first (autogroups, sched(7)), and between the processes of a
session by their nice values second. Our processes have sessions of their own (process.py), so that
it is the session's nice value that counts; only root may lower it.
"""

import contextlib
from pathlib import Path

MEASURED = -20


def prefer(pid: int, root: Path = Path("/")) -> bool:
    """Put a process's session first. False: not allowed, or this kernel has no autogroups."""
    with contextlib.suppress(OSError):
        (root / f"proc/{pid}/autogroup").write_text(f"{MEASURED}\n")
        return True
    return False
