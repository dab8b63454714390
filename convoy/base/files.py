# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Files that are never half written, and what a crash left of those that grow."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all; folders on the way are made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def cut_partial_line(path: Path) -> None:
    """Cut off a last line without its end, so that the next begins a line of its own."""
    if not path.exists():
        return
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
