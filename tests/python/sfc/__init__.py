# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Service function chaining by standard: NSH and SRv6, beside other implementations."""
