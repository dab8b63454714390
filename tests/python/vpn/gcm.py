# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""AES-GCM as FIPS 197 and NIST SP 800-38D write it down: slow, and nobody else's code."""

_REDUCE = 0xE1 << 120


def _make_box() -> bytes:
    box, p, q = bytearray(256), 1, 1
    while True:
        p = p ^ (p << 1) ^ (0x11B if p & 0x80 else 0)
        p &= 0xFF
        for shift in (1, 2, 4):
            q ^= q << shift
        q &= 0xFF
        if q & 0x80:
            q ^= 0x09
        turned = q
        for shift in (1, 2, 3, 4):
            turned ^= (q << shift | q >> (8 - shift)) & 0xFF
        box[p] = turned ^ 0x63
        if p == 1:
            box[0] = 0x63
            return bytes(box)


_BOX = _make_box()


def _twice(x: int) -> int:
    return (x << 1 ^ (0x11B if x & 0x80 else 0)) & 0xFF


def _round_keys(key: bytes) -> list[bytes]:
    words = [key[i : i + 4] for i in range(0, len(key), 4)]
    count, constant = len(words), 1
    while len(words) < 4 * (count + 7):
        last = words[-1]
        if len(words) % count == 0:
            last = bytes(_BOX[b] for b in last[1:] + last[:1])
            last = bytes([last[0] ^ constant]) + last[1:]
            constant = _twice(constant)
        elif count > 6 and len(words) % count == 4:
            last = bytes(_BOX[b] for b in last)
        words.append(bytes(a ^ b for a, b in zip(words[-count], last, strict=True)))
    return [b"".join(words[i : i + 4]) for i in range(0, len(words), 4)]


def _encrypt_block(keys: list[bytes], block: bytes) -> bytes:
    state = bytes(a ^ b for a, b in zip(block, keys[0], strict=True))
    for number, key in enumerate(keys[1:], 1):
        moved = [_BOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < len(keys) - 1:
            mixed = []
            for column in range(0, 16, 4):
                a = moved[column : column + 4]
                whole = a[0] ^ a[1] ^ a[2] ^ a[3]
                mixed += [a[i] ^ whole ^ _twice(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            moved = mixed
        state = bytes(a ^ b for a, b in zip(moved, key, strict=True))
    return state


def _times(x: int, y: int) -> int:
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (_REDUCE if y & 1 else 0)
    return product


class Gcm:
    """A key."""

    def __init__(self, key: bytes) -> None:
        self._keys = _round_keys(key)
        self._hash_key = int.from_bytes(_encrypt_block(self._keys, bytes(16)), "big")

    def _stream(self, nonce: bytes, data: bytes) -> bytes:
        out = b""
        for i in range(0, len(data), 16):
            counter = nonce + (i // 16 + 2).to_bytes(4, "big")
            pad = _encrypt_block(self._keys, counter)
            out += bytes(a ^ b for a, b in zip(data[i : i + 16], pad, strict=False))
        return out

    def _tag(self, nonce: bytes, data: bytes, extra: bytes) -> bytes:
        lengths = (8 * len(extra)).to_bytes(8, "big") + (8 * len(data)).to_bytes(8, "big")
        digest = 0
        text = extra + bytes(-len(extra) % 16) + data + bytes(-len(data) % 16) + lengths
        for i in range(0, len(text), 16):
            digest = _times(digest ^ int.from_bytes(text[i : i + 16], "big"), self._hash_key)
        pad = int.from_bytes(_encrypt_block(self._keys, nonce + b"\0\0\0\1"), "big")
        return (digest ^ pad).to_bytes(16, "big")

    def seal(self, nonce: bytes, data: bytes, extra: bytes) -> bytes:
        """Return what is encrypted, and its tag behind it."""
        sealed = self._stream(nonce, data)
        return sealed + self._tag(nonce, sealed, extra)

    def open(self, nonce: bytes, sealed: bytes, extra: bytes) -> bytes:
        """Return what was encrypted. Raises ValueError where the tag is another."""
        data, tag = sealed[:-16], sealed[-16:]
        if self._tag(nonce, data, extra) != tag:
            raise ValueError("not authentic")
        return self._stream(nonce, data)
