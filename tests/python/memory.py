# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What memory a process has."""

from pathlib import Path


def own_bytes(pid: int) -> int:
    """Return how much memory of its own a process has, none of it shared or of a file."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no RssAnon of {pid}")
