# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Folders whose sockets have paths as on a host."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder of its own, of few letters."""
    with tempfile.TemporaryDirectory(prefix="cv", dir="/tmp") as folder:
        yield Path(folder)
