# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The convoy frame in Python: read one, write one. docs/convoy-frame.md is the specification.

Pure, and slow: for tests, for looking into captures, and for telling what the node should do.
"""

from convoy.frame.model import MAX_PACKETS, PORT, Convoy, Outer, Vlan
from convoy.frame.read import decode, may_be_convoy
from convoy.frame.reason import FrameError, NotAConvoyError, Reason
from convoy.frame.write import encode, pack

__all__ = [
    "MAX_PACKETS",
    "PORT",
    "Convoy",
    "FrameError",
    "NotAConvoyError",
    "Outer",
    "Reason",
    "Vlan",
    "decode",
    "encode",
    "may_be_convoy",
    "pack",
]
