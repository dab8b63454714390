# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node's counts for Prometheus: metrics as text, over HTTP (docs/metrics.md)."""
