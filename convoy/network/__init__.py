# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network of nodes: which functions run where, which chains lead through them, and who steers."""
