# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What all packages read documents with: YAML, strict models, errors with file, line and fix."""
