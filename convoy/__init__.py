# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Convoy: runs service function chains, and measures them."""

__version__ = "0.1.0"
