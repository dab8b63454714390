# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where functions should run, by what was measured. Pure: reads rows, starts nothing."""
