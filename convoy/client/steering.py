# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""FLOW_MODs in frames, for a node's port of kind `openflow` (docs/openflow.md).

A controller that has a channel to a virtual switch, and none to the node behind it, sends them as
the data of PACKET_OUT.
"""

import hashlib
import hmac
import struct
import time

ETHERNET_TYPE = 0x88B5
KEY_BYTES = 32


def seal(
    flow_mods: bytes,
    key: bytes,
    destination: bytes = b"\xff" * 6,
    source: bytes = b"\x02\0\0\0\0\1",
    vlan: int | None = None,
    now_ns: int | None = None,
) -> bytes:
    """Return an Ethernet frame with whole FLOW_MODs, which a node takes once, within a minute.

    now_ns: nanoseconds since 1970; more in each frame than in the one before.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, this one {len(key)}")
    now = time.time_ns() if now_ns is None else now_ns
    header = struct.pack("!4sBBHQ", b"CVOF", 1, 0, len(flow_mods), now)
    code = hmac.digest(key, header + flow_mods, hashlib.sha256)
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    ethernet = destination + source + tag + struct.pack("!H", ETHERNET_TYPE)
    return (ethernet + header + code + flow_mods).ljust(60, b"\0")
