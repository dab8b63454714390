# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The CNI plugin (docs/containers.md): gives containers ports of a running node.

The standard library and convoy.client only: a runtime waits for each start of it.
"""
