# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Chains whose functions are placed in several parts: started, supervised, counted as one."""
