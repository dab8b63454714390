# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""ESP in tunnel mode as RFC 4303 and RFC 4106 write it down."""

import struct
from dataclasses import dataclass

from .gcm import Gcm


@dataclass(frozen=True)
class Opened:
    """What was in an ESP packet."""

    sequence: int
    iv: bytes
    inner: bytes  # the IP packet
    next_header: int


class Association:
    """One direction. key: with the salt behind it."""

    def __init__(self, spi: int, key: bytes, esn: bool = False) -> None:
        self.spi, self.esn = spi, esn
        self._gcm, self._salt = Gcm(key[:-4]), key[-4:]

    def _extra(self, sequence: int) -> bytes:
        if self.esn:
            return struct.pack("!IQ", self.spi, sequence)
        return struct.pack("!II", self.spi, sequence)

    def seal(
        self, inner: bytes, sequence: int, tfc: int = 0, next_header: int | None = None
    ) -> bytes:
        """Return ESP with an IP packet, and so many bytes that hide its length, inside."""
        if next_header is None:
            next_header = 4 if inner[0] >> 4 == 4 else 41
        padding = -(len(inner) + tfc + 2) % 4
        text = inner + bytes(tfc) + bytes(range(1, padding + 1))
        text += bytes([padding, next_header])
        iv = struct.pack("!Q", sequence * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        sealed = self._gcm.seal(self._salt + iv, text, self._extra(sequence))
        return struct.pack("!II", self.spi, sequence & 0xFFFFFFFF) + iv + sealed

    def open(self, esp: bytes, high: int = 0) -> Opened:
        """Return what is in it. high: of the sequence number."""
        spi, low = struct.unpack("!II", esp[:8])
        assert spi == self.spi
        sequence, iv = high << 32 | low, esp[8:16]
        text = self._gcm.open(self._salt + iv, esp[16:], self._extra(sequence))
        padding, next_header = text[-2:]
        assert text[-2 - padding : -2] == bytes(range(1, padding + 1))
        assert len(text) % 4 == 0
        return Opened(sequence, iv, text[: -2 - padding], next_header)
