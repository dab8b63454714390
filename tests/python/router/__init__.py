# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The router against second opinions: a plain model, and the kernel."""
