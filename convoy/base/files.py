# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Files that are never half written, and what a crash left of those that grow."""

import errno
import os
import tempfile
from pathlib import Path

from convoy.errors import InputError


def will_write(option: str, path: Path) -> None:
    """Make sure that a file can be written, before the work whose result it is to hold.

    Folders on the way are made. Raises InputError with the option that named it.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{option}: '{path}': {error.strerror}; give another file") from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all; folders on the way are made. Raises OSError, of it."""
    if not path.name:  # "." and "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def cut_partial_line(path: Path) -> None:
    """Cut off a last line without its end, so that the next begins a line of its own."""
    if not path.exists():
        return
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
