# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Tables, figures and HTML pages. Reads results; starts nothing."""
