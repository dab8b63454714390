# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Random routers and packets that are worth routing: near the routes, with all that can be wrong.

Hypothesis chooses the seed and the sizes; the rest follows from them, so that a hundred packets
cost one choice.
"""

import random
import struct
from ipaddress import ip_network

from hypothesis import strategies as st

from .model import Route, Setup, same_address

PORTS = {
    "left": "02:00:00:00:0a:00",
    "right": "02:00:00:00:0a:01",
    "third": "02:00:00:00:0a:02",
}
NEXT_HOPS = {
    4: ["192.0.2.1", "192.0.2.2", "198.51.100.9"],
    6: ["2001:db8:ffff::1", "fe80::1"],
}
MARK = b"convoy"  # then the packet's number, 4 bytes: the end of every payload


def _prefix(rng: random.Random, near: list[str]) -> str:
    """Return a prefix; half of them inside one that is there."""
    if near and rng.random() < 0.5:
        net = ip_network(rng.choice(near))
        bits = net.max_prefixlen
        length = rng.randint(net.prefixlen, bits)
        value = int(net.network_address) | rng.getrandbits(bits - net.prefixlen or 1)
    elif rng.random() < 0.6:
        bits, length = 32, rng.choice([8, 12, 16, 20, 23, 24, 25, 28, 31, 32])
        value = rng.randint(1, 223) << 24 | rng.getrandbits(24)
    else:
        bits, length = 128, rng.choice([16, 29, 32, 40, 47, 48, 56, 64, 65, 127, 128])
        value = 0x20 << 120 | rng.getrandbits(120)
    value = value >> (bits - length) << (bits - length)
    return str(ip_network((value, length)))


def _reserved(prefix: str) -> bool:
    """Say whether a prefix lies where no router forwards to."""
    net = ip_network(prefix)
    first = int(net.network_address) >> (net.max_prefixlen - 8)
    if net.version == 4:
        return first in (0, 127) or first >= 224
    return not 0x20 <= first < 0x40


@st.composite
def setups(draw: st.DrawFn) -> tuple[Setup, random.Random]:
    """Make a router, and the source of chance for packets to it."""
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(0, 40))
    setup = Setup(dict(PORTS))
    for version in (4, 6):
        for i, hop in enumerate(NEXT_HOPS[version]):
            setup.neighbours[hop] = f"02:00:00:00:{version:02x}:{i:02x}"
    prefixes: list[str] = []
    if rng.random() < 0.3:
        prefixes.append(rng.choice(["0.0.0.0/0", "::/0"]))
    for _ in range(count):
        prefix = _prefix(rng, prefixes)
        if prefix not in prefixes and not _reserved(prefix):
            prefixes.append(prefix)
    for prefix in prefixes:
        kind = rng.random()
        dev = rng.choice(list(PORTS))
        if kind < 0.1:
            setup.routes.append(Route(prefix))
        elif kind < 0.3:
            setup.routes.append(Route(prefix, dev))
            for _ in range(rng.randint(0, 3)):
                host = _inside(rng, prefix)
                if not _reserved(host):
                    setup.neighbours.setdefault(
                        same_address(host), f"02:00:00:00:cc:{rng.randrange(256):02x}"
                    )
        else:
            setup.routes.append(
                Route(prefix, dev, rng.choice(NEXT_HOPS[ip_network(prefix).version]))
            )
    return setup, rng


def _inside(rng: random.Random, prefix: str) -> str:
    net = ip_network(prefix)
    spare = net.max_prefixlen - net.prefixlen
    return str(net[rng.choice([0, -1, rng.getrandbits(spare) if spare else 0])])


def _destination(rng: random.Random, setup: Setup) -> str:
    what = rng.random()
    if what < 0.6 and setup.routes:
        return _inside(rng, rng.choice(setup.routes).prefix)
    if what < 0.8:
        return rng.choice(list(setup.neighbours))
    if what < 0.9:
        return str(ip_network((rng.getrandbits(32), 32)).network_address)
    return str(ip_network((0x20 << 120 | rng.getrandbits(120), 128)).network_address)


def _packed(address: str) -> bytes:
    return ip_network(address).network_address.packed


ODD_SOURCES = {
    4: ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255"],
    6: ["::", "::1", "ff02::1", "fe80::77"],
}


def _ipv4(rng: random.Random, source: str, destination: str, payload: bytes, odd: float) -> bytes:
    options = b"\x01" * (4 * rng.choice([1, 2, 10])) if rng.random() < 0.1 else b""
    size = 20 + len(options)
    ttl = rng.choice([0, 1, 2, 255]) if rng.random() < odd else rng.randint(2, 255)
    fragment = rng.choice([0x2000, 0x2001, 0x0003]) if rng.random() < 0.1 else 0x4000
    total = size + len(payload)
    version = 0x40
    if rng.random() < odd / 2:
        total = rng.choice([0, 19, total - 1, total + 1, 65535])
    if rng.random() < odd / 4:
        version = rng.choice([0x00, 0x50, 0x60])
    if rng.random() < odd / 4:
        size = rng.choice([0, 16, 60])
    header = bytearray(
        struct.pack(
            ">BBHHHBBH4s4s",
            version | size // 4,
            rng.choice([0, 0xB8]),
            total,
            rng.getrandbits(16),
            fragment,
            ttl,
            rng.choice([17, 6, 253]),
            0,
            _packed(source),
            _packed(destination),
        )
        + options
    )
    summed = sum(struct.unpack(f">{len(header) // 2}H", header))
    while summed >> 16:
        summed = (summed & 0xFFFF) + (summed >> 16)
    wrong = rng.getrandbits(16) if rng.random() < odd / 2 else 0
    struct.pack_into(">H", header, 10, (~summed & 0xFFFF) ^ wrong)
    return bytes(header) + payload


def _ipv6(rng: random.Random, source: str, destination: str, payload: bytes, odd: float) -> bytes:
    hop = rng.choice([0, 1, 2, 255]) if rng.random() < odd else rng.randint(2, 255)
    following, extension = rng.choice([17, 6, 253]), b""
    for kind in rng.sample([0, 60, 44, 43], rng.choice([0, 0, 1, 2])):
        if kind == 44:
            extension = struct.pack(">BBHI", following, 0, 0x0009, 7) + extension
        elif kind == 43:
            extension = struct.pack(">BBBBI", following, 0, 253, 0, 0) + extension
        else:  # PadN
            extension = bytes([following, 0, 1, 4, 0, 0, 0, 0]) + extension
        following = kind
        if kind == 0:  # it must come first
            break
    length = len(extension) + len(payload)
    version = 6
    if rng.random() < odd / 2:
        length = rng.choice([length - 1, length + 1, 65535])
    if rng.random() < odd / 4:
        version = rng.choice([0, 4, 7])
    head = struct.pack(">IHBB", version << 28 | rng.getrandbits(28), length, following, hop)
    return head + _packed(source) + _packed(destination) + extension + payload


def frame(
    rng: random.Random, setup: Setup, number: int, arrive: str, *, odd: float, tags: bool
) -> bytes:
    """Make a frame that arrives at MAC address arrive. odd: how likely each fault is."""
    destination = _destination(rng, setup)
    version = ip_network(destination).version
    source = "203.0.113.77" if version == 4 else "2001:db8:77::77"
    if rng.random() < odd / 2:
        source = rng.choice(ODD_SOURCES[version])
    payload = rng.randbytes(rng.choice([8, 16, 30, 200])) + MARK + struct.pack(">I", number)
    make = _ipv4 if version == 4 else _ipv6
    packet = make(rng, source, destination, payload, odd)
    kind = 0x0800 if version == 4 else 0x86DD
    ether = b""
    if tags and rng.random() < 0.3:
        for tag in rng.choice([[0x8100], [0x88A8, 0x8100], [0x8100] * 3]):
            ether += struct.pack(">HH", tag, rng.getrandbits(16))
    if rng.random() < odd / 4:
        kind = rng.choice([0x0806, 0x88B5, 0x0040, 0x86DD])
    to = bytes.fromhex(arrive.replace(":", ""))
    if rng.random() < odd / 2:
        to = rng.choice([b"\xff" * 6, b"\x01\0\x5e\0\0\1", b"\x33\x33\0\0\0\1"])
    whole = to + b"\x02\0\0\0\x99\x01" + ether + struct.pack(">H", kind) + packet
    if rng.random() < odd / 2:
        whole += bytes(rng.randint(1, 20))  # padding
    if tags and rng.random() < odd / 2:
        whole = whole[: rng.randint(14, len(whole))]
    return whole
