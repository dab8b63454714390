# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices under test: base.py says what one is, one file each says which there are."""
