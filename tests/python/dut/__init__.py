# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices under test: what they are told, and what they then do with packets."""
