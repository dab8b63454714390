# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Convoy: runs service function chains, and measures them."""

from pathlib import Path

# The one place of the version: meson.build, pyproject.toml and packages read it there, too.
__version__ = (Path(__file__).parent / "VERSION").read_text("utf-8").strip()
