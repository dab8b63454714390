# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Searches for the highest rate that a device keeps up with. Pure: they start nothing."""
