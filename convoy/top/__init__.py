# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node as a page: what it does, served on this machine."""
