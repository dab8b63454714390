# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The real node over captures, as tests of service chains run it."""

from sfc.conftest import convoyd, runtime_folder

__all__ = ["convoyd", "runtime_folder"]
