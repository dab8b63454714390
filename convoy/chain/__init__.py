# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Chain descriptors (YAML): load, check, and decide a plan. Starts nothing."""
