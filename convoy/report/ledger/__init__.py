# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the papers claim (scenarios/claims.yaml), and what a run says of each claim."""
