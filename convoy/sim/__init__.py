# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The simulator's Python side: topologies (YAML) to networks (JSON), runs, sweeps, reports."""
