# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices on another machine: the agent that starts them there, and what speaks to it here."""
