# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long a process was kept from running though it could have: others had its cores."""

from pathlib import Path


def waited_ns(pid: int, root: Path = Path("/")) -> int:
    """Return the time that its threads were ready but did not run, in all, since they began.

    From schedstat (second number), which counts a wait when it ends. 0 where that cannot be read.
    """
    total = 0
    for path in (root / f"proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended
    return total
