# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whole Ethernet packets of a capture: pcap or pcapng, of either byte order."""

import struct
from collections.abc import Iterator
from pathlib import Path

from convoy.errors import InputError

ETHERNET = 1
_PCAP = {magic.to_bytes(4, order): order for magic in (0xA1B2C3D4, 0xA1B23C4D)
         for order in ("little", "big")}  # fmt: skip
_SECTION, _INTERFACE, _SIMPLE, _PACKET = 0x0A0D0D0A, 1, 3, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}


# Bytes that were captured, and how many the packet had.
Captured = tuple[bytes, int]


def read_packets(path: Path) -> list[bytes]:
    """Return the Ethernet packets that were captured whole. What a cut file has is read.

    Raises InputError for what is no capture, or has another link type only.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return [packet for packet, length in captured(data, path) if len(packet) == length]


def captured(data: bytes, path: Path) -> list[Captured]:
    """Return the Ethernet packets that a file's bytes have, whole or cut.

    Raises InputError as read_packets() does.
    """
    if data[:4] in _PCAP and len(data) >= 24:
        order = "<" if _PCAP[data[:4]] == "little" else ">"
        (link,) = struct.unpack_from(order + "I", data, 20)
        if link & 0xFFFF != ETHERNET:
            raise InputError(f"{path}: link type {link & 0xFFFF}: must be Ethernet (1)")
        return list(_pcap(data, order))
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return list(_pcapng(data))
    raise InputError(f"{path}: is no capture; give a pcap or pcapng file")


def _pcap(data: bytes, order: str) -> Iterator[Captured]:
    at = 24
    while at + 16 <= len(data):
        size, length = struct.unpack_from(order + "II", data, at + 8)
        at += 16
        if size <= length and at + size <= len(data):
            yield data[at : at + size], length
        at += size


def _pcapng(data: bytes) -> Iterator[Captured]:
    order, links, at = "<", list[int](), 0
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order, links = _ORDERS.get(data[at + 8 : at + 12], "<"), []
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < 12 or at + size > len(data):
            return
        body = data[at + 8 : at + size - 4]
        at += size
        if kind == _INTERFACE and len(body) >= 2:
            links.append(struct.unpack_from(order + "H", body)[0])
        elif kind == _PACKET and len(body) >= 20:
            interface, _, _, taken, length = struct.unpack_from(order + "IIIII", body)
            ethernet = interface < len(links) and links[interface] == ETHERNET
            if ethernet and taken <= length and 20 + taken <= len(body):
                yield body[20 : 20 + taken], length
        elif kind == _SIMPLE and len(body) >= 4 and links[:1] == [ETHERNET]:
            (length,) = struct.unpack_from(order + "I", body)
            if 4 + length <= len(body):
                yield body[4 : 4 + length], length
