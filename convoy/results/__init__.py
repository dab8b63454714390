# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What was measured, as it is kept: schema, writer, reader. All that run and report share."""
