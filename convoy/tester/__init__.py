# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Testers: what sends traffic through a device and says what became of it."""
