# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The Internet checksum (RFC 1071)."""

import struct


def checksum(data: bytes) -> int:
    """Return the checksum to store over `data`, of even length, whose checksum field is zero.

    Over a header with its checksum in place it is 0 if that is right.
    """
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total
