# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The cache in a real network, with unbound behind it."""
