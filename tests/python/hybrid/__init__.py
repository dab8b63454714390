# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Next hops set by OpenFlow controllers that others wrote."""
