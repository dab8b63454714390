# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is good and bad about a machine for packets, each with the command that fixes it.

Checks read /sys and /proc under a root that they are given, and change nothing.
"""
